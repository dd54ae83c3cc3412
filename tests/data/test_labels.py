"""Labels: two or more classes, declared or taken from the data, and what a map makes of them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from data.row_blocks import write_npz
from dplasso.data.formats import read_data
from dplasso.data.labels import (
    check_label_map,
    classes_of,
    encode_targets,
    map_labels,
    numbers_of,
    parse_label_map,
)
from dplasso.errors import DataError

SPAM = {"ham": 0, "spam": 1}


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


@pytest.mark.parametrize("label", [1, 2.0, "spam"])
def test_a_single_label_asks_for_classes(label):
    with pytest.raises(DataError, match="y holds only one class; declare all classes with classes"):
        encode_labels(np.array([label, label]), None)


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (-1e308, 1e308)])
def test_numbers_are_clipped_and_scaled(bounds):
    low, high = bounds
    found = encode_targets(np.array([low, high, 0.5 * low + 0.5 * high, -1.7e308, 1.7e308]), bounds)
    assert found.tolist() == [-1.0, 1.0, 0.0, -1.0, 1.0]


@pytest.mark.parametrize("bad", ["many", np.nan, -np.inf])
def test_targets_that_are_no_numbers_are_refused(bad):
    with pytest.raises(DataError, match="a regression needs"):
        encode_targets(np.array([1.0, bad], dtype=object), (0.0, 1.0))


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="continuous"):
        encode_labels(np.array([0.25, 1.75, 2.5]), None)


@pytest.mark.parametrize("declared", [(0,), (0, 1, 0), (1, 1), "ab", 3, [[0, 1]], []])
def test_declared_classes_must_differ(declared):
    with pytest.raises(ValueError, match="classes must be two or more different labels"):
        encode_labels(np.array([0, 1]), declared)


# --- maps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("neg=0,pos=1", {"neg": 0, "pos": 1}),
        (" neg = -1 , pos = +1 ", {"neg": -1, "pos": 1}),
        ("1=0,2=1", {"1": 0, "2": 1}),
        ("a=b=0,c=1e0", {"a=b": 0, "c": 1}),
        ("never=0,rarely=0,often=1", {"never": 0, "rarely": 0, "often": 1}),
    ],
)
def test_parsing(text, expected):
    assert parse_label_map(text) == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("", "'' is not LABEL=NUMBER; write for example neg=0,pos=1"),
        ("neg", "'neg' is not LABEL=NUMBER"),
        ("neg=0,", "'' is not LABEL=NUMBER"),
        ("=0", "'=0' is not LABEL=NUMBER"),
        ("neg=no", "'neg=no' is not LABEL=NUMBER"),
        ("neg=nan", "'neg=nan' is not LABEL=NUMBER"),
        ("neg=1e999", "'neg' is mapped to '1e999'; map it to a finite"),
        ("neg=0,neg=0", "label 'neg' appears twice"),
        ("1=0,+1.0=1", "mapped to two different numbers"),
        ({}, "label_map is empty"),
        ({" ": 1}, "a label is empty"),
        ({"a": "one"}, "'a' is mapped to 'one'; map it to a finite number"),
        ({"a": float("inf")}, "'a' is mapped to inf"),
        ({"a": None}, "'a' is mapped to None"),
        ({1: 0, "1": 1}, "two different numbers"),
    ],
)
def test_malformed_maps(given, problem):
    with pytest.raises(DataError, match=problem):
        parse_label_map(given) if isinstance(given, str) else check_label_map(given)


@pytest.mark.parametrize(
    ("labels", "label_map", "expected"),
    [
        (["spam", "ham", "spam"], SPAM, [1, 0, 1]),
        ([1, 2, 2], {"1": 0, "2": 1}, [0, 1, 1]),
        ([1.0, -1.0], {"+1": 1, "-1.0": 0}, [1, 0]),
        (["1", "+1", "x"], {"1": 5, "x": 6}, [5, 5, 6]),
        ([True, False], {"false": 0, "True": 1}, [1, 0]),
        ([True, False], {"0": 7, "1": 8}, [8, 7]),
    ],
)
def test_arrays_of_labels(labels, label_map, expected):
    mapped = map_labels(np.array(labels), check_label_map(label_map), "data")
    assert mapped.dtype == np.float64
    assert mapped.tolist() == expected


@pytest.mark.parametrize("labels", [["spam", "Spam"], [2.5, 2.0], [False, True]])
def test_labels_that_are_not_in_the_map(labels):
    label_map = check_label_map({"spam": 1, "2.5": 1, "false": 0})
    with pytest.raises(DataError, match=r"data: the label of row 2 is not in the label map \('sp"):
        map_labels(np.array(labels), label_map, "data")


def test_svmlight_text(tmp_path):
    path = tmp_path / "mail.svm"
    path.write_text("# mail\nspam 1:1\nham qid:3 2:1 # x\n\nspam\n+1 3:1\n1.0 3:2\n")
    data = read_data(path, label_map={**SPAM, "1": 9})
    assert data.y.tolist() == [1, 0, 1, 9, 9]
    with pytest.raises(DataError) as caught:
        read_data(path, label_map=SPAM)
    assert str(caught.value) == (
        f"{path}, line 6: the label is not in the label map ('ham', 'spam')"
    )
    with pytest.raises(DataError, match="line 2: the label is not a number; map text lab"):
        read_data(path)


def test_the_first_wrong_line_is_named_whatever_is_wrong_with_it(tmp_path):
    path = tmp_path / "mail.svm"
    wrong = ["eggs 1:1", "ham 1:x", "ham 1:1e39"]
    for first in wrong:
        for second in wrong:
            path.write_text(f"\nspam 1:1\n{first}\nham 1:1\n{second}\n")
            with pytest.raises(DataError, match="line 3: "):
                read_data(path, label_map=SPAM)


def test_npz(tmp_path):
    path = tmp_path / "mail.npz"
    write_npz(path, csr_array(np.eye(3)), np.array(["spam", "ham", "spam"]))
    assert read_data(path, label_map=SPAM).y.tolist() == [1, 0, 1]
    with pytest.raises(DataError, match=r"mail\.npz: the label of row 2 is not in"):
        read_data(path, label_map={"spam": 1})
