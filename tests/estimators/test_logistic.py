"""DPLogisticRegression from outside: what a user gives, gets and keeps."""

import doctest
import json
import math
import pickle

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

import dplasso.estimators.logistic
from dplasso import BudgetError, DPLogisticRegression, PrivacyStatement, load
from dplasso.data.blocks import matrix_source
from dplasso.data.store import open_store, write_store
from dplasso.gradient_descent import run
from dplasso.gradient_descent.release import Calibration
from dplasso.ledger import create_ledger, read_budgets
from dplasso.losses.logistic import Logistic
from dplasso.model import read_model
from gradient_descent.cases import records
from neighbours import INPUT_KINDS, common_records

INF = float("inf")


def model(**options):
    return DPLogisticRegression(**({"n_iter": 12, "random_state": 0} | options))


@pytest.fixture(scope="module")
def data():
    X, _ = records(120, 12, density=0.8, seed=1)
    return X, np.where(X[:, 0] > 0, "yes", "no")


def numbers(fitted):
    weights = fitted.coef_ if isinstance(fitted.coef_, np.ndarray) else fitted.coef_.toarray()
    return np.append(weights.ravel(), fitted.intercept_)


# --- scikit-learn --------------------------------------------------------------------------------


def test_the_example_of_the_docs():
    results = doctest.testmod(dplasso.estimators.logistic)
    assert results.attempted
    assert not results.failed


def test_only_private_models_may_score_poorly():
    assert get_tags(model()).classifier_tags.poor_score
    assert not get_tags(model(epsilon=INF)).classifier_tags.poor_score


def test_clones_and_pickles(data):
    X, y = data
    fitted = model(max_weights=3).fit(X, y)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict_proba(X), fitted.predict_proba(X))
    again = clone(fitted)
    assert not hasattr(again, "coef_")
    np.testing.assert_array_equal(numbers(again.fit(X, y)), numbers(fitted))


def test_column_names_are_kept_and_checked(data, tmp_path):
    X, y = data
    frame = pandas.DataFrame(X, columns=[f"word {j}" for j in range(12)])
    fitted = model().fit(frame, y)
    fitted.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[frame.columns[::-1]])


# --- Parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_weights": 0}, "max_weights must be None"),
        ({"max_weights": "few"}, "max_weights must be None"),
        ({"max_weights": 2.5}, "max_weights must be None"),
        ({"row_norm": 0.0}, "row_norm must be positive"),
        ({"row_norm": INF}, "row_norm must be positive"),
        ({"residual_bound": 0.4}, "residual_bound must be"),
        ({"residual_bound": 1.1}, "residual_bound must be"),
        ({"residual_bound": "C"}, "residual_bound must be"),
        ({"n_records": 0}, "n_records must be"),
        ({"rows_per_person": 0}, "rows_per_person must be"),
        ({"neighbors": "some"}, "neighbors must be"),
        ({"n_iter": 0}, "n_iter must lie"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"delta": 1e-60}, "too small to cover the rounding"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_data(options, message):
    with pytest.raises(ValueError, match=message):
        model(**options).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("value", [math.nan, INF, -INF])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
def test_entries_that_are_no_numbers_are_refused(data, value, form):
    X, y = data[0].copy(), data[1]
    X[5, 3] = value
    unfitted = model()
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        unfitted.fit(form(X), y)
    assert not vars(unfitted).keys() - unfitted.get_params().keys()


def test_any_finite_entries_will_do(data):
    X, y = data
    huge = X * 10.0 ** np.linspace(-280, 300, 120)[:, None]
    for options in ({}, {"max_weights": 3}, {"epsilon": INF}):
        fitted = model(**options).fit(huge, y)
        assert np.isfinite(numbers(fitted)).all()
        # A row counts by its direction alone.
        np.testing.assert_allclose(numbers(fitted), numbers(model(**options).fit(X, y)), rtol=1e-5)


