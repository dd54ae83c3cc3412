"""The calendar and the intervals: against plain lists, a linear search and sigma itself."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.frank_wolfe.drift import (
    NONE,
    due_step,
    new_calendar,
    new_rows,
    schedule,
    take_due,
    tolerance_of,
    tolerance_within_noise,
    unschedule,
)
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import NO_OFFSETS, NO_WEIGHTS
from frank_wolfe.reference import ListCalendar, first_outside, sigma

ends = st.tuples(st.floats(-40, 40, width=32), st.floats(-40, 40, width=32)).map(sorted)


@given(st.floats(-1e6, 1e6), ends, st.integers(0, 50), st.integers(1, 150))
@example(1000.0, (np.inf, -np.inf), 0, 100)
@example(0.0, (np.inf, -np.inf), 3, 100)
@example(-3.0, (-2.0, -1e-3), 0, 100)
@example(1e6, (1e-38, 40.0), 3, 100)
@example(-1.0, (-1.0, -0.3333333432674408), 0, 1)
def test_due_step_is_the_first_outside(full_margin, ends, step, n_steps):
    step = min(step, n_steps)
    lowest, highest = np.float32(ends[0]), np.float32(ends[1])
    due = due_step(full_margin, lowest, highest, step, n_steps)
    here = full_margin * (2.0 / ((step + 1.0) * (step + 2.0)))
    if full_margin == 0.0:
        assert due == n_steps + 1
    elif lowest > highest:
        assert due == step + 1
    elif float(lowest) <= here <= float(highest):
        assert due == first_outside(full_margin, lowest, highest, step, n_steps)


operations = st.lists(
    st.tuples(st.integers(0, 7), st.one_of(st.none(), st.integers(1, 6))), max_size=60
)


def empty_rows(n_rows):
    return new_rows(Logistic(), (np.zeros(n_rows), NO_WEIGHTS, NO_OFFSETS), 0.0)


@given(operations, st.integers(1, 5), st.integers(1, 3))
def test_the_calendar_matches_plain_lists(taken, due, room):
    n_rows, n_steps = 8, 5
    calendar, twin = new_calendar(n_rows, n_steps), ListCalendar(n_rows, n_steps)
    rows = empty_rows(n_rows)
    for row, step in taken:
        if step is None:
            unschedule(calendar, rows, row)
            twin.unschedule(row)
        else:
            # Step 6 lies beyond the last: the row is taken off.
            schedule(calendar, rows, row, step)
            twin.schedule(row, step)
        check(calendar, rows, twin)
    # Rows come off in the order of the list, a few at a time.
    while twin.rows[due]:
        found = np.empty(room, dtype=np.int32)
        count = take_due(calendar, rows, 0, due, found)
        assert found[:count].tolist() == twin.rows[due][:room]
        del twin.rows[due][:room]
        check(calendar, rows, twin)
    assert take_due(calendar, rows, 0, due, np.empty(1, dtype=np.int32)) == 0


def check(calendar, rows, twin):
    """Compare the lists, and every row's own note of where it waits."""
    assert lists_of(calendar, rows) == twin.rows
    assert calendar.rows_due[0].tolist() == [len(waiting) for waiting in twin.rows.values()]
    for row in range(rows.size):
        where = [step for step, waiting in twin.rows.items() if row in waiting]
        assert rows["due"][row] == (where[0] if where else NONE)


def lists_of(calendar, rows):
    """Walk every list forwards, checking that it reads the same backwards."""
    lists = {}
    for step, first in enumerate(calendar.head[0].tolist()):
        lists[step] = []
        before, row = NONE, first
        while row != NONE:
            assert rows["previous"][row] == before
            lists[step].append(row)
            assert len(lists[step]) <= rows.size
            before, row = row, int(rows["following"][row])
    return lists


def test_rows_start_at_zero_weights():
    rows = new_rows(Logistic(), (np.array([0.0, 1.0]), NO_WEIGHTS, NO_OFFSETS), 0.1)
    assert rows["gradient"].tolist() == [0.5, -0.5]
    assert rows["margin"].tolist() == [0, 0]
    assert sigma(float(rows["highest"][0])) == pytest.approx(0.6)
    assert rows.itemsize <= 40


@pytest.mark.parametrize(
    ("drift_tol", "private", "expected"),
    [("auto", True, 2.5e-3), ("auto", False, 1e-4), (0, True, 0.0), (0.1, False, 0.1)],
)
def test_what_a_setting_stands_for(drift_tol, private, expected):
    assert tolerance_of(drift_tol, private=private) == expected
    assert tolerance_of(None, private=private) is None


def test_a_tolerance_within_the_noise_moves_no_score_by_more_than_a_third_of_it():
    # The best of 1,000 scores of noise alone is log(1,000) / 0.01 above the typical one.
    assert tolerance_within_noise(0.01, 10_000.0, 1_000) == pytest.approx(
        np.log(1_000) / 0.01 / 3e4
    )
    assert tolerance_within_noise(0.01, 20_000.0, 1_000) == pytest.approx(
        np.log(1_000) / 0.01 / 6e4
    )
    # Never below the default, and never a large part of a residual.
    assert tolerance_within_noise(10.0, 10_000.0, 1_000) == 2.5e-3
    assert tolerance_within_noise(1e-6, 10_000.0, 1_000) == 0.1
