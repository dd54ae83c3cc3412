import numpy as np
import pytest
from evidence.reference.draws import vertex_weights

from dplasso.privacy.randomness import random_stream
from dplasso.selection.log_weights import cosh_factor, draw_sign, relative_weight

LIMIT = 2**63 - 1


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(
    ("magnitude", "reference", "exponent"),
    [
        (0, 0, 1e-9),
        (5, 0, 1e-9),
        (10**9, 2 * 10**9, 1e-8),
        (0, 10**12, 1e-10),
        (2**62, LIMIT, 1e-18),
    ],
)
def test_relative_weight_is_the_definition(magnitude, reference, exponent, signed):
    (lower, upper), _ = vertex_weights([magnitude, reference], exponent, signed=signed)
    # The oracle is relative to the largest magnitude.
    scale = np.exp(exponent * max(0, magnitude - reference))
    value = relative_weight(exponent, magnitude, reference, signed)
    expected = float(lower + upper) * scale
    assert value == pytest.approx(expected, rel=1e-14)


def test_far_apart_weights_neither_overflow_nor_turn_nan():
    assert relative_weight(1e3, 0, LIMIT, True) == 0.0
    assert relative_weight(1e-12, LIMIT, 0, True) == np.inf
    assert cosh_factor(1e3, LIMIT, True) == 1.0
    assert cosh_factor(1e3, 0, True) == 2.0


def test_huge_magnitudes_keep_their_difference():
    # As doubles the two would be equal.
    assert relative_weight(0.5, LIMIT - 1, LIMIT, False) == pytest.approx(np.exp(-0.5), rel=1e-15)


def test_the_true_sign_is_for_the_paper_only():
    stream = random_stream(0)
    assert [draw_sign(stream, 1e-9, a, False) for a in (-7, 0, 7)] == [1, -1, -1]


@pytest.mark.parametrize("nats", [0.0, 0.5, -0.5, 3.0])
def test_signs_follow_the_logistic_function(nats):
    stream, draws = random_stream(1), 20_000
    gradient = round(nats / 1e-9)
    ascends = sum(draw_sign(stream, 1e-9, gradient, True) == 1 for _ in range(draws))
    chance = 1 / (1 + np.exp(2 * nats))
    # Five standard deviations: false alarm 6e-7 each.
    assert abs(ascends - draws * chance) < 5 * np.sqrt(draws * chance * (1 - chance))


def test_a_rare_sign_keeps_its_probability():
    # The opposite sign has probability exp(-40) = 2^-57.7: these words are below and above it.
    for word, sign in ((0, 1), (70, 1), (90, -1)):
        stream = random_stream(2)
        stream.words[0] = word
        stream.position[0] = 0
        assert draw_sign(stream, 1e-9, 20 * 10**9, True) == sign
