"""The number of tries has the law that is accounted."""

import math

import numpy as np
import pytest
from scipy import stats

from dplasso.privacy.randomness import random_stream
from dplasso.tuning.search_cost import draw_tries, tries_of

DRAWS = 20_000
# Chance that a right sampler fails a test here.
ALARM = 1e-6


def exact(tries):
    """Return the law by another library."""
    return stats.logser(1.0 - tries.gamma)


def fits(drawn, law):
    """Return whether the draws pass a test of goodness of fit; each class expects at least 10."""
    edges = [k for k in range(400) if DRAWS * law.pmf(k) >= 10]
    counts = [int((drawn == k).sum()) for k in edges]
    expected = [DRAWS * law.pmf(k) for k in edges]
    counts.append(DRAWS - sum(counts))
    expected.append(DRAWS - sum(expected))
    return stats.chisquare(counts, expected).pvalue > ALARM


@pytest.mark.parametrize("mean", [1.5, 3.0, 10.0])
def test_the_law_is_the_one_accounted(mean):
    tries = tries_of(mean)
    stream = random_stream(7)
    drawn = np.array([draw_tries(tries, stream) for _ in range(DRAWS)])
    assert fits(drawn, exact(tries))
    # A mean that is off by a quarter would be noticed.
    assert not fits(drawn, exact(tries_of(1.25 * mean)))


def test_the_mean_is_the_one_asked_for():
    for mean in (1.01, 3.0, 50.0, 1000.0):
        tries = tries_of(mean)
        assert tries.mean == mean
        assert exact(tries).mean() == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("mean", [0.0, -1.0, 1.0, math.inf, math.nan, 1001.0])
def test_impossible_means_are_refused(mean):
    with pytest.raises(ValueError, match="tries must"):
        tries_of(mean)
