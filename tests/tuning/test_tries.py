"""The number of tries has the law that is accounted."""

import math

import numpy as np
import pytest
from scipy import stats

from dplasso.privacy.randomness import random_stream
from dplasso.tuning.search_cost import LAWS, draw_tries, tries_of

DRAWS = 20_000
# Chance that a right sampler fails a test here.
ALARM = 1e-6


def exact(tries):
    """Return the law by another library."""
    if tries.law == "poisson":
        return stats.poisson(tries.mean)
    return stats.logser(1.0 - tries.gamma)


def fits(drawn, law):
    """Return whether the draws pass a test of goodness of fit; each class expects at least 10."""
    edges = [k for k in range(400) if DRAWS * law.pmf(k) >= 10]
    counts = [int((drawn == k).sum()) for k in edges]
    expected = [DRAWS * law.pmf(k) for k in edges]
    counts.append(DRAWS - sum(counts))
    expected.append(DRAWS - sum(expected))
    return stats.chisquare(counts, expected).pvalue > ALARM


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", [1.5, 3.0, 10.0])
def test_the_law_is_the_one_accounted(law, mean):
    tries = tries_of(mean, law)
    stream = random_stream(7)
    drawn = np.array([draw_tries(tries, stream) for _ in range(DRAWS)])
    assert fits(drawn, exact(tries))
    # A mean that is off by a quarter would be noticed.
    assert not fits(drawn, exact(tries_of(1.25 * mean, law)))


@pytest.mark.parametrize("law", LAWS)
def test_the_mean_is_the_one_asked_for(law):
    for mean in (1.01, 3.0, 50.0, 1000.0):
        tries = tries_of(mean, law)
        assert tries.mean == mean
        assert exact(tries).mean() == pytest.approx(mean, rel=1e-6)


def test_the_choice_follows_the_mean():
    assert tries_of(3).law == "poisson"
    assert tries_of(5).law == "logarithmic"


@pytest.mark.parametrize(
    ("mean", "law", "words"),
    [
        *((mean, "auto", "tries must") for mean in (0.0, -1.0, math.inf, math.nan, 1001.0)),
        (1, "logarithmic", "above 1 unless law=poisson"),
        (3, "fixed", "law must be"),
    ],
)
def test_impossible_laws_are_refused(mean, law, words):
    assert tries_of(1, "poisson").mean == 1.0
    with pytest.raises(ValueError, match=words):
        tries_of(mean, law)
