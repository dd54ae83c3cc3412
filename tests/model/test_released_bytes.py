"""Equal releases, equal bytes: nothing else of the data gets into what is written of a model.

Two neighbouring data sets are fitted with the same seed, and their statistics are taken from a
table instead of the data: so they release the same. Model file, report, statement and all that
`show` and `fit` print of them, but for what `fit` marks as the curator's, must be the same bytes.
"""

import json
import re
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from dplasso import DPLasso, DPLassoClassifier, DPLinearRegression, DPLogisticRegression
from dplasso.cli.app import app
from dplasso.cli.output import NOT_FOR_RELEASE
from dplasso.fit import records, stages
from dplasso.gradient_descent import run as gradient_run
from dplasso.gradient_descent.row_part import GradientPart
from dplasso.gradient_descent.slopes import Margins
from dplasso.model.report import report_section
from dplasso.selection.replay import replay_state

COLUMNS = 500
TWO = {"classes": [0, 1], "random_state": 3}
FOUR = {"classes": [0, 1, 2, 3], "random_state": 3}
BOUNDS = {"target_bounds": (0.0, 3.0), "random_state": 3}
MODELS = {
    "lasso": DPLassoClassifier(2.0, **TWO),
    "lasso, refit": DPLassoClassifier(9.0, refit=0.3, n_iter=12, **TWO),
    "lasso, no refit": DPLassoClassifier(2.0, refit=None, n_iter=12, **TWO),
    "lasso, given steps": DPLassoClassifier(2.0, n_iter=12, l1_radius=5.0, **TWO),
    "lasso, N public": DPLassoClassifier(2.0, n_records=90, **TWO),
    "lasso of four": DPLassoClassifier(2.0, **FOUR),
    "lasso of numbers": DPLasso(2.0, **BOUNDS),
    "logistic": DPLogisticRegression(2.0, n_iter=20, **TWO),
    "short list": DPLogisticRegression(2.0, n_iter=20, max_weights=5, **TWO),
    "significant": DPLogisticRegression(2.0, n_iter=20, max_weights="significant", **TWO),
    "logistic of four": DPLogisticRegression(2.0, n_iter=20, **FOUR),
    "linear": DPLinearRegression(2.0, n_iter=20, **BOUNDS),
    "linear, replace-one": DPLinearRegression(2.0, n_iter=20, neighbors="replace-one", **BOUNDS),
}


def table(size, unit):
    """Return the statistics that a fit is told, whatever its data are."""
    return np.rint(unit * np.sin(np.arange(1, size + 1))).astype(np.int64)


@contextmanager
def same_releases():
    """Take every statistic from a table, so that fits with one seed release the same."""

    def selector(settings, mechanism, problem):
        vertex = np.arange(200) * 7 % problem.n_coordinates
        return replay_state(vertex, np.where(vertex % 2, 1, -1).astype(np.int8))

    def gradients(self, begin, end):
        return table((end - begin) * self.n_outputs, 8.0 * self._unit)

    def counts(exact, *_):
        return np.full(len(exact), 75.5)

    with (
        mock.patch.object(records, "vertex_selector", selector),
        mock.patch.object(stages, "noisy_counts", counts),
        mock.patch.object(gradient_run, "noisy_counts", counts),
        mock.patch.object(GradientPart, "begin"),
        mock.patch.object(GradientPart, "sums", gradients),
        mock.patch.object(Margins, "sums", lambda _, given, unit: table(given.size, unit)),
    ):
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


def written(estimator, data, folder):
    """Fit, and return everything that is written of the model, by what it is."""
    folder.mkdir()
    with same_releases(), np.errstate(all="ignore"):
        estimator.fit(*data)
    path = folder / "model.npz"
    estimator.save(path)
    page = folder / "page.html"

    def said(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.output.replace(str(folder), "FOLDER")

    said("report", path, "--out", page)
    return {
        "model file": path.read_bytes(),
        "report": re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "TODAY", page.read_text()),
        "report in a notebook": report_section(estimator.model_),
        "statement": estimator.privacy_.to_json(),
        "statement in words": str(estimator.privacy_),
        "show": said("show", path, "--explain", "--top", 50),
        "show as JSON": said("show", path, "--json"),
        "weights": repr(estimator.weights()),
        "attributes": repr((estimator.n_iter_, estimator.n_features_in_, estimator.intercept_)),
    }


@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_is_the_same(name, tmp_path):
    pairs = neighbours(4 if "four" in name else 2)
    found = {
        different: written(MODELS[name], data, tmp_path / different)
        for different, data in pairs.items()
    }
    first = found.pop("nothing")
    for different, other in found.items():
        for kind, content in first.items():
            assert other[kind] == content, f"{different} is seen in {kind}"


def test_other_releases_give_other_bytes(tmp_path):
    """What is compared is made of the releases: it sees those of other statistics."""
    data = neighbours(2)["nothing"]
    for name in ("lasso", "logistic"):
        first = written(MODELS[name], data, tmp_path / name)
        with mock.patch(f"{__name__}.table", lambda size, unit: np.full(size, int(unit))):
            other = written(MODELS[name], data, tmp_path / f"{name}, other")
        for kind in ("model file", "report", "show as JSON", "attributes"):
            assert first[kind] != other[kind]


def write_svmlight(path, X, y):
    lines = []
    for row, label in zip(X, y, strict=True):
        columns = np.flatnonzero(row)
        entries = " ".join(f"{j + 1}:{row[j]:.4g}" for j in columns)
        lines.append(f"{label} {entries}\n")
    path.write_text("".join(lines))


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_what_fit_prints_is_the_same_or_marked(method, tmp_path, monkeypatch):
    pairs, found = neighbours(2), []
    for different in ("nothing", "labels", "one row more", "half of the rows"):
        folder = tmp_path / different
        folder.mkdir()
        monkeypatch.chdir(folder)
        write_svmlight(folder / "rows.svm", *pairs[different])
        write_svmlight(folder / "test.svm", *pairs[different])
        common = ["fit", "rows.svm", "--method", method, "--classes", "0,1", "--features"]
        common += [str(COLUMNS), "--epsilon", "2", "--seed", "3", "--test", "test.svm"]
        with same_releases():
            kept = ["--model", "m.npz", "--statement", "s.json", "--checkpoint", "c.npz"]
            text = CliRunner().invoke(app, [*common, *kept, "--explain"])
            whole = CliRunner().invoke(app, [*common, "--json"])
        assert text.exit_code == whole.exit_code == 0, text.output + whole.output
        report = json.loads(whole.stdout)
        # The names of what is the curator's are public, and so is what is left without it.
        for marked in report["not_for_release"]:
            assert report.pop(marked) is not None
        public, mark, private = text.stdout.partition(NOT_FOR_RELEASE)
        assert mark
        assert all(f"\n{told} " in private for told in ("data", "test", "seconds"))
        model, statement = (folder / "m.npz").read_bytes(), (folder / "s.json").read_text()
        found.append((public, report, model, statement))
    for other in found[1:]:
        assert other == found[0]
