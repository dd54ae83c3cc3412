"""Rounds: gradients are refreshed at their ends alone, alike by every solver, layout and thread."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe import drift
from dplasso.frank_wolfe.rounds import ROUND, SINGLE_DRAWS, round_end
from dplasso.frank_wolfe.solve import solve
from dplasso.privacy.randomness import random_stream
from dplasso.selection.counters import new_counters
from dplasso.selection.noisy_max import GumbelState
from frank_wolfe.cases import (
    LAYOUTS,
    WAYS,
    add_changes,
    distinct_transcript,
    forced,
    row_parts,
    small_problem,
    true_gradient,
    watch,
)

STEPS = SINGLE_DRAWS + 2 * ROUND + 2
ENDS = {*range(1, SINGLE_DRAWS + 1), SINGLE_DRAWS + ROUND, SINGLE_DRAWS + 2 * ROUND, STEPS}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks of rows, so that threads have some each."""
    monkeypatch.setattr(drift, "_BLOCK_BITS", 2)


def problem_of(seed, **options):
    given = {"n_rows": 90, "n_columns": 60, "radius": 2.0**20, "late_start": 2**20}
    given |= {"distinct": True, "intercept": False} | options
    return small_problem(seed, STEPS, **given)[2]


@given(st.integers(1, 300), st.integers(1, 310))
def test_the_ends_are_public(n_steps, step):
    ends = [t for t in range(1, n_steps) if t <= SINGLE_DRAWS or (t - SINGLE_DRAWS) % ROUND == 0]
    expected = next((t for t in [*ends, n_steps] if t >= step), step)
    assert round_end(True, n_steps, step) == expected
    assert round_end(False, n_steps, step) == step


@pytest.mark.parametrize("drift_tol", [0.0, 0.01])
@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_gradients_are_true_at_the_ends_and_stand_still_between(drift_tol, seed):
    problem = problem_of(seed)
    chosen = forced(distinct_transcript(problem, seed))
    moved = 0
    before = None
    for step, state in watch(problem, chosen, drift_tol):
        assert len(state.calendar.head) > 1
        if step in ENDS:
            error = np.abs(state.gradient - true_gradient(problem, state.margin, step))
            assert error.max() <= drift_tol + 1e-12
            moved += before is not None and not np.array_equal(before, state.gradient)
        else:
            np.testing.assert_array_equal(before, state.gradient)
        before = state.gradient.copy()
    assert moved == len(ENDS) - 1


@pytest.mark.parametrize("seed", range(4))
def test_both_algorithms_draw_the_same(seed):
    problem = problem_of(seed, n_rows=300)

    def drawn(**options):
        selector = GumbelState(3e-10, new_counters())
        return solve(problem, selector, random_stream(seed), **options).transcript()

    exact = drawn(solver="standard")
    assert len(set(exact.vertex.tolist())) == STEPS
    assert drawn(drift_tol=0.0) == exact
    # What a refresh after every draw, as without a calendar, would have drawn.
    assert drawn(drift_tol=None) != exact


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=4)
@given(st.integers(0, 10**6), st.sampled_from(list(LAYOUTS)), st.booleans())
def test_threads_and_layouts_change_no_bit(n_threads, way, seed, layout, distinct):
    problem = problem_of(seed, distinct=distinct)
    chosen = distinct_transcript(problem, seed)
    steps = watch(problem, forced(chosen), 0.01, way=WAYS["small"])
    laid_out = LAYOUTS[layout](problem)
    others = watch(laid_out, forced(chosen), 0.01, n_threads=n_threads, way=WAYS[way])
    internal = laid_out.design.numbering.internal
    for (_, one), (_, other) in zip(steps, others, strict=True):
        alpha = other.alpha[internal] if internal.size else other.alpha
        np.testing.assert_array_equal(alpha, one.alpha)
        np.testing.assert_array_equal(other.rows, one.rows)
        np.testing.assert_array_equal(other.sums, one.sums)
        np.testing.assert_array_equal(other.step_counts, one.step_counts)


@pytest.mark.parametrize("way", [WAYS["small"], WAYS["large"], {"entries_large": 0}])
def test_partitions_change_no_bit(way):
    """However many entries a part has: what it answers are changes, never sums."""
    problem = problem_of(5)
    chosen = distinct_transcript(problem, 5)
    parts = row_parts(problem, 3, drift_tol=0.01, **way)
    alpha = sum(part.start() for part in parts)
    left_out = []
    for step, state in watch(problem, forced(chosen), 0.01):
        j, sign = int(chosen.vertex[step - 1]), int(chosen.sign[step - 1])
        found = [part.move(step, j, sign) for part in parts]
        for changes in found:
            add_changes(alpha, changes)
        # Those drawn before this step stand at zero in one process.
        kept = np.setdiff1d(np.arange(alpha.size), left_out)
        np.testing.assert_array_equal(alpha[kept], state.alpha[kept])
        assert sum(c.counts for c in found).tolist() == state.step_counts.tolist()
        left_out.append(j)
