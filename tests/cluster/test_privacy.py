"""What a worker is made of, and that a partition is in a fit once."""

import ast
import shutil
from pathlib import Path

import numpy as np
import pytest

import dplasso
from cluster.cases import records
from dplasso import DataError, open_store, write_store
from dplasso.cluster import InProcessEngine

PACKAGE = Path(dplasso.__file__).parent


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
    # The check sees randomness where there is some.
    assert "dplasso.privacy.randomness" in imports_of(file_of("dplasso.frank_wolfe.rounds"))


def test_a_store_is_in_a_fit_once(tmp_path):
    X, y = records(40, 12)
    store, copy, link = tmp_path / "a.store", tmp_path / "b.store", tmp_path / "c.store"
    write_store(store, X, y)
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


def test_stores_of_one_value_or_of_words_differ_by_what_these_are(tmp_path):
    X, words = (records(40, 12)[0] != 0).astype(float), np.array(["no", "yes"] * 20)
    cases = [(X, words), (2.0 * X, words), (X, words[::-1])]
    stores = [write_store(tmp_path / f"{k}", *of) for k, of in enumerate(cases)]
    model = dplasso.DPLogisticRegression(8.0).fit(stores, engine=InProcessEngine())
    assert model.n_records_ > 40
