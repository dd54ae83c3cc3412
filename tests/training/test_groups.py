"""Which rows of a person enter depends on that person's rows alone."""

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.errors import DataError
from dplasso.training.groups import rows_within_limit


def slow(groups, limit):
    seen, within = {}, []
    for person in groups:
        seen[person] = seen.get(person, 0) + 1
        within.append(seen[person] <= limit)
    return within


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(1, 4))
def test_the_first_rows_of_each_person(groups, limit):
    for given_as in (groups, np.array(groups), pandas.Series(groups), [f"n{g}" for g in groups]):
        within = rows_within_limit(given_as, len(groups), limit)
        assert within.tolist() == slow(list(given_as), limit)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.data())
def test_another_person_changes_nothing(groups, data):
    person = data.draw(st.sampled_from(groups))
    others = [g for g in groups if g != person]
    within = rows_within_limit(groups, len(groups), 2)
    if others:
        kept = [k for g, k in zip(groups, within.tolist(), strict=True) if g != person]
        assert rows_within_limit(others, len(others), 2).tolist() == kept


@pytest.mark.parametrize(
    "groups",
    [
        [1.0, np.nan, 1.0],
        np.array([1.0, np.nan, 1.0], dtype=object),
        np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"),
        # One array would make one person of the two.
        [1, "1", 2],
    ],
)
def test_people_without_a_clear_name_are_refused(groups):
    with pytest.raises(DataError, match="name every person"):
        rows_within_limit(groups, 3, 1)


@pytest.mark.parametrize("groups", [[1, 2], [[1], [2], [3]], 7])
def test_one_name_for_each_row_is_needed(groups):
    with pytest.raises(DataError, match="one entry for each of 3 rows is needed"):
        rows_within_limit(groups, 3, 1)
