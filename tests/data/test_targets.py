"""Labels and numbers to predict, and names of people as hashes: who is who, and who is nobody."""

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso import DataError
from dplasso.data.labels import classes_of, encode_targets, numbers_of
from dplasso.data.people import hash_people, number_people


def encode_labels(y, declared):
    """The classes and the number of each label's class, as a fit asks for them."""
    classes = classes_of(y, declared)
    return classes, numbers_of(y, classes)


@pytest.mark.parametrize(
    ("y", "declared", "classes", "expected"),
    [
        # From the data they are sorted.
        ([1, 0, 1, 0], None, [0, 1], [1, 0, 1, 0]),
        ([5, -3, 5, -3], None, [-3, 5], [1, 0, 1, 0]),
        ([1.0, -1.0], None, [-1.0, 1.0], [1, 0]),
        ([True, False], None, [False, True], [1, 0]),
        (["spam", "ham"], None, ["ham", "spam"], [1, 0]),
        (np.array(["b", "a", "b"], object), None, ["a", "b"], [1, 0, 1]),
        (["b", "c", "a", "b"], None, ["a", "b", "c"], [1, 2, 0, 1]),
        # The declared order is kept; labels match across number types, and one may be absent.
        (["no", "yes", "no"], ("yes", "no"), ["yes", "no"], [1, 0, 1]),
        (["no", "yes", "no"], np.array(["yes", "no"]), ["yes", "no"], [1, 0, 1]),
        ([1.0, 0.0], (0, 1), [0, 1], [1, 0]),
        ([3.0, 1.0], (3, 2, 1), [3, 2, 1], [0, 2]),
        ([0, 0, 0], [0, 1], [0, 1], [0, 0, 0]),
    ],
)
def test_classes_and_their_numbers(y, declared, classes, expected):
    y = np.asarray(y)
    found, numbers = encode_labels(y, declared)
    assert found.tolist() == classes
    assert found.dtype == (y if declared is None else np.asarray(declared)).dtype
    assert numbers.dtype == np.float64
    assert numbers.tolist() == expected


@pytest.mark.parametrize("declared", [None, np.array(["ham", "spam"], dtype="<U40")])
def test_a_longer_label_elsewhere_leaves_no_trace(declared):
    y = np.array(["spam", "ham", "a label of somebody else"])[:2]
    assert encode_labels(y, declared)[0].dtype == np.dtype("<U4")


@pytest.mark.parametrize(
    ("y", "declared", "row"),
    [
        ([0, 1, 2], (0, 1), 3),
        (["a", "b", "c"], ("a", "b"), 3),
        ([0.0, 1.0, -1.0], (0, 1), 3),
        ([0, 1], ("a", "b"), 1),
        (["a", "b"], (0, 1), 1),
    ],
)
def test_the_row_of_an_undeclared_label_is_named(y, declared, row):
    with pytest.raises(DataError, match="a label that is not one of the declared classes") as error:
        encode_labels(np.array(y), declared)
    assert str(error.value).endswith(f"row {row} of those that enter")
    assert f"{declared[0]!r} and {declared[1]!r}" in str(error.value)


def test_one_label_among_the_floats_makes_no_others_of_the_rest():
    """Of a list, numpy makes floats as soon as one label is one."""
    declared = [1, 2**53, 2**53 + 1]
    labels = [2**53 + 1, 2**53, 1]
    assert encode_labels(np.array(labels), declared)[1].tolist() == [2, 1, 0]
    with pytest.raises(
        DataError, match="cannot represent the large whole numbers in classes exactly"
    ):
        encode_labels(np.array([*labels, 1.0]), declared)
    assert encode_labels(np.array([1.0, 2.0**53]), [1, 2**53])[1].tolist() == [0, 1]


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (-1e308, 1e308)])
def test_numbers_are_clipped_and_scaled(bounds):
    low, high = bounds
    found = encode_targets(np.array([low, high, 0.5 * low + 0.5 * high, -1.7e308, 1.7e308]), bounds)
    assert found.tolist() == [-1.0, 1.0, 0.0, -1.0, 1.0]


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
