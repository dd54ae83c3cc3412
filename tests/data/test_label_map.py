import numpy as np
import pytest
from scipy.sparse import csr_array

from data.row_blocks import write_npz
from dplasso.data.formats import read_data
from dplasso.data.labels import check_label_map, map_labels, parse_label_map
from dplasso.errors import DataError

SPAM = {"ham": 0, "spam": 1}


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
    with pytest.raises(DataError, match="line 2: the label is not a number; say what text lab"):
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
