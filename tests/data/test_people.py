"""Names of people as hashes: who is the same person, and who is nobody."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.data.people import hash_people, number_people
from dplasso.errors import DataError


def place(row):
    return f"row {row + 1}"


@given(
    st.lists(st.sampled_from(["ann", "bob", "Ann", "\ud800", "7", 7, 7.0, 8, "ann "]), max_size=30)
)
def test_equal_names_have_equal_numbers(names):
    numbers = number_people(hash_people(names, place))
    told = [str(int(n)) if isinstance(n, float) else str(n).strip() for n in names]
    same = np.array(told)[:, None] == np.array(told)[None, :] if told else np.zeros((0, 0))
    np.testing.assert_array_equal(numbers[:, None] == numbers[None, :], same)


def test_both_halves_of_a_hash_count():
    hashes = np.array([1, 5, 1, 6, 2, 5, 1, 5])
    first, second, third, again = number_people(hashes).tolist()
    assert len({first, second, third}) == 3
    assert again == first


@pytest.mark.parametrize("name", [None, "", "  ", np.nan, np.inf, 1.5, True, b"ann", [1]])
def test_whoever_is_nobody_is_refused(name):
    with pytest.raises(
        DataError, match=r"row 2: this names nobody; every row needs a person's name"
    ):
        hash_people(["ann", name], place)
