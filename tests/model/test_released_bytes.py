"""Equal releases, equal bytes: nothing else of the data gets into what is written of a model.

Two neighbouring data sets are fitted with the same seed, and the door answers both from a table: so
they release the same. Model file, report, statement and all that `fit` prints of them, but for what
it marks as the curator's, must be the same bytes. `report` and `show` read the model file alone.
"""

import json
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.audit.replay import replay_state
from sklearn.datasets import dump_svmlight_file

from cli.conftest import run_command
from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
)
from dplasso.privacy import release as door_module
from dplasso.privacy.release import Door
from dplasso.report.page import report_section
from recorded_fits import short_runs

COLUMNS = 500
TWO = {"classes": [0, 1], "random_state": 3}
FOUR = {"classes": [0, 1, 2, 3], "random_state": 3}
BOUNDS = {"target_bounds": (0.0, 3.0), "random_state": 3}
MODELS = {
    "lasso": DPLassoClassifier(2.0, **TWO),
    "lasso, refit": DPLassoClassifier(9.0, max_weights=12, **TWO),
    "frank-wolfe": DPFrankWolfeClassifier(2.0, n_iter=12, l1_radius=5.0, **TWO),
    "frank-wolfe, N public": DPFrankWolfeClassifier(2.0, n_iter=12, n_records=90, **TWO),
    "lasso of four": DPLassoClassifier(2.0, **FOUR),
    "lasso of numbers": DPLasso(2.0, **BOUNDS),
    "logistic": DPLogisticRegression(2.0, **TWO),
    "short list": DPLogisticRegression(2.0, max_weights=5, **TWO),
    "logistic of four": DPLogisticRegression(2.0, **FOUR),
    "linear": DPLinearRegression(2.0, **BOUNDS),
    "linear, replace-one": DPLinearRegression(2.0, neighbors="replace-one", **BOUNDS),
}


class Table(Door):
    """Answers every statistic from a table, and draws the vertices of one."""

    counted = False

    def values(self, size):
        return 8.0 * np.sin(np.arange(1, size + 1))

    def release(self, statistic, sensitivity, noise):
        answer = self.values(statistic.size)
        if not self.counted and statistic.size <= 4:
            # A fit begins with its counts.
            answer += 70.0
        self.counted = True
        statistic[:] = np.rint(sensitivity * answer).astype(np.int64).reshape(statistic.shape)
        return statistic

    def drawing_from(self, selector, sensitivity):
        vertex = np.arange(200) * 7 % COLUMNS
        return replay_state(vertex, np.where(self.values(200) > 0.0, 1, -1).astype(np.int8))


class OtherTable(Table):
    def values(self, size):
        return 8.0 * np.cos(np.arange(1, size + 1))


@contextmanager
def same_releases(door=Table):
    """Put a table in the place of the door, so that fits with one seed release the same."""
    told = mock.patch.object(door_module, "_door", door())
    with told, np.errstate(all="ignore"), short_runs():
        yield


def neighbours(n_classes):
    """Return data sets by what is different in them from the first."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, COLUMNS)) < 0.05, rng.normal(size=(80, COLUMNS)), 0.0)
    y = rng.integers(0, n_classes, 80)
    flipped = y.copy()
    flipped[:40] = (flipped[:40] + 1) % n_classes
    hostile = X.copy()
    hostile[3], hostile[4], hostile[5, ::2] = 1.7e308, 5e-324, 0.0
    hostile[6, :9] = [1e300, -1e300, 1e-300, -0.0, 3.4e38, 1e39, -1.7e308, 2.0**53, 1.0]
    # Entries that are finite one by one.
    once = sp.csr_array(X)
    at = np.full(2, once.indptr[7])
    parts = np.insert(once.data, at, 1.7e308), np.insert(once.indices, at, 2)
    doubled = sp.csr_array((*parts, once.indptr + 2 * (np.arange(81) > 7)), shape=X.shape)
    return {
        "nothing": (X, y),
        "labels": (X, flipped),
        "one row more": (np.vstack([X, X[:1]]), np.append(y, y[0])),
        "half of the rows": (X[:40], y[:40]),
        "one row": (X[:1], y[:1]),
        "one class": (X, np.zeros_like(y)),
        "no entries": (0.0 * X, y),
        "hostile rows": (hostile, y),
        "duplicates": (doubled, y),
    }


def written(estimator, data, path, door=Table):
    """Fit, and return everything that is written of the model, by what it is."""
    with same_releases(door):
        estimator.fit(*data)
    estimator.save(path)
    return {
        "model file": path.read_bytes(),
        "report": report_section(estimator.model_),
        "statement": estimator.privacy_.to_json(),
        "statement in words": str(estimator.privacy_),
        "weights": repr(estimator.weights()),
        "attributes": repr((estimator.n_iter_, estimator.n_features_in_, estimator.intercept_)),
    }


@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_is_the_same(name, tmp_path):
    pairs = neighbours(4 if "four" in name else 2)
    found = {
        different: written(MODELS[name], data, tmp_path / "model.npz")
        for different, data in pairs.items()
    }
    first = found.pop("nothing")
    for different, other in found.items():
        for kind, content in first.items():
            assert other[kind] == content, f"{different} is seen in {kind}"


@pytest.mark.parametrize("name", ["lasso", "logistic"])
def test_other_releases_give_other_bytes(name, tmp_path):
    """What is compared is made of the releases: it sees those of other statistics."""
    data = neighbours(2)["nothing"]
    first, other = (
        written(MODELS[name], data, tmp_path / "model.npz", door) for door in (Table, OtherTable)
    )
    for kind in ("model file", "report", "weights"):
        assert first[kind] != other[kind]


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_what_fit_prints_is_the_same_or_marked(method, tmp_path, monkeypatch):
    pairs, found = neighbours(2), []
    for different in ("nothing", "labels", "half of the rows"):
        folder = tmp_path / different
        folder.mkdir()
        monkeypatch.chdir(folder)
        for name in ("rows.svm", "test.svm"):
            dump_svmlight_file(*pairs[different], name, zero_based=False)
        common = ["fit", "rows.svm", "--method", method, "--classes", "0,1", "--features"]
        common += [str(COLUMNS), "--epsilon", "2", "--seed", "3", "--test", "test.svm"]
        kept = ["--model", "m.npz", "--checkpoint", "c.npz"]
        with same_releases():
            text = run_command(*common, *kept, "--explain")
        with same_releases():
            whole = run_command(*common, "--json")
        assert text.exit_code == whole.exit_code == 0, text.output + whole.output
        report = json.loads(whole.stdout)
        # The names of what is the curator's are public, and so is what is left without it.
        for marked in report["not_for_release"]:
            assert report.pop(marked) is not None
        public, mark, private = text.stdout.partition("For the curator only. Do not release:")
        assert mark
        assert all(f"\n{told} " in private for told in ("data", "test", "seconds"))
        found.append((public, report, (folder / "m.npz").read_bytes()))
    for other in found[1:]:
        assert other == found[0]
