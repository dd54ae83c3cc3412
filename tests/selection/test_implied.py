"""What a structure's own numbers say of its draws, after updates as in a run."""

import numpy as np
import pytest
from evidence.audit.implied import implied_log_probabilities
from evidence.reference.draws import vertex_probabilities
from evidence.reference.gradients import EXPONENT, PRIVATE, random_gradients

from dplasso.selection.bucket import bucket_state
from dplasso.selection.noisy_max import LaplaceState


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("nats", [0.01, 3.0])
def test_the_distribution_is_the_closed_form_after_many_updates(name, nats):
    course = [random_gradients(9, seed, nats) for seed in range(6)]
    found = implied_log_probabilities(PRIVATE[name](9, EXPONENT), course)
    expected = vertex_probabilities(course[-1], EXPONENT).T
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-11)


def test_the_true_sign_leaves_impossible_vertices():
    alpha = np.array([2**33, -(2**33), 0])
    found = implied_log_probabilities(bucket_state(3, EXPONENT, False), [alpha])
    assert np.isneginf(found).tolist() == [[False, True, False], [True, False, True]]
    assert np.exp(found).sum() == pytest.approx(1.0)


def test_a_bound_below_a_weight_is_noticed():
    """The draw would be wrong, silently: bernoulli takes more than 1 for 1."""
    selector = bucket_state(4, EXPONENT, True)
    # The levels below the top now claim a quarter of what their members weigh.
    selector.decay[1:] /= 4
    with pytest.raises(AssertionError, match="below the weight"):
        implied_log_probabilities(selector, [random_gradients(4, 0)])


def test_structures_without_a_closed_form_are_refused():
    with pytest.raises(ValueError, match="'bucket' or 'big-little'"):
        implied_log_probabilities(
            LaplaceState(1.0, np.zeros(4, dtype=np.int64)), [np.zeros(3, int)]
        )
    steep = bucket_state(3, 3.0, True)
    with pytest.raises(ValueError, match="race"):
        implied_log_probabilities(steep, [np.array([5, 0, 1])])
