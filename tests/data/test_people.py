"""Names of people as hashes: who is the same person, and who is nobody."""

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.data.people import hash_people, number_people
from dplasso.errors import DataError


def place(row):
    return f"row {row + 1}"


TEXTS = st.sampled_from(["ann", "bob", "Ann", "\ud800", "7", "07", "ann ", "ann\0"])
NUMBERS = st.sampled_from([7, 7.0, 8, 2**60, 2**60 + 1, 2**63, 10**40, -7])


@given(st.lists(TEXTS, min_size=1, max_size=30) | st.lists(NUMBERS, min_size=1, max_size=30))
def test_rows_are_one_person_s_iff_their_names_are_equal(names):
    hashes, kind = hash_people(names, place)
    assert kind == ("texts" if isinstance(names[0], str) else "whole numbers")
    numbers = number_people(hashes)
    same = [[one == other for other in names] for one in names]
    assert (numbers[:, None] == numbers[None, :]).tolist() == same
    # In chunks, as files are read.
    chunks = [hash_people(names[k : k + 3], place, kind)[0] for k in range(0, len(names), 3)]
    np.testing.assert_array_equal(np.concatenate(chunks), hashes)


def test_both_halves_of_a_hash_count():
    hashes = np.array([1, 5, 1, 6, 2, 5, 1, 5])
    first, second, third, again = number_people(hashes).tolist()
    assert len({first, second, third}) == 3
    assert again == first


@pytest.mark.parametrize(
    "name", [None, "", "  ", np.nan, np.inf, 1.5, 2.0**53, True, b"ann", [1], 7, 7.0]
)
def test_whoever_is_nobody_is_refused_and_not_quoted(name):
    with pytest.raises(DataError, match=r"^row 2: .*; use ") as refusal:
        hash_people(["ann", name], place)
    assert "ann" not in str(refusal.value)


@pytest.mark.parametrize("before", ["texts", "whole numbers"])
def test_a_kind_holds_for_all_chunks(before):
    other = ["7"] if before == "whole numbers" else [7]
    with pytest.raises(DataError, match=f"row 1: .* than ids before it \\({before}\\)"):
        hash_people(other, place, before)


def test_a_column_of_narrow_floats_is_not_trusted_beyond_what_they_hold():
    with pytest.raises(DataError, match="row 2: a floating-point number"):
        hash_people(pyarrow.array([1, 2.0**24], pyarrow.float32()), place)
    with pytest.raises(DataError, match=r"row 1: a value of type bool"):
        hash_people(pyarrow.array([True, False]), place)
