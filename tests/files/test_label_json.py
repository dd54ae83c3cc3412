"""Labels survive JSON with value and type."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.files.label_json import labels_from_json, labels_to_json


@given(
    labels=st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda v: np.array(v, dtype=np.int64)),
        st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(np.array),
        st.lists(st.booleans()).map(lambda v: np.array(v, dtype=bool)),
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))).map(
            lambda v: np.array(v, dtype=object)
        ),
    )
)
def test_any_labels_survive_json(labels):
    found = labels_from_json(json.loads(json.dumps(labels_to_json(labels))))
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {"dtype": "<i8"},
        {"dtype": "<i8", "values": [1], "more": 1},
        {"dtype": 8, "values": [1]},
        {"dtype": "<i8", "values": "ab"},
        {"dtype": "<i8", "values": [[1]]},
        {"dtype": "<i8", "values": [None]},
        {"dtype": "|u1", "values": [0.5]},
        {"dtype": "<U1", "values": ["long"]},
        {"dtype": "<M8[D]", "values": [1]},
    ],
)
def test_json_that_is_no_labels_is_refused(entry):
    with pytest.raises(ValueError):
        labels_from_json(entry)
