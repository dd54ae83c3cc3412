"""One run, many ways to compute it: threads, large steps; the same bits from all."""

import numpy as np
import pytest
from evidence.reference.gradients import EXPONENT
from evidence.solving import solve
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.large_step import large_rows
from dplasso.privacy.randomness import random_stream
from dplasso.selection.bucket import bucket_state
from dplasso.selection.noisy_max import ArgmaxState, GumbelState
from dplasso.selection.selector import new_counters
from frank_wolfe.cases import (
    WAYS,
    build,
    dense_rows,
    forced,
    random_transcript,
    small_problem,
    some_labels,
    taking,
)

seeds = st.integers(0, 10**6)
SELECTORS = {
    "argmax": lambda n: ArgmaxState(new_counters()),
    "noisy-max": lambda n: GumbelState(30 * EXPONENT, new_counters()),
    "bucket": lambda n: bucket_state(n, 30 * EXPONENT, True),
    "bucket, plain": lambda n: bucket_state(n, np.inf, False),
}


def run(problem, selector, drift_tol, *, n_threads=1, way="as it comes"):
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
    expected = run(problem, forced(chosen), drift_tol, way="small")
    found = run(problem, forced(chosen), drift_tol, n_threads=n_threads, way=way)
    same(expected, found)


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("way", WAYS)
def test_a_draw_does_not_depend_on_the_threads(name, way):
    problem = problems(4)
    runs = []
    for n_threads in (1, 2, 3):
        selector = SELECTORS[name](problem.design.n_coordinates)
        runs.append(run(problem, selector, 0.003, n_threads=n_threads, way=way))
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
