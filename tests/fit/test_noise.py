"""A fit that by public numbers and its count can find nothing says so, whatever its method."""

import math

import numpy as np
import pytest
from scipy.sparse import random_array

from dplasso import (
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    NoiseWarning,
)
from dplasso.fit import noise, run
from dplasso.gradient_descent import measures
from dplasso.ledger import create_ledger, read_budgets
from dplasso.model.prior import matched_prior

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


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(0.1, n_iter=5),
        DPLogisticRegression(0.1, n_iter=5, max_weights=10),
        DPLinearRegression(0.1, n_iter=5, **NUMBERS),
        DPLassoClassifier(0.1),
        DPLasso(0.1, **NUMBERS),
    ],
)
def test_every_method_warns_by_its_own_count(model):
    # The noise of the count is as large as the count that is warned of.
    assert "records" in warned(model.set_params(random_state=2))


def test_a_few_columns_that_are_all_taken_need_records_too():
    few = DPLassoClassifier(0.1, random_state=0)
    assert "the noise outweighs" in warned(few, X=X[:, :100])


def test_a_given_radius_warns_too(recwarn):
    given = {"n_iter": 5, "l1_radius": 3.0, "epsilon": 0.1}
    for known in ({"random_state": 2}, {"n_records": 300}, {"n_records": 300, "fit_intercept": 0}):
        assert "columns can be told" in warned(DPLassoClassifier(**given | known), Y % 2)
    recwarn.clear()
    # Of two that stand out the model is not chance, however many steps there are.
    DPLassoClassifier(2.0, n_iter=60, l1_radius=8.0, n_records=600).fit(X[:, :60], Y % 2)
    assert not [one for one in recwarn if one.category is NoiseWarning]


def test_several_classes_need_more_records(recwarn):
    warned(DPLogisticRegression(0.4, n_iter=5, n_records=300, classes=range(12)))
    DPLogisticRegression(0.4, n_iter=5, n_records=300, classes=[0, 1]).fit(X, Y % 2)
    assert not [one for one in recwarn if one.category is NoiseWarning]


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
def test_without_privacy_or_with_a_prior_nothing_is_said(kind, recwarn):
    kind(math.inf, n_iter=5).fit(X, Y)
    kind(0.1, n_iter=5, prior=matched_prior(np.ones((1, 900)), np.zeros(1), "p")).fit(X, Y % 2)
    assert not [one for one in recwarn if one.category is NoiseWarning]


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
def test_a_public_number_of_records_warns_before_the_charge(kind, tmp_path, monkeypatch):
    create_ledger(tmp_path / "l", 9.0, 1e-5)

    def spend(*_, **__):
        raise AssertionError("spent")

    monkeypatch.setattr(run, "charged", spend)
    with pytest.warns(NoiseWarning), pytest.raises(AssertionError, match="spent"):
        kind(0.1, n_records=300, ledger=str(tmp_path / "l")).fit(X, Y)
    assert not read_budgets(tmp_path / "l")[0].entries


def test_the_count_it_tells_is_the_released_one(monkeypatch):
    monkeypatch.setattr(measures, "noisy_counts", lambda *_: np.array([77.0]))
    assert warned(DPLogisticRegression(0.1, n_iter=5)).startswith(
        "with 77 records of 4 classes and"
    )


@pytest.mark.parametrize("n_features", [2**14, 2**17, 2**20])
def test_four_classes_of_5700_texts_are_too_few_for_a_lasso(n_features):
    model = DPLassoClassifier(1.0, classes=range(4))
    method = model.family.method(model.get_params())
    task = method.targets.of_size(4)
    mechanism = method.mechanism(task, 5700, n_features)
    assert "columns can be told" in method.told_of_noise(task, mechanism, 5700.0, n_features)
    better = DPLogisticRegression(1.0, classes=range(4))
    method = better.family.method(better.get_params())
    mechanism = method.mechanism(task, 5700, n_features)
    assert not method.told_of_noise(task, mechanism, 5700.0, n_features)


def test_more_records_of_the_same_budget_end_it():
    method = DPLogisticRegression(1.0, classes=[0, 1])
    method = method.family.method(method.get_params())
    task, mechanism = method.targets.of_size(2), method.cost(1000)
    told = [bool(method.told_of_noise(task, mechanism, n, 1000)) for n in (20, 30, 60, 10**4)]
    assert told == [True, True, False, False]
    # Noise twice as large asks for twice as many, and so do twice as many classes.
    pull = mechanism.mu * mechanism.residual_bound / mechanism.sensitivity
    least = 2 * noise._LEAST_SIGNAL / pull
    for n_outputs, factor in ((1, 1), (2, 1), (4, 2), (8, 4)):
        for n_records, expected in ((0.99 * factor * least, True), (1.01 * factor * least, False)):
            told = noise.told_of_gradients(mechanism, 1.0, n_records, n_outputs)
            assert bool(told) is expected
