"""The driver: the same bits in any chunks, prefixes, interruption, counted work, the optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.solving import solve

from dplasso.frank_wolfe.vertex_run import OPERATIONS_PER_GRADIENT
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.privacy.randomness import random_stream
from dplasso.selection.registry import make_selector
from frank_wolfe.cases import argmax, build, forced, random_transcript, small_problem


def run(problem, selector=None, seed=0, **options):
    return solve(problem, selector or argmax(), random_stream(seed), **options)


def test_no_entries_at_all():
    problem = build(sp.csr_array((4, 3)), [0, 1, 1, 1], 5)
    assert run(problem).transcript().vertex.tolist() == [3] * 5
    problem = build(sp.csr_array((4, 3)), [0, 1, 1, 1], 5, intercept=False)
    assert run(problem).transcript().vertex.tolist() == [0] * 5


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


def test_more_steps_than_the_run_has_are_refused():
    _, _, problem = small_problem(7, n_steps=30)
    _, _, shorter = small_problem(7, n_steps=29)
    chosen = random_transcript(problem, 3)
    with pytest.raises(ValueError, match="prefix of 30 steps is given to a run of 29"):
        solve(shorter, selector_of("bucket", problem), random_stream(0), prefix=chosen)


def work_of(problem, selector, **options):
    return solve(problem, selector, random_stream(0), record_work=True, **options).work


def test_algorithm_2_counts_the_rows_it_refreshes():
    # Columns 0, 1, 2 have 2, 1 and 0 rows; rows have 2, 1 and 1 entries (the third in column 3).
    X = np.array([[1, 0.5, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=np.float64)
    problem = build(X, [0, 1, 1], 3, intercept=False)
    chosen = random_transcript(problem, 0)
    chosen.vertex[:], chosen.sign[:] = [0, 1, 2], 1
    work = work_of(problem, forced(chosen), drift_tol=None)
    assert work.touched.tolist() == [3, 2, 0]
    per_row = OPERATIONS_PER_GRADIENT
    assert work.operations.tolist() == [2 * per_row + 2 * 3, per_row + 2 * 2, 0]
    # Exact iterates: after step 2 the rows with a margin are refreshed as well, row 0 twice.
    work = work_of(problem, forced(chosen), drift_tol=0.0)
    assert work.operations[2] == 2 * per_row + 2 * 3
    assert work.touched[2] == 3
