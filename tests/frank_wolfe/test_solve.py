"""The driver: the same bits from any prefix, large steps and threads; counted work."""

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.reference.gradients import EXPONENT as PER_RECORD
from evidence.solving import solve
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.large_step import large_rows
from dplasso.frank_wolfe.vertex_run import OPERATIONS_PER_GRADIENT
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.privacy.randomness import random_stream
from dplasso.selection.bucket import bucket_state
from dplasso.selection.noisy_max import GumbelState
from dplasso.selection.registry import make_selector
from dplasso.selection.selector import new_counters
from frank_wolfe.cases import (
    WAYS,
    argmax,
    build,
    dense_rows,
    forced,
    random_transcript,
    small_problem,
    some_labels,
    taking,
)


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


def assert_same(one, other, names):
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


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
        assert_same(whole.state, found.state, ("alpha", "margin", "gradient"))
        if solver == "sparse":
            np.testing.assert_array_equal(whole.state.rows, found.state.rows)
        # How many tries the discarded draws took is a matter of their own chance.
        assert_same(own, again, {*own._fields} - {"counters"})
        np.testing.assert_array_equal(whole.history.gap, found.history.gap)


def test_more_steps_than_the_run_has_are_refused():
    _, _, problem = small_problem(7, n_steps=30)
    _, _, shorter = small_problem(7, n_steps=29)
    chosen = random_transcript(problem, 3)
    with pytest.raises(ValueError, match="prefix of 30 steps is given to a run of 29"):
        solve(shorter, selector_of("bucket", problem), random_stream(0), prefix=chosen)


def test_algorithm_2_counts_the_rows_it_refreshes():
    # Columns 0, 1, 2 have 2, 1 and 0 rows; rows have 2, 1 and 1 entries (the third in column 3).
    X = np.array([[1, 0.5, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=np.float64)
    problem = build(X, [0, 1, 1], 3, intercept=False)
    chosen = random_transcript(problem, 0)
    chosen.vertex[:], chosen.sign[:] = [0, 1, 2], 1
    work = run(problem, forced(chosen), drift_tol=None, record_work=True).work
    assert work.touched.tolist() == [3, 2, 0]
    per_row = OPERATIONS_PER_GRADIENT
    assert work.operations.tolist() == [2 * per_row + 2 * 3, per_row + 2 * 2, 0]
    # Exact iterates: after step 2 the rows with a margin are refreshed as well, row 0 twice.
    work = run(problem, forced(chosen), drift_tol=0.0, record_work=True).work
    assert work.operations[2] == 2 * per_row + 2 * 3
    assert work.touched[2] == 3


# --- threads and large steps ---------------------------------------------------------------------

seeds = st.integers(0, 10**6)
DRAWING = {
    "argmax": lambda n: argmax(),
    "noisy-max": lambda n: GumbelState(30 * PER_RECORD, new_counters()),
    "bucket": lambda n: bucket_state(n, 30 * PER_RECORD, True),
    "bucket, plain": lambda n: bucket_state(n, np.inf, False),
}


def left_by(problem, selector, drift_tol, *, n_threads=1, way="as it comes"):
    """Return everything a run leaves behind."""
    options = {"drift_tol": drift_tol, "n_threads": n_threads}
    options |= {"record_history": True, "record_work": True}
    with taking(way):
        found = solve(problem, selector, random_stream(3), **options)
    left = {name: getattr(found.state, name).copy() for name in ("alpha", "margin", "gradient")}
    left |= {"due": found.state.rows["due"].copy(), "touched": found.work.touched}
    left |= vars(found.transcript()) | {"gap": found.history.gap}
    return left | {"objective": found.history.objective}


def same(one, other, label=""):
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], f"{name} {label}")


def problems(seed, **options):
    options = {"n_rows": 40, "n_columns": 20, "n_steps": 25, "radius": 30.0} | options
    problem = small_problem(seed, **options)[2]
    if seed % 2:
        # All entries are 1.
        design = problem.design
        same = {"values": design.rows.values[:0], "constant": 1.0}
        rows, columns = design.rows._replace(**same), design.columns._replace(**same)
        problem = problem._replace(design=design._replace(rows=rows, columns=columns))
    return problem


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=4)
@given(seeds, st.booleans(), st.sampled_from([None, 0.0, 0.003, 0.1]))
def test_the_same_vertices_lead_to_the_same_bits(n_threads, way, seed, intercept, drift_tol):
    problem = problems(seed, intercept=intercept)
    chosen = random_transcript(problem, seed)
    expected = left_by(problem, forced(chosen), drift_tol, way="small")
    found = left_by(problem, forced(chosen), drift_tol, n_threads=n_threads, way=way)
    same(expected, found)


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("way", WAYS)
def test_a_draw_does_not_depend_on_the_threads(name, way):
    problem = problems(4)
    runs = []
    for n_threads in (1, 2, 3):
        selector = DRAWING[name](problem.design.n_coordinates)
        runs.append(left_by(problem, selector, 0.003, n_threads=n_threads, way=way))
    same(runs[0], runs[1])
    same(runs[0], runs[2])


def test_both_kinds_of_step_occur_by_size_alone():
    """The thresholds as shipped: a frequent column makes a large step, a rare one does not."""
    X = dense_rows(30_000, 80, 0, density=0.9)
    X[100:, 5] = 0.0
    problem = build(X, some_labels(30_000, 0), 4)
    limit = large_rows(problem)
    lengths = np.diff(problem.design.columns.indptr)
    assert (lengths > limit).sum() == 79
    assert lengths[5] < limit
