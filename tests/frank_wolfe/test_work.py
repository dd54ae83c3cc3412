"""Counts of the work, against counting by hand."""

from dataclasses import fields

import numpy as np

from dplasso.frank_wolfe.solve import solve
from dplasso.frank_wolfe.work import (
    COLUMNS,
    OPERATIONS_PER_COORDINATE,
    OPERATIONS_PER_GRADIENT,
    Work,
    record_work,
    work_table,
)
from dplasso.privacy.randomness import random_stream
from dplasso.selection.counters import NAMES, new_counters
from dplasso.selection.noisy_max import GumbelState
from frank_wolfe.cases import argmax, build, forced, random_transcript, small_problem


def work_of(problem, selector, **options):
    return solve(problem, selector, random_stream(0), record_work=True, **options).work


def test_columns_are_the_counters_then_the_operations():
    assert (*NAMES, "touched", "operations") == COLUMNS
    assert work_table(3).shape == (3, len(COLUMNS))


def test_record_work_moves_the_counts():
    counters, operation_counts = np.arange(1, 5), np.array([50, 60])
    table = work_table(1)
    record_work(table[0], counters, operation_counts)
    assert table[0].tolist() == [1, 2, 3, 4, 50, 60]
    assert not counters.any()
    assert not operation_counts.any()


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


def test_a_column_of_work_for_every_step():
    _, _, problem = small_problem(0)
    work = work_of(problem, argmax())
    for field in fields(Work):
        assert getattr(work, field.name).shape == (12,)
        assert getattr(work, field.name).dtype == np.int64
