"""An estimator with a ledger: every fit of it, of its clones and of their copies is charged."""

import json
import pickle
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dplasso import BudgetError, DPLassoClassifier, LedgerError, LedgerWarning, load
from dplasso.fit import run as fitting
from dplasso.fit.records import LocalRecords
from dplasso.ledger import (
    Payment,
    charged,
    create_ledger,
    largest_epsilon,
    opening,
    read_budgets,
    rejoin,
    store,
)
from dplasso.model.release import digest_of
from dplasso.privacy.mechanisms import build_mechanism
from ledger.workers import charge, small_problem

X, Y = small_problem()


@pytest.fixture
def path(tmp_path):
    create_ledger(tmp_path / "team.ledger", 3.0, 1e-5, dataset="visits")
    return str(tmp_path / "team.ledger")


@pytest.fixture
def model(path):
    return DPLassoClassifier(0.5, n_iter=5, l1_radius=10.0, ledger=path, dataset="visits")


def entries(path):
    return read_budgets(path)[0].entries


def write_and_read(model, path):
    model.save(f"{path}.npz")
    with np.load(f"{path}.npz") as file:
        return json.loads(file["header"].tobytes())["params"]


def states(path):
    return [entry.state for entry in entries(path)]


class TestOneFit:
    def test_it_is_charged_what_its_statement_says(self, path, model):
        model.fit(X, Y)
        (entry,) = entries(path)
        assert entry.state == "finished"
        assert replace(entry.charge, fingerprint=None) == charge(0.5, 1e-6, 5)
        assert model.privacy_.is_private
        assert entry.charge.eps0 == pytest.approx(model.privacy_.eps0, rel=1e-5)

    def test_it_knows_the_model_its_purpose_and_whose_rows(self, path, model):
        model.set_params(purpose="readmission, spring").fit(X, Y)
        clone(model).set_params(feature_bound=0.5).fit(X, np.array(["a", "b"])[1 * (Y.max() == Y)])
        model.set_params(purpose=None, rows_per_person=3).fit(X[:-1], Y[:-1])
        first, recoded, other = entries(path)
        assert [entry.charge.rows_per_person for entry in entries(path)] == [1, 1, 3]
        assert other.release == digest_of(model.model_.release)
        assert len({entry.release for entry in entries(path)}) == 3
        assert [entry.charge.purpose for entry in entries(path)] == [
            *("readmission, spring", "readmission, spring", None)
        ]
        # The same people, however their columns and labels are written; and others.
        assert first.charge.fingerprint == recoded.charge.fingerprint
        assert first.charge.fingerprint != other.charge.fingerprint
        assert "purpose" not in {**write_and_read(model, path)}

    @pytest.mark.parametrize("purpose", ["", "two\nlines", "x" * 201])
    def test_a_purpose_is_one_line(self, path, model, purpose):
        with pytest.raises(LedgerError, match="purpose must be one line"):
            model.set_params(purpose=purpose).fit(X, Y)
        assert not entries(path)

    def test_a_purpose_without_a_ledger_is_refused(self):
        with pytest.raises(LedgerError, match="purpose='none' needs a ledger"):
            DPLassoClassifier(purpose="none").fit(X, Y)

    def test_a_path_object_will_do(self, path, model):
        model.set_params(ledger=Path(path), dataset=None).fit(X, Y)
        assert states(path) == ["finished"]

    def test_each_fit_is_charged_anew(self, path, model):
        model.fit(X, Y).fit(X, Y)
        assert states(path) == ["finished"] * 2

    def test_it_is_charged_before_the_first_draw(self, path, model, monkeypatch):
        seen = []
        real = fitting.run_in_chunks

        def run(*arguments, **options):
            seen.append(states(path))
            real(*arguments, **options)

        monkeypatch.setattr(fitting, "run_in_chunks", run)
        model.fit(X, Y)
        assert seen == [["reserved"]]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError, SystemExit])
    def test_a_failure_in_training_stays_spent(self, path, model, monkeypatch, error):
        def fail(*_, **__):
            raise error("in training")

        monkeypatch.setattr(fitting, "run_in_chunks", fail)
        with pytest.raises(error):
            model.fit(X, Y)
        assert states(path) == ["failed"]
        assert not hasattr(model, "coef_")

    @pytest.mark.parametrize(
        ("data", "labels"),
        [
            (np.where(X > 0, np.nan, X), Y),
            (np.where(X > 0, np.inf, X), Y),
            (X, np.zeros(len(Y))),
            (X, Y[:-1]),
            (X[:, :0], Y),
        ],
        ids=["nan", "infinity", "one label", "lengths", "no columns"],
    )
    def test_bad_data_spends_nothing(self, path, model, data, labels):
        with pytest.raises(ValueError):
            model.fit(data, labels)
        assert entries(path) == ()

    def test_too_little_left(self, path, model, monkeypatch):
        model.set_params(epsilon=2.9).fit(X, Y)
        before = model.transcript_

        def fail(*_):
            raise AssertionError("the data was laid out")

        monkeypatch.setattr(LocalRecords, "problem", fail)
        with pytest.raises(BudgetError, match=r"asks for epsilon 2\.9 .* at most epsilon"):
            model.fit(X, Y)
        assert len(entries(path)) == 1
        assert model.transcript_ is before

    def test_the_last_of_it_taken_by_another_meanwhile(self, path, model, monkeypatch):
        real = LocalRecords.problem

        def problem(*arguments):
            store.reserve(path, None, charge(2.99, 1e-5))
            return real(*arguments)

        monkeypatch.setattr(LocalRecords, "problem", problem)
        with pytest.raises(BudgetError):
            model.fit(X, Y)
        assert len(entries(path)) == 1

    def test_as_many_fits_as_planned(self, path, model):
        (budget,) = read_budgets(path)
        model.set_params(epsilon=largest_epsilon(budget, delta=1e-6, n_iter=5, fits=7))
        for _ in range(7):
            model.fit(X, Y)
        with pytest.raises(BudgetError):
            model.set_params(epsilon=0.001).fit(X, Y)
        assert len(entries(path)) == 7

    def test_the_end_that_cannot_be_noted(self, path, model, monkeypatch):
        real = fitting.run_in_chunks

        def run(*arguments, **options):
            Path(path).rename(path + ".away")
            real(*arguments, **options)

        monkeypatch.setattr(fitting, "run_in_chunks", run)
        with pytest.warns(LedgerWarning, match="was charged, but its end could not be recorded"):
            model.fit(X, Y)
        assert model.coef_.shape == (1, 20)
        Path(path + ".away").rename(path)
        assert states(path) == ["reserved"]


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"random_state": 0}, "random_state is not private"),
            ({"random_state": np.random.default_rng(0)}, "random_state is not private"),
            ({"epsilon": float("inf"), "selector": "argmax"}, "infinite epsilon is not private"),
            ({"mechanism": "paper"}, "mechanism='paper' is not private"),
            ({"neighbors": "replace-one"}, "the two promises do not add up"),
            ({"dataset": "vistis"}, "has no data set 'vistis'"),
            ({"dataset": ""}, "dataset must be one line"),
            ({"ledger": None}, "none is given"),
            ({"ledger": "missing.ledger"}, "there is no ledger missing.ledger"),
        ],
    )
    def test_in_one_sentence_and_nothing_spent(self, path, model, changes, words):
        model.set_params(**changes)
        with pytest.raises(LedgerError, match=words):
            model.fit(X, Y)
        assert entries(path) == ()
        assert not hasattr(model, "coef_")

    @pytest.mark.parametrize("changes", [{"ledger": 5}, {"dataset": 5}])
    def test_of_the_wrong_kind(self, model, changes):
        with pytest.raises(TypeError):
            model.set_params(**changes).fit(X, Y)


