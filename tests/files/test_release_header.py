"""The header that model files and checkpoints share: labels survive as arrays."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.files.archive import npy
from dplasso.files.labels import labels_from_array, labels_to_array
from dplasso.files.release_header import ReleaseHeader, read_release, write_release

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
RELEASE = ReleaseHeader(
    "vertices",
    {"epsilon": math.inf, "n_iter": np.int64(3), "classes": [0, 1], "ledger": None},
    {"steps": 3},
    4,
    np.array([0, 1]),
    np.array(["a", "größe", "", "d"], dtype=object),
)
ARRAYS = {"vertices": ("vertex", "sign")}
MEMBERS = {"header": b"", "vertex": b"", "sign": b""}
ENVELOPE = {"magic": "m", "version": 2, "written_by": "w"}


def read(header, arrays, **options):
    members = MEMBERS | {name: npy(array) for name, array in arrays.items()}
    return read_release(ENVELOPE | header, members, arrays=ARRAYS, **options)


@given(
    labels=st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda v: np.array(v, dtype=np.int64)),
        st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(np.array),
        st.lists(st.booleans()).map(lambda v: np.array(v, dtype=bool)),
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


def test_a_longer_label_elsewhere_leaves_no_trace():
    labels = np.array(["no", "yes", "a label of somebody else"])[:2]
    assert labels_to_array(labels)[0].dtype == np.dtype("<U3")


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.zeros((2, 1)), "plain"),
        (np.array([b"a"]), "plain"),
        (np.array([1j]), "plain"),
        (np.array([np.nan]), "plain"),
        (np.array([1], "M8[D]"), "plain"),
        (np.array([0, 1]), "string"),
        (np.array([0, 1]), None),
        (np.array([0, 1]), ["plain"]),
    ],
)
def test_arrays_that_are_no_labels_are_refused(array, kind):
    with pytest.raises(ValueError):
        labels_from_array(array, kind)


@pytest.mark.parametrize(
    "labels", [[0, "a"], [True, "a"], np.array(["a", 1], dtype=object), [b"a", b"b"], [None, 1]]
)
def test_labels_of_other_kinds_are_refused(labels):
    with pytest.raises(ValueError, match="cannot be written to a model file"):
        labels_to_array(np.array(labels, dtype=object))


@pytest.mark.parametrize("labels", [pd.Index([0, 1]), pd.Series([0, 1]), range(2), (0, 1), [0, 1]])
def test_labels_come_in_any_sequence(labels):
    header, arrays = write_release(RELEASE._replace(params={"classes": labels}), "model")
    assert header["params"] == {"classes": {"labels": "classes"}}
    assert read(header, arrays).params["classes"].tolist() == [0, 1]


def test_round_trip():
    found = read(*write_release(RELEASE, "model"))
    assert found.params.pop("classes").tolist() == [0, 1]
    assert found.params == {"epsilon": math.inf, "n_iter": 3, "ledger": None}
    assert found[2:4] == RELEASE[2:4]
    assert found.classes.tolist() == [0, 1]
    assert found.feature_names.tolist() == RELEASE.feature_names.tolist()
    nameless = RELEASE._replace(feature_names=None)
    assert read(*write_release(nameless, "model")).feature_names is None


def test_other_labels_than_those_of_the_release_are_refused():
    with pytest.raises(ValueError, match=r"classes=.* was changed after fitting"):
        write_release(RELEASE._replace(params={"classes": [1, 2]}), "model")


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"release": "gradients"},
        {"release": None},
        {"classes": "other"},
        {"classes": {"dtype": "<i8", "values": [0, 1]}},
        {"feature_names": "abcd"},
        {"feature_names": [1, 2, 3, 4]},
        {"params": {"classes": {"labels": "vertex"}}},
        {"params": {"classes": {"labels": {"dtype": "<i8", "values": [0, 1]}}}},
        {"params": {"classes": [0, 1]}},
        {"params": {"classes": {"float": "1", "more": 1}}},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(change):
    header, arrays = write_release(RELEASE, "model")
    with pytest.raises(ValueError):
        read(header | change, arrays)


@pytest.mark.parametrize("members", [{"more": np.zeros(1)}, {"classes": np.zeros((1, 2))}])
def test_members_that_make_no_sense_are_refused(members):
    header, arrays = write_release(RELEASE, "model")
    with pytest.raises(ValueError):
        read(header, arrays | members)
    with pytest.raises(ValueError, match="it holds header, sign, vertex"):
        read(header, {})


def test_members_that_go_together():
    header, arrays = write_release(RELEASE, "model")
    both = {"objective": np.zeros(3), "gap": np.zeros(3)}
    read(header, arrays | both, besides=both)
    with pytest.raises(ValueError, match="it holds"):
        read(header, arrays | {"gap": np.zeros(3)}, besides=both)