def test_rows_longer_than_the_norm_are_scaled_down(data):
    X, y = data
    bounded = model(epsilon=INF, row_norm=100.0).fit(X, y)
    unit = model(epsilon=INF).fit(X / 100.0, y)
    assert not np.allclose(numbers(bounded), numbers(unit))
    lengths = np.linalg.norm(X, axis=1)
    short = np.divide(X, lengths[:, None], out=np.zeros_like(X), where=lengths[:, None] > 0)
    one = model(epsilon=INF, row_norm=1e-3).fit(X, y)
    np.testing.assert_allclose(numbers(one), numbers(model(epsilon=INF).fit(short, y)), rtol=1e-6)
    # Prediction scales likewise: by R where rows are shorter.
    expected = X @ bounded.coef_.ravel() * math.sqrt(0.99) / 100.0 + bounded.intercept_
    np.testing.assert_allclose(bounded.decision_function(X), expected, rtol=1e-6)


def test_max_weights_in_all_its_forms(data):
    X, y = data
    dense = model(epsilon=20.0).fit(X, y)
    assert isinstance(dense.coef_, np.ndarray)
    short = model(epsilon=20.0, max_weights=4).fit(X, y)
    assert short.coef_.nnz == 4
    assert 0 in short.coef_.indices
    significant = model(epsilon=20.0, max_weights="significant").fit(X, y)
    z = np.abs(dense.coef_.ravel()) / dense.coef_standard_error_
    assert 0 < significant.coef_.nnz < 12
    assert set(significant.coef_.indices) == set(np.flatnonzero(z > 3))
    for fitted in (short, significant):
        assert (fitted.predict(X) == y).mean() > 0.8
    # As many as there are columns is no choice.
    np.testing.assert_array_equal(
        numbers(model(epsilon=20.0, max_weights=12).fit(X, y)), numbers(dense)
    )


def test_without_an_intercept_there_is_none(data):
    assert model(fit_intercept=False).fit(*data).intercept_.tolist() == [0.0]


def test_it_learns_where_there_is_something_to_learn(data):
    X, y = data
    many = np.tile(X, (20, 1)), np.tile(y, 20)
    for options in ({"epsilon": INF}, {"epsilon": 8.0}, {"epsilon": 8.0, "row_norm": 3.0}):
        assert model(n_iter="auto", **options).fit(*many).score(X, y) > 0.9


def test_probabilities_are_the_inverse_link_of_the_bound(data):
    X, y = data
    for options, bound in (({}, 0.5), ({"epsilon": INF}, 1.0), ({"residual_bound": 0.8}, 0.8)):
        fitted = model(**options).fit(X, y)
        assert fitted.privacy_.residual_bound == bound
        margins = fitted.decision_function(X)
        np.testing.assert_array_equal(fitted.predict_proba(X), Logistic(bound).link(margins))
        np.testing.assert_array_equal(fitted.predict_log_proba(X), np.log(fitted.predict_proba(X)))
        assert (fitted.predict(X) == fitted.classes_[(margins > 0).astype(int)]).all()


# --- Inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mixed", "binary"])
@pytest.mark.parametrize("options", [{}, {"max_weights": 3}], ids=["dense", "short"])
def test_every_form_of_input_and_number_of_threads_gives_the_same_bits(kind, options):
    X, y = common_records(kind)
    expected = numbers(model(**options).fit(X, y))
    for name, (dtype, form) in INPUT_KINDS.items():
        for n_jobs in (1, 3):
            given = form(X.astype(dtype))
            fitted = model(n_jobs=n_jobs, **options).fit(given, y)
            np.testing.assert_array_equal(numbers(fitted), expected, err_msg=name)
            np.testing.assert_array_equal(
                fitted.decision_function(given), fitted.decision_function(X)
            )


def test_a_store_brings_its_labels(tmp_path, data):
    X, y = data
    path = tmp_path / "records.store"
    write_store(matrix_source(X, (y == "yes").astype(int)), path, memory=2**27)
    fitted = model().fit(open_store(path))
    np.testing.assert_array_equal(numbers(fitted), numbers(model().fit(X, y)))


def test_the_caller_s_matrix_is_left_as_it_was(data):
    X, y = sp.csr_array(data[0]), data[1]
    kept = X.copy()
    model(max_weights=2).fit(X, y).predict(X)
    assert (kept != X).nnz == 0
    np.testing.assert_array_equal(X.indices, kept.indices)


