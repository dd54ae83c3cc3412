import numpy as np
import pytest
from evidence.reference.draws import ALARM, draw, fill, p_value
from evidence.reference.gradients import LIMIT
from scipy.stats import laplace

from dplasso.privacy.randomness import random_stream
from dplasso.selection.contract import VARIATES, new_counters
from dplasso.selection.noisy_max import GumbelState, LaplaceState, behind, largest_magnitude

SCALE = 3e9


def laplace_probabilities(alpha, scale):
    """P(|alpha_k + noise| is the largest), by integrating over the winner's value."""
    grid = np.linspace(0, np.abs(alpha).max() / scale + 40, 200_001)
    centre = np.abs(alpha[:, None]) / scale
    inside = laplace.cdf(grid - centre) - laplace.cdf(-grid - centre)
    density = laplace.pdf(grid - centre) + laplace.pdf(-grid - centre)
    return np.array(
        [
            np.trapezoid(density[k] * np.delete(inside, k, axis=0).prod(axis=0), grid)
            for k in range(alpha.size)
        ]
    )


def draw_laplace(alpha, scale, seed):
    selector = LaplaceState(scale, new_counters())
    fill(selector, alpha)
    return draw(selector, alpha, random_stream(seed), 50_000)


def test_laplace_noise_then_the_true_sign():
    alpha = np.array([4, -5, 0, 2, -3], dtype=np.int64) * 10**9
    vertex, sign = draw_laplace(alpha, SCALE, 1)
    expected = laplace_probabilities(alpha, SCALE)
    assert expected.sum() == pytest.approx(1, abs=1e-6)
    assert p_value(np.bincount(vertex, minlength=5), expected) > ALARM
    assert (sign == np.where(alpha[vertex] >= 0, -1, 1)).all()


def test_gumbel_counts_two_variates_a_column():
    alpha = np.zeros(7, dtype=np.int64)
    selector = GumbelState(1e-9, new_counters())
    draw(selector, alpha, random_stream(3), 10)
    assert selector.counters[VARIATES] == 140


def test_scores_far_apart_are_subtracted_as_integers():
    assert behind(LIMIT, -LIMIT) == 2.0**64
    assert behind(LIMIT, LIMIT - 1) == 1.0
    assert largest_magnitude(np.array([3, -LIMIT, 5])) == LIMIT
