"""Uniform coordinates with the true sign."""

import numpy as np
from evidence.paper.uniform import uniform_state
from evidence.reference.draws import ALARM, draw
from scipy.stats import chi2

from dplasso.privacy.randomness import random_stream

N_COLUMNS, DRAWS = 12, 60_000


def statistic(vertex):
    expected = DRAWS / N_COLUMNS
    return float(((np.bincount(vertex, minlength=N_COLUMNS) - expected) ** 2 / expected).sum())


# The first column is far ahead: any use of alpha would show.
ALPHA = np.array([2**60, -(2**40), 0, 1, -1, 5, -7, 2**33, -(2**33), 3, 2, 1])


def test_coordinates_are_uniform_whatever_alpha_is_and_signs_are_true():
    limit = chi2.isf(ALARM, N_COLUMNS - 1)
    vertex, sign = draw(uniform_state(), ALPHA, random_stream(1), DRAWS)
    assert statistic(vertex) < limit
    assert np.array_equal(sign, np.where(ALPHA[vertex] >= 0, -1, 1))
    # Power: a coordinate that is drawn a tenth too often is noticed.
    spoilt = vertex.copy()
    spoilt[: DRAWS // (10 * N_COLUMNS)] = 0
    assert statistic(spoilt) > limit
    # The very same coordinates on other data.
    again, _ = draw(uniform_state(), -ALPHA[::-1].copy(), random_stream(1), DRAWS)
    assert np.array_equal(vertex, again)
