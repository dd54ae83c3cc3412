"""Which rows belong to one person is exact; which enter depends on that person alone."""

from datetime import date
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import DataError, DPLogisticRegression
from dplasso.cluster import InProcessEngine
from small_fits import short_runs


def entering(groups, limit=1, parts=None, n_rows=None):
    """Return which rows enter a fit: without noise, those whose own column gets a weight."""
    n = len(groups) if n_rows is None else n_rows
    X, y = np.eye(n), np.arange(n) % 2
    model = DPLogisticRegression(np.inf, classes=(0, 1), fit_intercept=False, rows_per_person=limit)
    with short_runs():
        if parts is None:
            fitted = model.fit(X, y, groups=groups)
        else:
            cuts = np.cumsum([len(part) for part in parts])[:-1]
            rows, labels = np.split(X, cuts), np.split(y, cuts)
            fitted = model.fit(rows, labels, groups=parts, engine=InProcessEngine())
    return (fitted.coef_[0] != 0.0).tolist()


def slow(groups, limit=1):
    seen, within = {}, []
    for person in groups:
        seen[person] = seen.get(person, 0) + 1
        within.append(seen[person] <= limit)
    return within


@settings(max_examples=50)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(1, 4))
def test_the_first_rows_of_each_person(groups, limit):
    for given_as in (np.array(groups), [f"n{g}" for g in groups]):
        assert entering(given_as, limit) == slow(list(given_as), limit)


NEAR = [0, 1, 2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 2**63, 2**64 - 1, 2**64, 10**40]
NAMES = st.one_of(
    st.lists(st.sampled_from([*NEAR, *(-one for one in NEAR)]) | st.integers(), min_size=2),
    st.lists(st.sampled_from(["a", "a\0", "A", "a ", "á", "á", "\ud800", "1", "01"]), min_size=2),
)


@settings(max_examples=50)
@given(NAMES, st.data())
def test_rows_are_one_person_s_iff_their_names_are_equal(names, data):
    for order in (names, names[::-1]):
        given_as = data.draw(st.sampled_from([list, tuple, boxed, as_objects]))
        assert entering(given_as(order)) == slow(order)
    # Cut in parts, of which numpy makes what it likes.
    cut, form = data.draw(st.integers(1, len(names) - 1)), data.draw(st.sampled_from([list, boxed]))
    assert entering(names, parts=[form(names[:cut]), form(names[cut:])]) == slow(names)
    parts = [np.array(names[:cut]), np.array(names[cut:])]
    try:
        found = entering(names, parts=parts)
    except DataError:
        return
    assert found == slow([one for part in parts for one in part])


def as_objects(names):
    return pandas.Series(names, dtype=object)


def boxed(names):
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


MERGED = {
    "int64 and uint64": (np.array([2**60, 2**60 + 1]), np.array([2**63], dtype=np.uint64)),
    "texts": (["a", "b"], ["a\0"]),
    "texts in arrays": (np.array(["a", "b"], dtype=object), np.array(["a\0"], dtype=object)),
    "beyond 64 bits": ([10**40, 10**40 + 1], [10**40 + 2]),
    "numpy's own": ([np.int64(2**60), np.int64(2**60 + 1)], [np.uint64(2**63)]),
    "numpy's own texts": ([np.str_("a"), np.str_("b")], [np.str_("a\0")]),
}


@pytest.mark.parametrize("case", MERGED)
def test_three_people_stay_three_in_two_parts_and_in_one(case):
    """Names that became one person left the second out, until the first was not there."""
    one, other = MERGED[case]
    assert entering([*one, *other]) == entering([*one, *other], parts=[one, other]) == [True] * 3


NAN = [float("nan"), np.float32("nan")]


