"""Rows in parts: their changes add up to those of one process, bit for bit."""

import numpy as np
import pytest

from dplasso.runtime.threads import thread_pool
from frank_wolfe.cases import (
    add_changes,
    forced,
    moved,
    random_transcript,
    row_parts,
    small_problem,
    taking,
    watch,
)


@pytest.mark.parametrize("drift_tol", [0.0, 0.01, None])
@pytest.mark.parametrize("n_columns", [8, 300])
@pytest.mark.parametrize("way", ["as it comes", "large", "recomputed"])
def test_any_partition_agrees_with_one_process(way, n_columns, drift_tol):
    """However many entries a part has: what it answers are changes, never sums."""
    _, _, problem = small_problem(0, n_steps=40, n_rows=23, n_columns=n_columns)
    drawn = random_transcript(problem, 0)
    sparse = dense = 0
    with taking(way), thread_pool(2 if way == "large" else 1) as threads:
        for n_parts in (1, 2, 5):
            parts = row_parts(problem, n_parts, drift_tol=drift_tol, threads=threads)
            alpha = sum(part.start() for part in parts)
            for step, state in watch(problem, forced(drawn), drift_tol):
                found = [moved(part, step, drawn) for part in parts]
                for changes in found:
                    if add_changes(alpha, changes):
                        dense += 1
                    else:
                        sparse += 1
                np.testing.assert_array_equal(alpha, state.alpha)
                # What is decided by sums is decided alike.
                assert sum(c.counts for c in found).tolist() == state.step_counts.tolist()
    assert dense
    assert sparse


@pytest.mark.parametrize("drift_tol", [0.0, 0.01])
def test_a_part_that_caught_up_goes_on_like_the_one_that_was_lost(drift_tol):
    _, _, problem = small_problem(3, n_steps=30, n_rows=23, n_columns=40)
    drawn = random_transcript(problem, 3)
    for lost_after in (0, 1, 17, 29):
        (whole,), (again,) = (row_parts(problem, 1, drift_tol=drift_tol) for _ in range(2))
        for step in range(1, lost_after + 1):
            moved(whole, step, drawn)
        again.catch_up(drawn.vertex[:lost_after], drawn.sign[:lost_after])
        for step in range(lost_after + 1, 31):
            one, other = moved(whole, step, drawn), moved(again, step, drawn)
            for mine, theirs in zip(one, other, strict=True):
                np.testing.assert_array_equal(mine, theirs)
