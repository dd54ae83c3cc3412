"""DPLinearRegression and DPLasso from outside: what a user gives, gets and keeps."""

import doctest
import importlib
import json
import math

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import (
    BudgetError,
    DPLasso,
    DPLinearRegression,
    PrivacyLeakWarning,
    PrivacyStatement,
    load,
)
from dplasso.checkpoint.session import fit_with_checkpoints, resume_fit
from dplasso.data.blocks import matrix_source
from dplasso.data.store import open_store, write_store
from dplasso.ledger import create_ledger, read_budgets
from gradient_descent.cases import records

INF = float("inf")
BOUNDS = (10.0, 50.0)
BOTH = pytest.mark.parametrize("kind", [DPLinearRegression, DPLasso])


def model(kind, **options):
    return kind(**({"random_state": 0, "target_bounds": BOUNDS} | options))


@pytest.fixture(scope="module")
def data():
    X, _ = records(300, 12, density=0.8, seed=1)
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return X.astype(np.float32), 30.0 + 20.0 * unit[:, 0] - 10.0 * unit[:, 1]


@pytest.mark.parametrize("name", ["linear", "lasso_regression"])
def test_the_examples_of_the_docs(name):
    results = doctest.testmod(importlib.import_module(f"dplasso.estimators.{name}"))
    assert results.attempted
    assert not results.failed


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_bounds": None}, "target_bounds is missing: give the interval"),
        ({"target_bounds": (1.0, 1.0)}, "two finite numbers"),
        ({"target_bounds": (0.0, INF)}, "two finite numbers"),
        ({"target_bounds": (0.0, math.nan)}, "two finite numbers"),
        ({"target_bounds": 5.0}, "two finite numbers"),
        ({"target_bounds": ("low", "high")}, "two finite numbers"),
        ({"residual_bound": 0.0}, "residual_bound must be 'auto' or a number from 0.01 to 2"),
        ({"residual_bound": 2.1}, "residual_bound must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_data(kind, options, message):
    with pytest.raises(ValueError, match=message):
        model(kind, **options).fit(np.eye(2), [0, 1])


@BOTH
@pytest.mark.parametrize("bad", [math.nan, INF, "many"])
def test_targets_that_are_no_numbers_are_refused(kind, bad):
    y = np.array([1.0, 2.0, bad], dtype=object)
    with pytest.raises(ValueError, match=r"y holds|NaN|infinity"):
        model(kind).fit(np.eye(3), y)


@BOTH
def test_without_privacy_it_learns(kind, data):
    X, y = data
    fitted = model(kind, epsilon=INF).fit(X, y)
    assert fitted.score(X, y) > 0.95
    assert not hasattr(fitted, "classes_")


@BOTH
def test_with_privacy_it_learns_in_the_target_s_unit(kind):
    """Deterministic by the seed; epsilon is generous, for so few records."""
    X, _ = records(4000, 12, density=0.8, seed=2)
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    y = 30.0 + 20.0 * unit[:, 0] - 10.0 * unit[:, 1]
    fitted = model(kind, epsilon=3.0).fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert abs(fitted.intercept_[0] - 30.0) < 5.0
    # Shuffled targets have nothing to teach: the check above has power.
    assert model(kind, epsilon=3.0).fit(X, np.roll(y, 1)).score(X, y) < 0.2


@BOTH
def test_units_do_not_matter(kind, data):
    X, y = data
    one = model(kind).fit(X, y)
    other = model(kind, target_bounds=(1000.0, 5000.0)).fit(X, 100.0 * y)
    np.testing.assert_allclose(other.predict(X), 100.0 * one.predict(X))
    np.testing.assert_allclose(other.coef_standard_error_, 100.0 * one.coef_standard_error_)
    weights = [
        m.coef_ if isinstance(m.coef_, np.ndarray) else m.coef_.toarray() for m in (one, other)
    ]
    np.testing.assert_allclose(weights[1], 100.0 * weights[0])


@BOTH
def test_targets_and_predictions_are_clipped_to_the_interval(kind, data):
    X, y = data
    far = np.where(y > 45.0, 1e9, np.where(y < 15.0, -1e300, y))
    near = np.where(y > 45.0, 50.0, np.where(y < 15.0, 10.0, y))
    assert (far != near).any()
    one, other = model(kind).fit(X, far), model(kind).fit(X, near)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    loose = model(kind, epsilon=0.01).fit(X, y).predict(X)
    assert loose.min() >= 10.0
    assert loose.max() <= 50.0


@BOTH
def test_stores_give_the_same_model(kind, data, tmp_path):
    X, y = data
    write_store(matrix_source(sp.csr_matrix(X), y, "records"), tmp_path / "rows.store")
    store = open_store(tmp_path / "rows.store")
    one, other = model(kind).fit(X, y), model(kind).fit(store)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_allclose(other.predict(store), one.predict(X), rtol=1e-12)


@BOTH
def test_files_statements_and_ledgers(kind, data, tmp_path):
    X, y = data
    ledger = tmp_path / "team.ledger"
    create_ledger(ledger, epsilon=2.0, delta=1e-5)
    fitted = kind(target_bounds=BOUNDS, ledger=str(ledger)).fit(X, y)
    statement = fitted.privacy_
    assert statement.is_private
    assert statement.n_classes == 0
    assert statement.classes == "none"
    assert "the interval of the targets (10 to 50; targets outside were clipped" in statement.text()
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    (budget,) = read_budgets(ledger)
    assert len(budget.entries) == 1
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert type(again) is kind
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.target_bounds == BOUNDS
    assert again.coef_standard_error_ == fitted.coef_standard_error_
    with pytest.raises(BudgetError):
        kind(2.0, target_bounds=BOUNDS, ledger=str(ledger)).fit(X, y)


@BOTH
def test_the_table_of_weights_is_in_the_target_s_unit(kind, data):
    X, y = data
    fitted = model(kind, epsilon=5.0).fit(X, y)
    (row,) = fitted.top_features(1).rows()
    assert row["weight"] == fitted.weights(dense=True)[row["column"]]
    assert row["standard_error"] == fitted.coef_standard_error_
    assert "numbers from 10 to 50" in fitted._repr_html_inner()


@BOTH
def test_an_interrupted_fit_goes_on(kind, data, tmp_path):
    X, y = data

    path = tmp_path / "fit.checkpoint"
    whole = model(kind).fit(X, y)
    fit_with_checkpoints(model(kind), X, y, path)
    resumed = resume_fit(model(kind), X, y, path)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    other = model(kind, target_bounds=(0.0, 50.0))
    with pytest.raises(ValueError, match="target_bounds"):
        resume_fit(other, X, y, path)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_record_counts_for_no_more_than_one(relation):
    """The noisy counts of neighbours by the same seed, so with the same noise."""
    # So many that no noisy count is below 1.
    X, y = np.tile(np.eye(20), (20, 1)), np.tile(np.linspace(10.0, 50.0, 20), 20)
    farthest = 0.0
    for target in (10.0, 50.0, 33.3, -1e300, 1e300):
        if relation == "add-remove":
            more = np.vstack([X, X[:1]]), np.append(y, target)
        else:
            more = X, np.append(y[:-1], target)
        one, other = (
            model(DPLasso, epsilon=5.0, neighbors=relation).fit(*rows).model_
            for rows in ((X, y), more)
        )
        moved = np.linalg.norm(one.release.counts - other.release.counts)
        limit = 1.0 if relation == "add-remove" else math.sqrt(2.0)
        assert moved <= limit * (1.0 + 1e-9)
        farthest = max(farthest, moved / limit)
    assert farthest > 0.99


def test_short_lists_have_few_weights(data):
    X, y = data
    fitted = model(DPLinearRegression, epsilon=INF, max_weights=2).fit(X, y)
    assert fitted.coef_.indices.tolist() == [0, 1]
    # Rows are unit rows of the two columns, so no linear rule of theirs is exact.
    assert fitted.score(X, y) > 0.5


@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_plain_frank_wolfe_over_the_ball(data, solver):
    X, y = data
    options = {"l1_radius": 2.0, "n_iter": 200, "solver": solver, "drift_tol": 0.0}
    fitted = model(DPLasso, epsilon=INF, **options).fit(np.clip(X, -1, 1), y)
    assert len(fitted.transcript_) == 200
    assert fitted.history_.objective[-1] < 0.5 * fitted.history_.objective[0]
    private = model(DPLasso, **options).fit(X, y)
    assert not hasattr(private, "history_")


def test_the_paper_s_squared_loss_runs(data):
    X, y = data
    fitted = model(DPLasso, mechanism="paper", n_iter=20, l1_radius=2.0)
    with pytest.warns(PrivacyLeakWarning, match="not differentially private"):
        fitted.fit(X, y)
    assert fitted.privacy_.residual_bound == 2.0
    assert not fitted.privacy_.is_private


def test_a_statement_has_either_classes_or_an_interval(data):
    X, y = data
    fitted = model(DPLinearRegression).fit(X, y)
    with pytest.raises(ValueError, match="either classes or an interval"):
        PrivacyStatement.from_dict(json.loads(fitted.privacy_.to_json()) | {"n_classes": 2})