@pytest.mark.parametrize("nobody", [None, pandas.NA, pandas.NaT, "", "  ", *NAN], ids=repr)
def test_whoever_has_no_name_is_refused(nobody):
    for alike in ({"": "x"}.get(str(nobody).strip(), 7), "x"):
        with pytest.raises(DataError, match=r"groups, row 2: a missing entry does not identify"):
            entering([alike, nobody, alike])


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        # In one array these three were one person and a half.
        ([2**60, 2**60 + 1, 2.0**63], "row 3: a floating-point number"),
        (np.array([2**60, 2**60 + 1, 2.0**63]), "row 1: a floating-point number"),
        (np.array([1, 2, 2.0**24], dtype=np.float32), "row 3: a floating-point number"),
        ([1, 2, np.float32(2.0**24)], "row 3: a floating-point number"),
        (np.array([1, 2, 2048], dtype=np.float16), "row 3: a floating-point number"),
        (polars.Series([1, 2, 2**24], dtype=polars.Float32), "row 3: a floating-point number"),
        (pyarrow.array([1.0, 2.0, 2.0**24], pyarrow.float32()), "row 3: a floating-point number"),
        ([1, 2.5, 3], "row 2: a floating-point number"),
        ([1, float("inf"), 3], "row 2: a floating-point number"),
        ([1, "1", 2], "row 2: the id has another type .texts. than ids before it .whole numbers."),
        ([1, True, 2], "row 2: a value of type bool does not identify"),
        (np.array([True, False, True]), "row 1: a value of type bool does not identify"),
        (["a", b"a", "b"], "row 2: a value of type bytes does not identify"),
        ([date(2020, 1, 1)] * 3, "row 1: a value of type date does not identify"),
        ([1, Decimal(1), 2], "row 2: a value of type Decimal does not identify"),
        ([UUID(int=2)] * 3, "row 1: a value of type UUID does not identify"),
        ([("a", 1), ("a", 1), ("b", 2)], "row 1: a value of type tuple does not identify"),
        ([1j, 2j, 3j], "row 1: a value of type complex does not identify"),
        (np.array([1.0, np.nan, 1.0]), "row 2: a missing entry"),
        (np.ma.masked_array([1, 2, 1], [False, True, False]), "row 2: a missing entry"),
        (np.array(["2020-01-01"] * 3, "datetime64[D]"), "row 1: a value of type datetime64.D."),
        (pandas.Series([2**60, None, 2**60 + 1], dtype="Int64"), "row 2: a missing entry"),
        (pandas.Categorical([2**60, None, 2**60 + 1]), "row 2: a missing entry"),
        (polars.Series([2**60, None, 2**60 + 1]), "row 2: a missing entry"),
        (pyarrow.array([2**60, None, 2**60 + 1]), "row 2: a missing entry"),
        ([1, 2], "has the shape"),
        (np.array([[1], [2], [3]]), "has the shape"),
        (7, "has the shape"),
        ("abc", "has the shape"),
    ],
)
def test_what_a_conversion_would_merge_or_cut_in_two_is_refused(groups, words):
    with pytest.raises(DataError, match=f"^groups,? {words}"):
        entering(groups, n_rows=3)


FORMS = {
    "categorical texts": lambda: pandas.Categorical(["b", "a", "b"]),
    "categorical numbers": lambda: pandas.Series([2**60 + 1, 2**60, 2**60 + 1]).astype("category"),
    "index": lambda: pandas.Index([2**60 + 1, 2**60, 2**60 + 1]),
    "nullable": lambda: pandas.Series([2**60 + 1, 2**60, 2**60 + 1], dtype="Int64"),
    "nullable texts": lambda: pandas.Series(["a\0", "a", "a\0"], dtype="string"),
    "arrow in pandas": lambda: pandas.Series(["a\0", "a", "a\0"], dtype="string[pyarrow]"),
    "polars numbers": lambda: polars.Series([2**60 + 1, 2**60, 2**60 + 1]),
    "polars texts": lambda: polars.Series(["a\0", "a", "a\0"]),
    "polars categorical": lambda: polars.Series(["b", "a", "b"], dtype=polars.Categorical),
    "pyarrow texts": lambda: pyarrow.array(["a\0", "a", "a\0"]),
    "pyarrow dictionary": lambda: pyarrow.array(["b", "a", "b"]).dictionary_encode(),
    "pyarrow chunks": lambda: pyarrow.chunked_array([[2**60 + 1], [2**60, 2**60 + 1]]),
    "floats that are whole": lambda: pandas.Series([2.0, 1.0, 2.0]),
    "unsigned": lambda: np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=np.uint64),
    "another byte order": lambda: np.array([2, 1, 2], dtype=">i8"),
    "range": lambda: np.array([1, 0, 1]).astype(object),
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_every_library(form):
    assert entering(FORMS[form]()) == [True, True, False]


def test_whole_floats_are_the_integers_they_equal():
    assert entering([1, 1.0, np.float32(1), 2]) == [True, False, False, True]
    parts = [np.array([1.0, 2.0]), [2, 3]]
    assert entering([1, 2, 2, 3], parts=parts) == [True, True, False, True]
