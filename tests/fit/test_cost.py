"""The cost of a fit, before there is data."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest

from dplasso import DPLasso, DPLassoClassifier, DPLinearRegression, DPLogisticRegression
from dplasso.fit.cost import privacy_cost, weakest_association
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import make_statement


def test_needs_no_data():
    assert list(inspect.signature(privacy_cost).parameters) == [
        "epsilon",
        "delta",
        "n_iter",
        "neighbors",
        "feature_bound",
        "method",
        "residual_bound",
        "rows_per_person",
        "n_records",
        "n_classes",
        "target_bounds",
    ]


@pytest.mark.parametrize(
    ("method", "estimator", "labels", "told"),
    [
        ("lasso", DPLassoClassifier(), np.arange(40) % 4, {"n_classes": 4}),
        ("logistic", DPLogisticRegression(), np.arange(40) % 4, {"n_classes": 4}),
        ("linear", DPLinearRegression(target_bounds=(0, 9)), np.arange(40) % 4, {}),
        ("lasso", DPLasso(target_bounds=(0, 9)), np.arange(40) % 4, {"target_bounds": (0.0, 9.0)}),
    ],
)
def test_classes_and_numbers_cost_what_a_fit_states(method, estimator, labels, told):
    X = np.eye(40, 500, dtype=np.float32)
    stated = estimator.fit(X, labels).privacy_
    cost = privacy_cost(1.0, 1e-6, method=method, **told)
    for name in ("n_classes", "steps", "sensitivity", "residual_bound", "mechanism", "records"):
        assert getattr(cost, name) == getattr(stated, name), name
    assert cost.mu == pytest.approx(stated.mu, rel=1e-4)
    assert cost.rho == pytest.approx(stated.rho, rel=1e-4)
    assert ("4 class labels" if cost.n_classes else "interval of the targets (0") in cost.text()


def test_what_can_be_found_knows_the_task():
    found = {
        (method, n_classes): weakest_association(
            1.0,
            1e-6,
            30_000,
            10**5,
            method=method,
            **({"n_classes": n_classes} if n_classes else {"target_bounds": (0.0, 1.0)}),
        ).gradient
        for method, n_classes in (
            ("lasso", 2), ("lasso", 10), ("lasso", 0), ("logistic", 2), ("logistic", 10),
            ("linear", 0),
        )
    }  # fmt: skip
    # Ten times as many vertices, and so a larger maximum of their noises; steps as strong as that.
    grown = found["lasso", 10] / found["lasso", 2]
    assert 0.9 < grown < math.log(2 * 10**6) / math.log(2 * 10**5)
    # A smaller bound on the residual is less noise.
    assert found["lasso", 0] < found["lasso", 2]
    assert found["linear", 0] < found["logistic", 2] < found["logistic", 10]


def test_noisy_gradients_are_what_a_fit_states():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = DPLogisticRegression(
        0.5, 1e-5, n_iter=9, classes=(0, 1), residual_bound=0.75, rows_per_person=2
    )
    stated = model.fit(X, y).privacy_
    cost = privacy_cost(0.5, 1e-5, 9, method="logistic", residual_bound=0.75, rows_per_person=2)
    # They differ in what the rounding of draws is charged for: four columns, not 2^24.
    assert cost.mu == pytest.approx(stated.mu, rel=1e-5)
    assert cost.mu <= stated.mu
    same = {"mu": 0.0, "epsilon": 0.0, "sampling_delta": 0.0, "epsilon_by_rows": {}}
    assert replace(cost, **same) == replace(stated, **same)
    assert (
        privacy_cost(1.0, 1e-6, method="logistic").steps == DPLogisticRegression().fit(X, y).n_iter_
    )


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"method": "ridge"}, "method must be lasso, logistic or linear, got 'ridge'"),
        ({"method": "linear", "n_classes": 3}, "n_classes does not go with method='linear'"),
        ({"method": "logistic", "target_bounds": (0, 1)}, "target_bounds does not go with"),
        ({"target_bounds": (1, 0)}, "two finite numbers"),
        ({"n_classes": 1}, "n_classes must be 2 or more, got 1"),
        ({"method": "logistic", "feature_bound": 2.0}, "feature_bound does not go with"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, named):
    with pytest.raises(ValueError, match=named):
        privacy_cost(1.0, 1e-6, **changes)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_is_what_a_fit_states(neighbors):
    mechanism = build_mechanism(
        epsilon=2.0,
        delta=1e-7,
        n_iter=300,
        neighbors=neighbors,
        feature_bound=3.0,
        residual_bound=0.5,
    )
    stated = make_statement(mechanism, seeded=False, classes_declared=True)
    assert privacy_cost(2.0, 1e-7, 300, neighbors, 3.0) == stated
    assert stated.is_private


def test_defaults():
    assert privacy_cost(1.0, 1e-6, 100) == privacy_cost(1.0, 1e-6, 100, "add-remove", 1.0)


def test_a_longer_run_leaves_less_for_each_step():
    short, long = privacy_cost(1.0, 1e-6, 100), privacy_cost(1.0, 1e-6, 10_000)
    assert short.eps0 == pytest.approx(10 * long.eps0, rel=1e-3)


def test_no_privacy_costs_nothing_and_says_so():
    cost = privacy_cost(math.inf, 1e-6, 100)
    assert not cost.is_private
    assert "epsilon is infinite" in cost.text()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 1e-6, 100), "epsilon"),
        ((1.0, 2.0, 100), "delta"),
        ((1.0, 1e-6, 0), "n_iter"),
        ((1.0, 1e-6, 100, "nobody"), "neighbors"),
        ((1.0, 1e-6, 100, "add-remove", -1.0), "feature_bound"),
    ],
)
def test_bad_parameters_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        privacy_cost(*arguments)


@pytest.mark.parametrize("method", ["lasso", "logistic"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("rows", "n_records"), [(1, None), (2, None), (1, 40)])
def test_it_says_of_the_count_what_a_fit_says(method, neighbors, rows, n_records):
    estimator = DPLassoClassifier if method == "lasso" else DPLogisticRegression
    given = {"neighbors": neighbors, "rows_per_person": rows, "n_records": n_records}
    fitted = estimator(1.0, 1e-6, **given).fit(np.eye(40), np.arange(40) % 2).privacy_
    assert privacy_cost(1.0, 1e-6, method=method, **given).records == fitted.records
    # Where single rows are replaced their number is no secret, and is used as it is.
    told = n_records is None and (method == "lasso" or (neighbors, rows) != ("replace-one", 1))
    assert fitted.records == ("counted privately" if told else "given as public")
