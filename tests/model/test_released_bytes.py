"""Equal releases, equal bytes: nothing else of the data gets into what is written of a model.

Two neighbouring data sets are fitted by every plan with the same seed, and the door answers both
from a table: so they release the same. Model file, report, statement and all that `fit` prints of
them, but for what it marks as the curator's, must be the same bytes. `report` and `show` read the
model file alone.
"""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from cli.conftest import done, run_command
from phases.cases import N_COLUMNS, PLANS, Answers, Notes, at_the_door, small

# Plans of columns that no schema made.
NAMES = [name for name, case in PLANS.items() if case.schema is None]


def neighbours(targets=2):
    """Return data sets by what is different in them from the first."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, N_COLUMNS)) < 0.4, rng.normal(size=(80, N_COLUMNS)), 0.0)
    n_classes = targets if isinstance(targets, int) else 2
    y = rng.integers(0, n_classes, (80, 3) if targets == "labels" else 80)
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
        "one row more": (np.vstack([X, X[:1]]), np.concatenate([y, y[:1]])),
        "half of the rows": (X[:40], y[:40]),
        "one row": (X[:1], y[:1]),
        "one class": (X, np.zeros_like(y)),
        "no entries": (0.0 * X, y),
        "hostile rows": (hostile, y),
        "duplicates": (doubled, y),
    }


def written(name, data, path, door=Answers):
    """Fit by a plan, and return everything that is written of the model, by what it is."""
    estimator = clone(PLANS[name].estimator).set_params(random_state=3)
    with small(PLANS[name]), at_the_door(door()):
        estimator.fit(*data)
    estimator.save(path)
    page = path.with_suffix(".html")
    done("report", path, "--out", page, "--force")
    return {
        "model file": path.read_bytes(),
        # But for the time at which it was written.
        "report": re.sub(r"\d\d:\d\d UTC", "", page.read_text(encoding="utf-8")),
        "statement": estimator.privacy_.to_json(),
        "statement in words": str(estimator.privacy_),
        "weights": repr(estimator.weights()),
        "attributes": repr((estimator.n_iter_, estimator.n_features_in_, estimator.intercept_)),
    }


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_the_same(name, tmp_path):
    pairs = neighbours(PLANS[name].targets)
    found = {
        different: written(name, data, tmp_path / "model.npz") for different, data in pairs.items()
    }
    first = found.pop("nothing")
    for different, other in found.items():
        for kind, content in first.items():
            assert other[kind] == content, f"{different} is seen in {kind}"


@pytest.mark.parametrize("name", ["lasso", "logistic"])
def test_other_releases_give_other_bytes(name, tmp_path):
    """What is compared is made of the releases: it sees those of other statistics."""
    data = neighbours()["nothing"]
    first, other = (written(name, data, tmp_path / "m.npz", door) for door in (Answers, Notes))
    for kind in ("model file", "report", "weights"):
        assert first[kind] != other[kind]


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_what_fit_prints_is_the_same_or_marked(method, tmp_path, monkeypatch):
    pairs, found = neighbours(), []
    for different in ("nothing", "labels", "half of the rows"):
        folder = tmp_path / different
        folder.mkdir()
        monkeypatch.chdir(folder)
        for name in ("rows.svm", "test.svm"):
            dump_svmlight_file(*pairs[different], name, zero_based=False)
        common = ["fit", "rows.svm", "--method", method, "--classes", "0,1", "--features"]
        common += [str(N_COLUMNS), "--epsilon", "2", "--seed", "3", "--test", "test.svm"]
        kept = ["--model", "m.npz", "--checkpoint", "c.npz"]
        with small(PLANS[method]), at_the_door(Answers()):
            text = run_command(*common, *kept, "--explain")
        with small(PLANS[method]), at_the_door(Answers()):
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
