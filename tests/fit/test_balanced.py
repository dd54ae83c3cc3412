"""Classes weighed by their noisy counts: `class_weight="balanced"`."""

from math import inf

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from dplasso import DPLogisticRegression

# The parts of the classes, by their number.
SHARES = {2: [0.95, 0.05], 3: [0.8, 0.15, 0.05]}


def skewed(n_classes, n_rows=4000, seed=0):
    """Return rows that tell their classes, of which some are rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n_rows, p=SHARES[n_classes])
    means = rng.normal(size=(n_classes, 10))
    return means[y] + rng.normal(0.0, 2.0, (n_rows, 10)), y


def recall(model, X, y):
    return balanced_accuracy_score(y, model.predict(X))


@pytest.mark.parametrize("n_classes", SHARES)
@pytest.mark.parametrize(
    "options",
    [{}, {"neighbors": "replace-one"}, {"fit_intercept": False}, {"rows_per_person": 2}],
    ids=str,
)
def test_rare_classes_are_found(n_classes, options):
    X, y = skewed(n_classes)
    options = {"classes": range(n_classes), "epsilon": 5.0, "random_state": 0} | options
    plain = DPLogisticRegression(**options).fit(X, y)
    balanced = DPLogisticRegression(class_weight="balanced", **options).fit(X, y)
    public = LogisticRegression(class_weight="balanced").fit(X, y)
    assert recall(balanced, X, y) > recall(public, X, y) - 0.05
    assert recall(balanced, X, y) > recall(plain, X, y) + 0.05
    told, own = (one.privacy_.find("gradients").numbers for one in (balanced, plain))
    assert told["sensitivity"] == own["sensitivity"]
    assert balanced.privacy_.records == "counted privately by class"


@pytest.mark.parametrize("n_classes", SHARES)
def test_without_noise_they_are_the_weights_of_the_counts(n_classes):
    X, y = skewed(n_classes)
    weights = (1.0 / np.bincount(y)).tolist()
    given, balanced = (
        DPLogisticRegression(epsilon=inf, class_weight=own).fit(X, y)
        for own in (weights, "balanced")
    )
    assert_allclose(balanced.coef_, given.coef_, atol=0.03 * np.abs(given.coef_).max())
    # As if rows were repeated, too.
    times = np.random.default_rng(1).integers(0, 3, y.size)
    repeated = DPLogisticRegression(epsilon=inf, class_weight="balanced")
    repeated.fit(X.repeat(times, axis=0), y.repeat(times))
    weighted = DPLogisticRegression(epsilon=inf, class_weight="balanced", n_jobs=2)
    weighted.fit(X, y, sample_weight=times)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)
