"""Steps taken from a prefix instead of drawn: the run that goes on is the run that was cut off."""

import numpy as np
import pytest
from evidence.solving import solve

from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.privacy.randomness import random_stream
from dplasso.selection.registry import make_selector
from frank_wolfe.cases import random_transcript, small_problem

# Six nats to a record's share: draws that the gradients decide, yet not all the same.
EXPONENT = 6.0 / 2**32
SELECTORS = ["bucket", "noisy-max", "argmax"]


def selector_of(name, problem):
    mechanism, exponent = "exponential", EXPONENT
    if name == "argmax":
        mechanism, exponent = "none", np.inf
    return make_selector(
        name, problem.design.n_coordinates, SelectionRule(mechanism, exponent, 0.0)
    )


def first(transcript, count):
    return Transcript(transcript.vertex[:count], transcript.sign[:count])


def assert_same_selector(one, other):
    for name, value in one._asdict().items():
        # How many tries the discarded draws took is a matter of their own chance.
        if isinstance(value, np.ndarray) and name != "counters":
            np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


def assert_same_state(one, other):
    for name in ("alpha", "margin", "gradient"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    if hasattr(one, "rows"):
        np.testing.assert_array_equal(one.rows, other.rows)


@pytest.mark.parametrize("solver", ["sparse", "standard"])
@pytest.mark.parametrize("name", SELECTORS)
def test_a_run_goes_on_from_any_prefix_as_the_one_that_drew_it(name, solver):
    _, _, problem = small_problem(6, n_steps=40)
    options = {"solver": solver, "drift_tol": 0.01, "record_history": True}
    own = selector_of(name, problem)
    whole = solve(problem, own, random_stream(1), **options)
    for count in (0, 1, 17, 40):
        again = selector_of(name, problem)
        # Random words count only for what is drawn.
        stream = random_stream(2 if count == 40 else 1)
        found = solve(problem, again, stream, prefix=whole.transcript(count), **options)
        assert found.transcript() == whole.transcript()
        assert_same_state(whole.state, found.state)
        assert_same_selector(own, again)
        np.testing.assert_array_equal(whole.history.gap, found.history.gap)


@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_a_prefix_is_taken_whatever_the_draw_would_be(solver):
    _, _, problem = small_problem(7, n_steps=30)
    chosen = random_transcript(problem, 3)

    def drawn(prefix):
        selector = selector_of("bucket", problem)
        return solve(problem, selector, random_stream(0), solver=solver, prefix=prefix).transcript

    assert drawn(chosen)() == chosen
    part = drawn(first(chosen, 20))
    assert part(20) == first(chosen, 20)
    # Two runs that share twenty steps and then draw: ten draws agree with chance below 1e-6.
    assert part() != chosen


def test_more_steps_than_the_run_has_are_refused():
    _, _, problem = small_problem(7, n_steps=30)
    _, _, shorter = small_problem(7, n_steps=29)
    chosen = random_transcript(problem, 3)
    with pytest.raises(ValueError, match="prefix of 30 steps is given to a run of 29"):
        solve(shorter, selector_of("bucket", problem), random_stream(0), prefix=chosen)


def test_the_callback_sees_every_prefix_before_progress_does():
    _, _, problem = small_problem(8, n_steps=50)
    calls = []
    solution = solve(
        problem,
        selector_of("bucket", problem),
        random_stream(0),
        checkpoint=lambda done, prefix: calls.append((done, prefix)),
        progress=lambda done, total: calls.append((done, total)),
    )
    saved, shown = calls[::2], calls[1::2]
    assert shown == [(done, 50) for done, _ in saved]
    assert saved[-1][0] == 50
    for done, prefix in saved:
        assert prefix == solution.transcript(done)
