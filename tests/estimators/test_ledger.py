"""An estimator with a ledger: every fit of it, of its clones and of their copies is charged."""

import errno
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from cli.conftest import charged_to
from dplasso import BudgetError, Ledger, LedgerError, LedgerWarning, load, write_store
from dplasso.ledger import create_ledger
from estimators.kinds import KINDS, few, make
from ledger.workers import small_problem
from model.files import header_of

X, Y = small_problem()


@pytest.fixture
def path(tmp_path):
    create_ledger(tmp_path / "team.ledger", 3.0, 1e-5, dataset="visits")
    return str(tmp_path / "team.ledger")


@pytest.fixture
def model(path):
    return make("frank-wolfe", 0.5, n_iter=5, ledger=Ledger(path, dataset="visits"))


def states(path):
    return [entry.state for entry in charged_to(path)]


def during_training(monkeypatch, action):
    """Do something whenever the bar of a fit moves, which `verbose` shows."""
    monkeypatch.setattr(Progress, "update", lambda *_, **__: action())


@pytest.mark.parametrize("kind", KINDS)
class TestOfEveryKind:
    def test_a_fit_is_charged_what_its_statement_says_and_one_too_many_refused(
        self, kind, tmp_path
    ):
        path = tmp_path / "team.ledger"
        create_ledger(path, 1.1, 1e-5)
        model = make(kind, ledger=path).fit(*few(kind))
        (entry,) = charged_to(path)
        assert entry.state == "finished"
        assert entry.release == model.model_.digest
        if kind in ("logistic", "linear"):
            # The zCDP of a Gaussian mechanism that is mu-GDP is mu^2 / 2, never rounded down.
            rho = model.privacy_.mu**2 / 2 * 1e30
            assert rho <= entry.charge.rho == pytest.approx(rho, rel=1e-6)
        before = model.coef_
        with pytest.raises(BudgetError, match=r"asks for epsilon 1 .* at most epsilon"):
            model.fit(*few(kind))
        assert model.coef_ is before
        assert len(charged_to(path)) == 1

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"random_state": 0}, "random_state is not private"),
            ({"random_state": np.random.default_rng(0)}, "random_state is not private"),
            ({"epsilon": float("inf")}, "infinite epsilon is not private"),
            ({"neighbors": "replace-one"}, "the two promises do not add up"),
            ({"dataset": "vistis"}, "has no data set 'vistis'"),
            ({"ledger": "missing.ledger"}, "there is no ledger missing.ledger"),
        ],
    )
    def test_what_cannot_be_charged_is_refused(self, kind, path, changes, words):
        ledger = Ledger(path, dataset=changes.get("dataset"))
        own = {name: value for name, value in changes.items() if name != "dataset"}
        model = make(kind, **{"ledger": ledger} | own)
        with pytest.raises(LedgerError, match=words):
            model.fit(*few(kind))
        assert charged_to(path) == []
        assert not hasattr(model, "coef_")

    def test_bad_data_spend_nothing(self, kind, path, tmp_path):
        X, y = few(kind)
        dense, model = X.toarray(), make(kind, ledger=path)
        outside = X.copy()
        outside.indices[4] = 999
        damaged = write_store(tmp_path / "rows.store", X, y)
        place = next(damaged.path.glob("rows.values*"))
        place.write_bytes(place.read_bytes()[:-4] + np.float32(np.nan).tobytes())
        for rows, labels in [
            (np.where(dense > 0, np.nan, dense), y),
            (np.where(dense > 0, np.inf, dense), y),
            (X, np.full(120, "no")),
            (X, y[:-1]),
            (X[:, :0], y),
            (outside, y),
            (damaged, None),
        ]:
            with pytest.raises(ValueError):
                model.fit(rows, labels)
        assert charged_to(path) == []