class TestCopies:
    def test_a_clone_charges_the_same_ledger(self, path, model):
        clone(model).fit(X, Y)
        pickle.loads(pickle.dumps(model)).fit(X, Y)
        clone(clone(model)).fit(X, Y)
        assert states(path) == ["finished"] * 3

    def test_processes(self, path, model):
        Parallel(n_jobs=2)(delayed(clone(model).fit)(X, Y) for _ in range(4))
        assert states(path) == ["finished"] * 4
        assert sorted(entry.number for entry in entries(path)) == [1, 2, 3, 4]

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_grid_search(self, path, model, n_jobs):
        model.set_params(epsilon=0.1)
        GridSearchCV(model, {"l1_radius": [1.0, 3.0]}, cv=3, n_jobs=n_jobs).fit(X, Y)
        # Two candidates on three folds, and the refit.
        assert states(path) == ["finished"] * 7

    def test_a_search_beyond_the_budget_stops_spending(self, path, model):
        model.set_params(epsilon=1.5)
        search = GridSearchCV(model, {"l1_radius": [1.0, 2.0, 3.0, 4.0]}, cv=2, refit=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(X, Y)
        assert any(issubclass(one.category, FitFailedWarning) for one in caught)
        assert 0 < len(entries(path)) < 8
        scores = search.cv_results_["mean_test_score"]
        assert np.isnan(scores).any()
        with pytest.raises(BudgetError):
            cross_val_score(model, X, Y, cv=2, error_score="raise")

    def test_cross_validation_of_a_pipeline(self, path, model):
        pipeline = make_pipeline(FunctionTransformer(), model)
        cross_val_score(pipeline, X, Y, cv=3)
        assert states(path) == ["finished"] * 3


class TestRelease:
    def test_no_word_of_the_ledger_in_model_and_statement(self, path, model, tmp_path):
        out = tmp_path / "model.npz"
        model.fit(X, Y).save(out)
        plain = tmp_path / "plain.npz"
        DPLassoClassifier(0.5, n_iter=5, l1_radius=10.0).fit(X, Y).save(plain)
        with zipfile.ZipFile(out) as archive:
            content = b"".join(archive.read(name) for name in archive.namelist())
        for word in (b"ledger", b"visits", str(tmp_path).encode()):
            assert word not in content
        for text in (model.privacy_.to_json(), model.privacy_.text()):
            assert "visits" not in text
            assert "team.ledger" not in text
        with np.load(out) as one, np.load(plain) as other:
            header, header_of_plain = (
                json.loads(file["header"].tobytes()) for file in (one, other)
            )
        # What programs from before the ledger wrote and can read.
        assert header["params"] == header_of_plain["params"]

    def test_a_loaded_model_has_no_ledger(self, path, model, tmp_path):
        model.fit(X, Y).save(tmp_path / "model.npz")
        loaded = load(tmp_path / "model.npz")
        assert (loaded.ledger, loaded.dataset) == (None, None)
        loaded.fit(X, Y)
        assert len(entries(path)) == 1


class TestResumed:
    mechanism = build_mechanism(epsilon=1.0, delta=1e-6, n_iter=10)

    def interrupted(self, path):
        with pytest.raises(KeyboardInterrupt), charged(path, None, self.mechanism) as made:
            raise KeyboardInterrupt
        again = rejoin(path, made.number, made.token, charge(1.0, 1e-6, 10))
        return Payment(lambda: again, lambda: "the release")

    def test_it_pays_nothing_more(self, path):
        again = self.interrupted(path)
        with charged(path, None, self.mechanism, payment=again) as reservation:
            assert states(path) == ["failed"]
        assert reservation == again.take()
        assert states(path) == ["finished"]

    def test_one_charge_pays_for_one_model(self, path):
        again = self.interrupted(path)
        with (
            pytest.raises(LedgerError, match="has meanwhile paid for another model"),
            charged(path, None, self.mechanism, payment=again),
            charged(path, None, self.mechanism, payment=replace(again, release=lambda: "other")),
        ):
            pass

    def test_the_same_model_may_be_had_again(self, path):
        again = self.interrupted(path)
        for _ in range(2):
            with charged(path, None, self.mechanism, payment=again):
                pass
        assert states(path) == ["finished"]

    def test_an_end_that_cannot_be_noted_is_an_error(self, path, monkeypatch):
        again = self.interrupted(path)
        monkeypatch.setattr(opening, "APPLICATION_ID", 7)
        with (
            pytest.raises(LedgerError, match="is not a dplasso ledger"),
            charged(path, None, self.mechanism, payment=again),
        ):
            pass
