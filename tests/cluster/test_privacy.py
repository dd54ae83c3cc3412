"""What may leave a partition, and what a worker is made of."""

import ast
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.matrices import matrix_source

import dplasso
from cluster.cases import records
from dplasso import DataError, open_store
from dplasso.cluster import InProcessEngine
from dplasso.cluster.coordinators import added_up, sum_of
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.worker import Partition, SumSteps
from dplasso.data.store import write_store
from dplasso.fit.task import Binary
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.losses.logistic import Logistic
from dplasso.matrix.scaling import Scaling
from neighbours import BOUND, pairs

PACKAGE = Path(dplasso.__file__).parent


def workers(X, y, at):
    X = sp.csr_array(X)
    parts = [(X[:at], y[:at]), (X[at:], y[at:])]
    given = [
        Partition(f"p{number}", X=some, y=labels) for number, (some, labels) in enumerate(parts)
    ]
    found = Partitions(InProcessEngine(), given)
    found.tell("encode", Binary(np.arange(2)))
    return closing(found)


def course_of_vertices(X, y, at):
    """Return the column gradients before each of some released steps."""
    with workers(X, y, at) as found:
        steps = RoundSteps(Logistic(0.5), BOUND, X.shape[1], 8, 2.5, 32)
        alpha = sum_of(found.begin("begin_vertices", steps))
        course = [alpha.copy()]
        rng = np.random.default_rng(5)
        for step in range(1, 8):
            vertex = rng.integers(alpha.size, size=1), rng.choice([-1, 1], 1).astype(np.int8)
            changes = added_up(found.call("move", step, *vertex))
            alpha[changes.coordinates] += changes.amounts
            course.append(alpha.copy())
    return np.array(course)


def course_of_gradients(X, y, at):
    scaling = Scaling(np.zeros(0, dtype=np.int64), 0.1, None)
    with workers(X, y, at) as found:
        found.begin("begin_sums", SumSteps(Logistic(0.5), "part", (scaling, 2.0**33, None)))
        weights = np.random.default_rng(5).normal(0.0, 3.0, (4, X.shape[1] + 1))
        return np.array([sum_of(found.call("sums", row)) for row in weights])


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_neighbours_over_partitions_differ_by_at_most_the_sensitivity(relation):
    """Whichever partition holds the record, and wherever the others are cut."""
    farthest, farthest_gradient = 0.0, 0.0
    times = 2.0 if relation == "replace-one" else 1.0
    for pair in pairs(relation):
        rows = [X.astype(np.float64) for X in pair.rows]
        for ends in ((6, 6), (11, 10), (len(rows[0]) - 2, len(rows[1]) - 2)):
            one, other = map(course_of_vertices, rows, pair.labels, ends)
            moved = np.abs(one - other).max() / (2.0**32 / (BOUND * 0.5))
            assert moved <= times * BOUND * 0.5, pair.name
            farthest = max(farthest, moved)
            one, other = map(course_of_gradients, rows, pair.labels, ends)
            length = np.sqrt(((one - other).astype(float) ** 2).sum(axis=1)).max() / 2.0**33
            assert length <= times * 0.5, pair.name
            farthest_gradient = max(farthest_gradient, length)
    # The bounds are met: a partition that counted twice would be seen.
    assert farthest > 0.99 * times * BOUND * 0.5
    assert farthest_gradient > 0.49


def imports_of(path):
    """Return the modules that a module of the package imports, in full."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return found


def file_of(module):
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


# Modules of what a worker computes with, and all that they import of the package.
WORKER = (
    "dplasso.cluster.worker",
    "dplasso.frank_wolfe.round_part",
    "dplasso.gradient_descent.gradient_rows",
)
# Reading a store and writing files: locks look at clocks, temporary files have random names.
# Directions are learnt from public rows before a fit. A notice says how long compiling takes.
READING = (
    *("dplasso.data.store", "dplasso.files"),
    *("dplasso.matrix.geometry", "dplasso.runtime.compilation"),
)
FORBIDDEN = ("random", "secrets", "time", "datetime", "uuid", "dplasso.privacy.randomness")


def reached(start, leave_out=READING):
    found, waiting = set(), list(start)
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found.add(module)
        ours = [name for name in imports_of(file_of(module)) if name.startswith("dplasso.")]
        waiting += [name for name in ours if not name.startswith(leave_out)]
    return found


def test_a_worker_has_no_randomness_and_no_clock():
    modules = reached(WORKER)
    assert {"dplasso.frank_wolfe.gradient", "dplasso.losses.logistic"} <= modules
    for module in modules:
        path = file_of(module)
        taken = {name for name in imports_of(path) if name.split(".")[0] in FORBIDDEN}
        assert not taken | (imports_of(path) & set(FORBIDDEN)), module
        text = path.read_text()
        assert "np.random" not in text, module
        assert "urandom" not in text, module


def test_the_check_sees_randomness_where_there_is_some():
    assert "dplasso.privacy.randomness" in imports_of(file_of("dplasso.frank_wolfe.rounds"))


def test_a_store_is_in_a_fit_once(tmp_path):
    X, y = records(40, 12)
    store, copy, link = tmp_path / "a.store", tmp_path / "b.store", tmp_path / "c.store"
    write_store(matrix_source(X, y), store)
    shutil.copytree(store, copy)
    link.symlink_to(store)
    model = dplasso.DPLogisticRegression(1.0)
    for other, sentence in (
        (store, "is given twice"),
        (link, "is given twice"),
        (open_store(store), "is given twice"),
        (copy, "holds the same rows as another partition"),
    ):
        with pytest.raises(DataError, match=sentence):
            model.fit([store, other], engine=InProcessEngine())
    assert not hasattr(model, "model_")
