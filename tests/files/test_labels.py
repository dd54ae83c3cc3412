"""Labels survive as arrays without pickle, or are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.files.archive import labels_from_array, labels_to_array

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(
    labels=st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda v: np.array(v, dtype=np.int64)),
        st.lists(st.integers(0, 255)).map(lambda v: np.array(v, dtype=">u2")),
        st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(np.array),
        st.lists(st.booleans()).map(lambda v: np.array(v, dtype=bool)),
        st.lists(st.booleans()).map(lambda v: np.array(v, dtype=object)),
        st.lists(TEXT, min_size=1).map(np.array),
        st.lists(TEXT).map(lambda v: np.array(v, dtype=object)),
        st.lists(TEXT).map(lambda v: np.array(v, dtype=np.dtypes.StringDType())),
    )
)
def test_any_labels_survive(labels):
    array, kind = labels_to_array(labels)
    assert array.dtype.kind in "biufU"
    found = labels_from_array(array, kind)
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()
    assert [type(label) for label in found] == [type(label) for label in labels]


def test_a_longer_label_elsewhere_leaves_no_trace():
    labels = np.array(["no", "yes", "a label of somebody else"])[:2]
    assert labels_to_array(labels)[0].dtype == np.dtype("<U3")


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        *((one, "plain") for one in (np.zeros((2, 1)), np.array([b"a"]), np.array([1j]))),
        *((one, "plain") for one in (np.array([np.nan]), np.array([1], "M8[D]"))),
        *((np.array([0, 1]), kind) for kind in ("string", None, ["plain"])),
    ],
)
def test_arrays_that_are_no_labels_are_refused(array, kind):
    with pytest.raises(ValueError):
        labels_from_array(array, kind)


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array(some, dtype=object) for some in ([0, "a"], [True, "a"], ["a", 1], [None, 1])),
        *(np.array([b"a", b"b"]), np.array([1j, 2j]), np.array(["2020-01-01"], dtype="M8[D]")),
        *(np.array([0.0, np.nan]), np.array([0.0, np.inf])),
    ],
)
def test_labels_of_other_kinds_are_refused(labels):
    with pytest.raises(ValueError, match="cannot be written to a model file"):
        labels_to_array(labels)
