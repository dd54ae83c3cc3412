"""Counts of the work, against counting by hand."""

import numpy as np
from evidence.solving import solve

from dplasso.frank_wolfe.vertex_run import OPERATIONS_PER_COORDINATE, OPERATIONS_PER_GRADIENT
from dplasso.privacy.randomness import random_stream
from dplasso.selection.contract import new_counters
from dplasso.selection.noisy_max import GumbelState
from frank_wolfe.cases import build, forced, random_transcript, small_problem


def work_of(problem, selector, **options):
    return solve(problem, selector, random_stream(0), record_work=True, **options).work


def test_algorithm_1_does_the_same_work_at_every_step():
    X, _, problem = small_problem(0)
    work = work_of(problem, GumbelState(1e-10, new_counters()), solver="standard")
    nnz = np.count_nonzero(X)
    expected = 4 * nnz + OPERATIONS_PER_GRADIENT * 15 + OPERATIONS_PER_COORDINATE * 9
    assert work.touched.tolist() == [nnz] * 12
    assert work.operations.tolist() == [expected] * 12
    assert work.variates.tolist() == [18] * 12
    assert not work.pops.any()


def test_algorithm_2_counts_the_rows_it_refreshes():
    # Columns 0, 1, 2 have 2, 1 and 0 rows; rows have 2, 1 and 1 entries (the third in column 3).
    X = np.array([[1, 0.5, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=np.float32)
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
