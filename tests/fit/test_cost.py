"""The cost of a fit, before there is data."""

import math

import numpy as np
import pytest

from dplasso import DPFrankWolfeClassifier, privacy_cost, weakest_association
from dplasso.ledger import create_ledger
from estimators.kinds import make

# A cost foresees 2^24 columns, which the rounding of draws is charged for.
NEARLY = ("mu", "epsilon", "sampling_delta")
METHODS = {"lasso of numbers": "lasso"}
NUMBERS = {"target_bounds": (0.0, 9.0)}
LOOP = {"n_iter": 300, "l1_radius": 9.0}


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("lasso", {}, {}),
        ("lasso", {"neighbors": "replace-one", "feature_bound": 3.0}, {}),
        ("lasso", {"rows_per_person": 2, "max_weights": 30}, {}),
        ("lasso", {}, {"n_classes": 4}),
        ("lasso of numbers", NUMBERS, NUMBERS),
        ("frank-wolfe", LOOP, {}),
        ("frank-wolfe", LOOP | {"n_records": 40, "fit_intercept": False}, {}),
        ("logistic", {"epsilon": 0.5, "delta": 1e-5}, {}),
        ("logistic", {"neighbors": "replace-one", "rows_per_person": 2}, {}),
        ("logistic", {"max_weights": 3, "fit_intercept": False}, {}),
        ("logistic", {"class_weight": "balanced"}, {"n_classes": 4}),
        ("linear", NUMBERS, {}),
    ],
)
def test_is_what_a_fit_states(kind, given, told):
    # So many columns that no cut is left out.
    X = np.eye(40, 10_000, dtype=np.float32)
    labels = np.arange(40) % told.get("n_classes", 2)
    model = DPFrankWolfeClassifier(**given) if kind == "frank-wolfe" else make(kind, **given)
    stated = model.fit(X, labels).privacy_
    asked = {name: given[name] for name in given if name != "target_bounds"}
    method = METHODS.get(kind, kind)
    for n_features in (None, 10_000):
        known = {"n_features": n_features, "method": method} | told
        cost = privacy_cost(**{"epsilon": 1.0, "delta": 1e-6} | asked | known)
        for name in ("is_private", "n_classes", "steps", "mechanism", "records", "accountant"):
            assert getattr(cost, name) == getattr(stated, name), name
        for name in NEARLY:
            expected = pytest.approx(getattr(stated, name), rel=1e-4, abs=1e-9)
            assert getattr(cost, name) == expected, name
        assert cost.releases == stated.releases or n_features is None or "n_records" not in given
    assert cost.mu == stated.mu
    public = "n_records" in given
    assert ("counted privately" in stated.records) == (not public)
    words = "interval of the targets (0" if "target_bounds" in given else "class labels"
    assert words in cost.text()


def test_what_can_be_found_knows_the_task():
    """Of rows so long that a LASSO draws its columns."""
    found, long = {}, {"row_entries": 1e5}
    for method, n_classes in (("lasso", 2), ("lasso", 10), ("logistic", 2), ("logistic", 10)):
        task = {"method": method, "n_classes": n_classes} | long
        found[method, n_classes] = weakest_association(1.0, 1e-6, 30_000, 10**5, **task).gradient
    for method in ("lasso", "linear"):
        task = {"method": method, "target_bounds": (0.0, 1.0)} | long
        found[method, 0] = weakest_association(1.0, 1e-6, 30_000, 10**5, **task).gradient
    # Ten times as many vertices, and so a larger maximum of their noises; steps as strong as that.
    grown = found["lasso", 10] / found["lasso", 2]
    assert 0.9 < grown < math.log(2 * 10**6) / math.log(2 * 10**5)
    # A smaller bound on the residual is less noise.
    assert found["lasso", 0] < found["lasso", 2]
    assert found["linear", 0] < found["logistic", 2] < found["logistic", 10]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"method": "ridge"}, "must be one of logistic, linear, lasso, frank-wolfe, got 'ridge'"),
        ({"method": "linear", "n_classes": 3}, "n_classes cannot be combined with target_bounds"),
        ({"method": "logistic", "target_bounds": (0, 1)}, "target_bounds cannot be combined with"),
        ({"method": "lasso", "target_bounds": (1, 0)}, "two finite numbers"),
        ({"n_classes": 1}, "n_classes must be 2 or more, got 1"),
        ({"feature_bound": 2.0}, "feature_bound"),
        ({"epsilon": 0.0}, r"^epsilon must"),
        ({"method": "lasso", "feature_bound": -1.0}, r"^feature_bound must"),
    ],
)
def test_what_is_wrong_or_does_not_go_together_is_refused(changes, named):
    with pytest.raises((TypeError, ValueError), match=named):
        privacy_cost(**{"epsilon": 1.0, "delta": 1e-6} | changes)


def test_with_a_ledger_few_steps_cost_what_the_ledger_adds_up(tmp_path):
    create_ledger(tmp_path / "team.ledger", 5.0, 1e-5)
    known = {"n_iter": 2, "n_records": 60, "fit_intercept": False}
    alone, paid = (
        DPFrankWolfeClassifier(0.9, ledger=ledger, **known).fit(np.eye(60), np.arange(60) % 2)
        for ledger in (None, tmp_path / "team.ledger")
    )
    assert alone.privacy_.number("eps0") == pytest.approx(0.45, rel=1e-5)
    assert paid.privacy_.number("eps0") < alone.privacy_.number("eps0")