def test_a_store_without_room_for_its_tiles_spends_nothing(path, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dplasso.data.store.opening.fill", full)
    store, model = write_store(tmp_path / "rows.store", X, Y), make("logistic", ledger=path)
    with pytest.raises(OSError, match=r"rows\.store needs room for .* while it lasts"):
        model.fit(store)
    assert charged_to(path) == []


class TestOneFit:
    def test_it_knows_the_model_its_purpose_and_whose_rows(self, path, model, tmp_path):
        model.set_params(ledger=Ledger(path, purpose="readmission, spring")).fit(X, Y)
        clone(model).set_params(feature_bound=0.5).fit(X, np.array(["a", "b"])[1 * (Y.max() == Y)])
        model.set_params(ledger=path, rows_per_person=3).fit(X[:-1], Y[:-1])
        first, recoded, other = charged_to(path)
        assert [entry.charge.rows_per_person for entry in charged_to(path)] == [1, 1, 3]
        assert other.release == model.model_.digest
        assert len({entry.release for entry in charged_to(path)}) == 3
        purposes = [entry.charge.purpose for entry in charged_to(path)]
        assert purposes == ["readmission, spring", "readmission, spring", None]
        # The same people, however their columns and labels are written; and others.
        assert first.charge.fingerprint == recoded.charge.fingerprint
        assert first.charge.fingerprint != other.charge.fingerprint
        model.save(tmp_path / "model.npz")
        assert "ledger" not in header_of(tmp_path / "model.npz")["params"]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError, SystemExit])
    def test_a_failure_in_training_stays_spent(self, path, model, monkeypatch, error):
        def fail():
            assert states(path) == ["reserved"]
            raise error("in training")

        during_training(monkeypatch, fail)
        with pytest.raises(error):
            model.set_params(verbose=1).fit(X, Y)
        assert states(path) == ["failed"]
        assert not hasattr(model, "coef_")

    def test_the_end_that_cannot_be_noted(self, path, model, monkeypatch):
        def move():
            if Path(path).exists():
                Path(path).rename(path + ".away")

        during_training(monkeypatch, move)
        with pytest.warns(LedgerWarning, match="was charged, but its end could not be recorded"):
            model.set_params(verbose=1).fit(X, Y)
        assert model.coef_.shape == (1, 20)
        Path(path + ".away").rename(path)
        assert states(path) == ["reserved"]


class TestCopies:
    def test_a_clone_charges_the_same_ledger(self, path, model):
        clone(model).fit(X, Y)
        pickle.loads(pickle.dumps(model)).fit(X, Y)
        clone(clone(model)).fit(X, Y)
        assert states(path) == ["finished"] * 3

    def test_a_search_beyond_the_budget_stops_spending(self, path, model):
        model.set_params(epsilon=1.5)
        search = GridSearchCV(model, {"l1_radius": [1.0, 2.0, 3.0, 4.0]}, cv=2, refit=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(X, Y)
        assert any(issubclass(one.category, FitFailedWarning) for one in caught)
        assert 0 < len(charged_to(path)) < 8
        assert np.isnan(search.cv_results_["mean_test_score"]).any()
        with pytest.raises(BudgetError):
            cross_val_score(model, X, Y, cv=2, error_score="raise")


def test_no_word_of_the_ledger_in_model_and_statement(path, model, tmp_path):
    out = tmp_path / "model.npz"
    model.fit(X, Y).save(out)
    with zipfile.ZipFile(out) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    for word in (b"ledger", b"visits", str(tmp_path).encode()):
        assert word not in content
    for text in (model.privacy_.to_json(), model.privacy_.text()):
        assert "visits" not in text
        assert "team.ledger" not in text
    # What programs from before the ledger wrote and can read.
    plain = tmp_path / "plain.npz"
    make("frank-wolfe", 0.5, n_iter=5).fit(X, Y).save(plain)
    assert header_of(out)["params"] == header_of(plain)["params"]
    loaded = load(out)
    assert loaded.ledger is None
    loaded.fit(X, Y)
    assert len(charged_to(path)) == 1