def test_declared_classes(data):
    X, y = data
    turned = model(classes=("yes", "no")).fit(X, y)
    assert turned.classes_.tolist() == ["yes", "no"]
    assert turned.privacy_.classes == "declared"
    np.testing.assert_array_equal(
        numbers(model(epsilon=INF, classes=("yes", "no")).fit(X, y)),
        -numbers(model(epsilon=INF).fit(X, y)),
    )
    with pytest.raises(ValueError, match="declared classes"):
        model(classes=("no", "yes")).fit(X, np.where(X[:, 1] > 0, "maybe", y))
    assert model(classes=("no", "yes")).fit(X, np.full(120, "no")).classes_.size == 2


# --- People --------------------------------------------------------------------------------------


def test_of_each_person_the_first_rows_enter(data):
    X, y = data
    groups = np.arange(120) // 3
    kept = np.arange(120) % 3 < 2
    fitted = model(rows_per_person=2).fit(X, y, groups=groups)
    expected = model(rows_per_person=2).fit(X[kept], y[kept])
    np.testing.assert_array_equal(numbers(fitted), numbers(expected))
    assert (
        "each person, with up to 2 rows"
        in model(rows_per_person=2, random_state=None).fit(X, y, groups=groups).privacy_.text()
    )
    # Without groups it is taken on trust that nobody has more.
    assert model(rows_per_person=2).fit(X, y).n_iter_ == 12


def test_noise_grows_with_the_rows_of_a_person(data):
    errors = [
        model(rows_per_person=m, neighbors=relation, n_records=120).fit(*data).privacy_.sensitivity
        for m, relation in ((1, "add-remove"), (3, "add-remove"), (3, "replace-one"))
    ]
    assert errors == [0.5, 1.5, 3.0]


# --- The release ---------------------------------------------------------------------------------


def test_a_seed_repeats_and_none_does_not(data):
    np.testing.assert_array_equal(numbers(model().fit(*data)), numbers(model().fit(*data)))
    one, other = (model(random_state=None).fit(*data) for _ in range(2))
    assert not (numbers(one) == numbers(other)).any()


