"""Steps taken from a prefix instead of drawn: the run that goes on is the run that was cut off."""

import numpy as np
import pytest

from dplasso.frank_wolfe.solve import solve
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.mechanisms import SelectionRule
from dplasso.privacy.randomness import random_stream
from dplasso.selection.registry import make_selector
from frank_wolfe.cases import random_transcript, small_problem

# Six nats to a record's share: draws that the gradients decide, yet not all the same.
EXPONENT = 6.0 / 2**32
SELECTORS = ["bucket", "big-little", "noisy-max", "heap", "argmax"]
DETERMINISTIC = ("heap", "argmax")


def selector_of(name, problem):
    mechanism = "none" if name in DETERMINISTIC else "exponential"
    exponent = np.inf if name in DETERMINISTIC else EXPONENT
    return make_selector(
        name, problem.design.n_coordinates, SelectionRule(mechanism, exponent, 0.0)
    )


def first(transcript, count):
    return Transcript(transcript.vertex[:count], transcript.sign[:count])


def flat(state):
    """Name every array in a state, nested ones included."""
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            yield from ((f"{name}.{inner}", array) for inner, array in flat(value))
        elif isinstance(value, np.ndarray) and value.dtype.names:
            yield from ((f"{name}.{field}", value[field]) for field in value.dtype.names)
        elif isinstance(value, np.ndarray):
            yield name, value


def assert_same(one, other, besides=()):
    one, other = dict(flat(one)), dict(flat(other))
    assert one.keys() == other.keys()
    assert "alpha" in one or "counters" in one
    for name, array in one.items():
        if name not in besides and not name.startswith("scratch."):
            np.testing.assert_array_equal(array, other[name], err_msg=name)


# Scratch of the solver, written before it is read: left as the allocator gave it.
SCRATCH = ("changed", "before")


@pytest.mark.parametrize("solver", ["sparse", "standard"])
@pytest.mark.parametrize("name", SELECTORS)
def test_the_state_after_a_prefix_is_that_of_the_run_that_drew_them(name, solver):
    _, _, problem = small_problem(5, n_steps=40)
    own, again = selector_of(name, problem), selector_of(name, problem)
    options = {"solver": solver, "drift_tol": 0.01, "record_history": True}
    drawn = solve(problem, own, random_stream(1), **options)
    taken = solve(problem, again, random_stream(2), prefix=drawn.transcript(), **options)
    assert taken.transcript() == drawn.transcript()
    assert_same(drawn.state, taken.state, SCRATCH)
    # How many tries the discarded draws took is a matter of their own chance.
    assert_same(own, again, () if name in DETERMINISTIC else ("counters",))
    np.testing.assert_array_equal(drawn.history.gap, taken.history.gap)


@pytest.mark.parametrize("solver", ["sparse", "standard"])
@pytest.mark.parametrize("name", SELECTORS)
def test_the_same_words_after_the_prefix_draw_the_same_run(name, solver):
    _, _, problem = small_problem(6, n_steps=40)
    whole = solve(problem, selector_of(name, problem), random_stream(1), solver=solver)
    for count in (0, 1, 17, 39):
        again = solve(
            problem,
            selector_of(name, problem),
            random_stream(1),
            solver=solver,
            prefix=whole.transcript(count),
        )
        assert again.transcript() == whole.transcript()
        assert_same(whole.state, again.state, SCRATCH)


@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_a_prefix_is_taken_whatever_the_draw_would_be(solver):
    _, _, problem = small_problem(7, n_steps=30)
    chosen = random_transcript(problem, 3)
    solution = solve(
        problem, selector_of("bucket", problem), random_stream(0), solver=solver, prefix=chosen
    )
    assert solution.transcript() == chosen
    part = solve(
        problem,
        selector_of("bucket", problem),
        random_stream(0),
        solver=solver,
        prefix=first(chosen, 20),
    )
    assert part.transcript(20) == first(chosen, 20)
    # Two runs that share twenty steps and then draw: ten draws agree with chance below 1e-6.
    assert part.transcript() != chosen


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
        progress=lambda done, total: calls.append(done),
    )
    # Once before anything is drawn.
    before, *calls = calls
    assert before[0] == len(before[1]) == 0
    saved, shown = calls[::2], calls[1::2]
    assert [done for done, _ in saved] == shown
    assert saved[-1][0] == 50
    for done, prefix in saved:
        assert prefix == solution.transcript(done)
