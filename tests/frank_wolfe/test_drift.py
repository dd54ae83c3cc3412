"""The calendar: who is due when, against a linear search and plain lists."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.frank_wolfe.drift import NONE, drift, due_step, new_calendar, schedule, unschedule
from reference import ListCalendar, drift_between, first_drifted

# What rounding may move a drift by.
ROUNDING = 1e-15


@given(
    st.floats(0, 1e6),
    st.integers(0, 50),
    st.one_of(st.floats(0, 0.6), st.floats(1e-19, 1e-3), st.just(1e-3)),
    st.integers(1, 150),
)
@example(1000.0, 0, 1e-20, 100)
@example(30.0, 0, 1e-17, 100)
@example(1e6, 3, 0.499, 100)
@example(0.0, 0, 0.0, 10)
def test_due_step_is_the_first_that_drifted(full_margin, step, tolerance, n_steps):
    step = min(step, n_steps)
    due = due_step(full_margin, step, tolerance, n_steps)
    if tolerance == 0.0:
        assert due == (n_steps + 1 if full_margin == 0.0 else step + 1)
        return
    earliest = first_drifted(full_margin, step, tolerance - ROUNDING, n_steps)
    latest = first_drifted(full_margin, step, tolerance + ROUNDING, n_steps)
    assert earliest <= due <= latest


def test_due_steps_are_exact_for_ordinary_rows():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        full_margin, step = rng.exponential(300.0), int(rng.integers(1, 60))
        tolerance = 10.0 ** rng.uniform(-4, -0.5)
        due = due_step(full_margin, step, tolerance, 400)
        assert due == first_drifted(full_margin, step, tolerance, 400)
        seen.add(due)
    # Soon, later, and never: the search has something to find.
    assert len(seen) > 30
    assert 401 in seen


def test_drift_matches_its_twin():
    for full_margin, step, later in ((3.0, 0, 4), (1e5, 2, 90), (0.1, 7, 8), (1e9, 1, 2)):
        expected = drift_between(full_margin, step, later)
        assert drift(full_margin, step, later) == pytest.approx(expected, abs=ROUNDING)


operations = st.lists(
    st.tuples(st.integers(0, 7), st.one_of(st.none(), st.integers(1, 6))), max_size=60
)


@given(operations)
def test_the_calendar_matches_plain_lists(taken):
    n_rows, n_steps = 8, 5
    calendar, twin = new_calendar(n_rows, n_steps), ListCalendar(n_rows, n_steps)
    for row, step in taken:
        if step is None:
            unschedule(calendar, row)
            twin.unschedule(row)
        else:
            # Step 6 lies beyond the last: the row is taken off.
            schedule(calendar, row, step)
            twin.schedule(row, step)
        assert lists_of(calendar) == twin.rows
        assert calendar.rows_due.tolist() == [len(rows) for rows in twin.rows.values()]
    for row in range(n_rows):
        where = [step for step, rows in twin.rows.items() if row in rows]
        assert calendar.due[row] == (where[0] if where else NONE)


def lists_of(calendar):
    """Walk every list forwards, checking that it reads the same backwards."""
    rows = {}
    for step, first in enumerate(calendar.head.tolist()):
        rows[step] = []
        before, row = NONE, first
        while row != NONE:
            assert calendar.previous[row] == before
            rows[step].append(row)
            assert len(rows[step]) <= calendar.due.size
            before, row = row, int(calendar.following[row])
    return rows


def test_a_calendar_that_is_never_used_takes_no_space():
    assert new_calendar(0, 9).due.size == 0