@pytest.mark.parametrize("options", [{}, {"max_weights": 3}, {"epsilon": INF}, {"row_norm": 2.0}])
def test_a_model_file_holds_the_model(tmp_path, data, options):
    X, y = data
    fitted = model(random_state=None, **options).fit(X, y)
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert isinstance(again, DPLogisticRegression)
    np.testing.assert_array_equal(numbers(again), numbers(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    for name in ("privacy_", "n_iter_", "coef_standard_error_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert type(again.coef_) is type(fitted.coef_)
    assert again.get_params() == fitted.get_params()


def test_what_was_set_since_the_fit_is_not_in_the_file(tmp_path, data):
    X, y = data
    fitted = model(row_norm=2.0).fit(X, y)
    expected = fitted.decision_function(X)
    fitted.set_params(row_norm="unit", fit_intercept=False, epsilon=9.0)
    np.testing.assert_array_equal(fitted.decision_function(X), expected)
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert (again.epsilon, again.row_norm, again.fit_intercept) == (1.0, 2.0, True)
    np.testing.assert_array_equal(again.decision_function(X), expected)


def test_nothing_of_the_data_leaves_but_the_release(data):
    """Everything that is kept follows from weights, standard errors and public numbers."""
    X, y = data
    fitted = model(random_state=None, max_weights=3).fit(X, y)
    kept = vars(fitted).keys() - fitted.get_params().keys()
    assert kept == {
        "model_",
        "coef_",
        "intercept_",
        "coef_standard_error_",
        "classes_",
        "n_iter_",
        "n_features_in_",
        "privacy_",
    }
    assert fitted.model_.history is None
    other = model(random_state=None, max_weights=3).fit(X[:60], y[:60])
    assert fitted.privacy_ == other.privacy_


def test_the_standard_error_is_public_but_for_the_slope_that_was_released(data, monkeypatch):
    X, y = data
    slopes = []
    monkeypatch.setattr(run, "calibrate_margins", lambda *_, **__: Calibration(slopes[0], (0.25,)))
    options = {"n_records": 120, "random_state": 7}
    slopes = [1.0]
    one, other = model(**options).fit(X, y), model(**options).fit(0 * X, y[::-1])
    assert one.coef_standard_error_ == other.coef_standard_error_ > 0
    slopes = [2.0]
    stretched = model(**options).fit(X, y)
    assert stretched.coef_standard_error_ == 2.0 * one.coef_standard_error_
    np.testing.assert_array_equal(stretched.coef_, 2.0 * one.coef_)
    np.testing.assert_allclose(stretched.intercept_, 2.0 * one.intercept_ - 0.25)
    assert model(epsilon=INF).fit(X, y).coef_standard_error_ == 0.0


# --- The statement -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "records_"),
    [
        ({}, "counted privately"),
        ({"n_records": 120}, "given as public"),
        ({"neighbors": "replace-one"}, "given as public"),
        # Replacing a person of one row by one of two moves the number of rows.
        ({"neighbors": "replace-one", "rows_per_person": 2}, "counted privately"),
        ({"epsilon": INF}, "not used"),
    ],
)
def test_the_statement_says_how_the_number_of_records_was_used(data, options, records_):
    assert model(**options).fit(*data).privacy_.records == records_


def test_the_statement_in_words_and_as_json(data):
    statement = model(random_state=None).fit(*data).privacy_
    assert statement.is_private
    assert statement.epsilon <= statement.epsilon_requested == 1.0
    assert statement.epsilon == pytest.approx(1.0, rel=1e-9)
    assert (statement.mechanism, statement.steps, statement.eps0) == ("gaussian", 12, 0.0)
    text = statement.text()
    assert "Differentially private with epsilon = 1 and delta = 1e-06" in text
    assert "12 gradients over all records, each with Gaussian noise, and a noisy count" in text
    assert "0.2368-GDP" in text
    assert "feature_bound" not in text
    values = json.loads(statement.to_json())
    assert values["mu"] == statement.mu == pytest.approx(0.2367, abs=1e-4)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert (
        "the number of records"
        in model(n_records=120, random_state=None).fit(*data).privacy_.text()
    )


def test_a_seed_and_an_infinite_epsilon_are_not_private(data):
    for options in ({"random_state": 1}, {"epsilon": INF, "random_state": None}):
        fitted = model(**options).fit(*data)
        assert not fitted.privacy_.is_private
        assert "NOT differentially private" in fitted.privacy_.text()
    assert fitted.privacy_.epsilon == INF
    assert fitted.privacy_.to_dict()["mu"] == "inf"


# --- The ledger ----------------------------------------------------------------------------------


def test_a_ledger_is_charged_and_refuses(tmp_path, data):
    path = tmp_path / "team.ledger"
    create_ledger(path, 1.3, 1e-5)
    asked = model(random_state=None, ledger=path)
    fitted = asked.fit(*data)
    (entry,) = read_budgets(path)[0].entries
    assert entry.state == "finished"
    assert entry.charge.mechanism == "gaussian"
    # The zCDP of a Gaussian mechanism that is mu-GDP is mu^2 / 2.
    assert entry.charge.rho >= fitted.privacy_.mu**2 / 2 * 1e30
    assert entry.charge.rho == pytest.approx(fitted.privacy_.mu**2 / 2 * 1e30, rel=1e-6)
    before = numbers(fitted)
    with pytest.raises(BudgetError):
        fitted.fit(*data)
    np.testing.assert_array_equal(numbers(fitted), before)
    assert len(read_budgets(path)[0].entries) == 1
    fitted.save(tmp_path / "model.npz")
    assert "ledger" not in read_model(tmp_path / "model.npz").params


def test_no_ledger_pays_for_a_fit_without_privacy(tmp_path, data):
    create_ledger(tmp_path / "team.ledger", 1.0, 1e-5)
    with pytest.raises(ValueError, match="ledger"):
        model(epsilon=INF, ledger=tmp_path / "team.ledger").fit(*data)
