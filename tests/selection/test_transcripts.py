"""The same transcript gives the same gradients, whichever structure follows them."""

import numpy as np
import pytest
from evidence.reference.draws import change, draw, fill

from dplasso.frank_wolfe.column_gradients import starting_alpha
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
from frank_wolfe.cases import (
    argmax,
    forced,
    last,
    random_transcript,
    small_problem,
    watch,
)
from selection.invariants import check
from selection.test_direction import STRUCTURES


@pytest.mark.parametrize("name", STRUCTURES)
def test_follows_a_forced_transcript(name):
    _, _, problem = small_problem(1, n_steps=40)
    alpha = starting_alpha(problem, ONE_THREAD)
    selector, reference = STRUCTURES[name](alpha.size), argmax()
    fill(selector, alpha)
    for _, state in watch(problem, forced(random_transcript(problem, 2)), 0.01):
        changed = np.flatnonzero(alpha != state.alpha)
        change(selector, alpha, changed, state.alpha[changed])
        check(selector, alpha)
        vertex, _ = draw(selector, alpha, random_stream(1), 3)
        # A thousand nats a share: the steepest wins unless another is within a few hundredths.
        best = draw(reference, alpha, random_stream(1), 1)[0][0]
        assert (np.abs(alpha[vertex]) > np.abs(alpha[best]) - 2**28).all()
    np.testing.assert_array_equal(alpha, state.alpha)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_run_is_replayed_bit_for_bit(name):
    _, _, problem = small_problem(3, n_steps=40)
    selector, runs = STRUCTURES[name](problem.design.n_coordinates), []
    own = last(watch(problem, selector, 0.01, runs=runs))
    again = last(watch(problem, forced(runs[0].transcript()), 0.01))
    np.testing.assert_array_equal(own.alpha, again.alpha)
    np.testing.assert_array_equal(own.margin, again.margin)
