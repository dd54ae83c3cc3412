"""DPLinearRegression and DPLasso: intervals of targets, and what is told in the target's unit."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from estimators.kinds import each_regression, few, make, numbers

INF = float("inf")


@pytest.fixture(scope="module")
def data():
    return few("linear", 300)


def fitted(kind, data, *epsilon, random_state=0, **options):
    return make(kind, *epsilon, random_state=random_state, **options).fit(*data)


@each_regression
def test_it_learns(kind, data):
    model = fitted(kind, data, INF)
    assert model.score(*data) > LinearRegression().fit(*data).score(*data) - 0.01 > 0.9
    assert not hasattr(model, "classes_")
    # Deterministic by the seed; epsilon is generous, for so few records.
    X, y = few("linear", 4000)
    private = fitted(kind, (X, y), 3.0)
    assert private.score(X, y) > 0.8
    assert abs(private.intercept_[0] - 30.0) < 5.0
    # Shuffled targets have nothing to teach: the check above has power.
    assert fitted(kind, (X, np.roll(y, 1)), 3.0).score(X, y) < 0.2


@each_regression
def test_targets_near_one_end_are_predicted_there(kind):
    # Columns without signal cannot stand for the constant, which learns slowly.
    X = np.random.default_rng(0).normal(size=(2000, 5))
    near = fitted(kind, (X, np.full(2000, 14.0)), 0.5)
    assert abs(near.predict(X).mean() - 14.0) < 0.5
    # A mean within its noise is the middle.
    hidden = [fitted(kind, (X[:150], np.full(150, 22.0)), 0.1, random_state=k) for k in range(9)]
    assert np.median([abs(model.predict(X).mean() - 30.0) for model in hidden]) < 2.0


@each_regression
def test_an_interval_much_wider_than_the_targets_costs_little(kind):
    X, y = few("linear", 4000)
    own, wide = (
        np.mean([fitted(kind, (X, y), 3.0, random_state=k, **bounds).score(X, y) for k in range(3)])
        for bounds in ({}, {"target_bounds": (-370.0, 430.0)})
    )
    assert own - 0.1 < wide < own
    # Without intercept and counts, the spread is that around the middle.
    centred = {"target_bounds": (-400.0, 400.0), "fit_intercept": False}
    assert fitted(kind, (X, y - 30.0), 3.0, **centred).score(X, y - 30.0) > own - 0.1


@each_regression
def test_units_do_not_matter(kind, data):
    X, y = data
    one = fitted(kind, data)
    other = fitted(kind, (X, 100.0 * y), target_bounds=(1000.0, 5000.0))
    np.testing.assert_allclose(other.predict(X), 100.0 * one.predict(X))
    np.testing.assert_allclose(other.coef_standard_error_, 100.0 * one.coef_standard_error_)
    np.testing.assert_allclose(numbers(other), 100.0 * numbers(one))


@each_regression
def test_targets_and_predictions_are_clipped_to_the_interval(kind, data):
    X, y = data
    far = np.where(y > 45.0, 1e9, np.where(y < 15.0, -1e300, y))
    near = np.where(y > 45.0, 50.0, np.where(y < 15.0, 10.0, y))
    assert (far != near).any()
    # With little noise: otherwise the bound on residuals alone hides the difference.
    one, other = (fitted(kind, (X, targets), 30.0) for targets in (far, near))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    loose = fitted(kind, data, 0.01).predict(X)
    assert loose.min() >= 10.0
    assert loose.max() <= 50.0
