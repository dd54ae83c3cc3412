"""A fit that by public numbers and its count can find nothing says so, whatever its method."""

import math

import numpy as np
import pytest
from scipy.sparse import random_array

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Ledger,
    NoiseWarning,
    privacy_cost,
)
from dplasso.fit import run
from dplasso.ledger import create_ledger
from dplasso.phases import count
from fit.cases import fitted, records
from small_fits import short_runs

X = random_array((300, 900), density=0.02, rng=np.random.default_rng(0), format="csr")
Y = np.arange(300) % 4
NUMBERS = {"target_bounds": (0, 3)}


def warned(model, y=Y, X=X):
    with pytest.warns(NoiseWarning, match="may be no better than chance") as found:
        model.fit(X, y)
    told = [one for one in found if one.category is NoiseWarning]
    # At the line that asked for the fit.
    assert {one.filename for one in told} == {__file__}
    (message,) = [str(one.message) for one in told]
    return message


def silent(recwarn):
    return not [one for one in recwarn if one.category is NoiseWarning]


@pytest.mark.parametrize(
    ("model", "n_columns"),
    [
        (DPLogisticRegression(0.1), 900),
        (DPLogisticRegression(0.1, max_weights=10), 900),
        (DPLinearRegression(0.1, **NUMBERS), 900),
        (DPLassoClassifier(0.1), 900),
        (DPLasso(0.1, **NUMBERS), 900),
        # All of so few columns are taken.
        (DPLassoClassifier(0.1), 100),
    ],
)
def test_every_method_warns_by_its_own_count(model, n_columns):
    # The noise of the count is as large as the count that is warned of.
    assert "records" in warned(model.set_params(random_state=2), X=X[:, :n_columns])


def test_a_given_radius_warns_too(recwarn):
    given = {"n_iter": 5, "l1_radius": 3.0, "epsilon": 0.1}
    for known in ({"random_state": 2}, {"n_records": 300}, {"n_records": 300, "fit_intercept": 0}):
        assert "the noise outweighs" in warned(DPFrankWolfeClassifier(**given | known), Y % 2)
    recwarn.clear()
    DPFrankWolfeClassifier(2.0, n_iter=60, l1_radius=8.0, n_records=600).fit(X[:, :60], Y % 2)
    assert silent(recwarn)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
def test_without_privacy_or_with_a_prior_nothing_is_said(kind, recwarn):
    kind(math.inf).fit(X, Y)
    kind(0.1, prior=np.ones(900)).fit(X, Y % 2)
    assert silent(recwarn)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_public_number_of_records_warns_before_the_charge(fit_intercept, tmp_path, monkeypatch):
    create_ledger(tmp_path / "l", 9.0, 1e-5)

    def spend(*_, **__):
        raise AssertionError("spent")

    monkeypatch.setattr(run, "charged", spend)
    with pytest.warns(NoiseWarning), pytest.raises(AssertionError, match="spent"):
        DPFrankWolfeClassifier(
            0.1, n_iter=5, n_records=300, fit_intercept=fit_intercept, ledger=str(tmp_path / "l")
        ).fit(X, Y % 2)
    assert not Ledger(tmp_path / "l").budget().entries


def test_the_count_it_tells_is_the_released_one(monkeypatch):
    monkeypatch.setattr(count, "noisy_counts", lambda *_: np.array([77.0]))
    assert warned(DPLogisticRegression(0.1)).startswith(
        "with about 77 records (a noisy count) of 4 classes and"
    )


@pytest.mark.parametrize(
    ("epsilon", "n_classes", "factor"), [(1.0, 2, 1), (2.0, 2, 1), (1.0, 4, 2), (2.0, 8, 4)]
)
def test_more_records_of_the_same_budget_end_it(epsilon, n_classes, factor, monkeypatch, recwarn):
    # Rows that agree are five times the noise of a gradient; so many for each of the classes.
    mu = privacy_cost(epsilon, n_features=60).mu * math.sqrt(0.99)
    for n_records, expected in ((9.9 * factor / mu, True), (10.1 * factor / mu, False)):
        counts = np.full(n_classes, n_records / n_classes)
        monkeypatch.setattr(count, "noisy_counts", lambda *_, counts=counts: counts)
        with short_runs():
            DPLogisticRegression(epsilon, classes=range(n_classes)).fit(X[:, :60], Y % n_classes)
        assert silent(recwarn) is not expected
        recwarn.clear()


def test_a_lasso_that_can_find_some_does_not(recwarn):
    fitted(records())
    fitted(records(), max_weights=3, epsilon=2.0)
    # All columns are taken.
    fitted(records(60), epsilon=0.5)
    assert silent(recwarn)
