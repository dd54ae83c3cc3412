"""Blocks with labels mapped and values made binary."""

import numpy as np
import pytest
from dplasso.data.block_changes import binarized, with_mapped_labels

from data.row_blocks import gather
from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.errors import DataError


def source(values=(2.0, 0.0, -3.0, 0.5), labels=("a", "b", "a")):
    """Return three records in blocks of two and one."""
    values, labels = np.array(values, np.float32), np.array(labels)
    given = [
        RowBlock(np.array([0, 2, 3]), np.array([0, 3, 2], np.int32), values[:3], labels[:2]),
        RowBlock(np.array([0, 1]), np.array([1], np.int32), values[3:], labels[2:]),
    ]
    return BlockSource("given", 4, lambda _memory, _progress=None: iter(given), None), given


def test_non_zeros_become_ones_and_nothing_given_changes():
    records, given = source()
    X, y, n_blocks = gather(binarized(records).blocks(1 << 20))
    assert X.data.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert X.dtype == np.float32
    assert (y.tolist(), n_blocks) == (["a", "b", "a"], 2)
    assert given[0].values.tolist() == [2.0, 0.0, -3.0]


@pytest.mark.parametrize(("at", "row"), [(0, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_number_is_not_a_one(at, row, value):
    values = [1.0, 1.0, 1.0, 1.0]
    values[at] = value
    with pytest.raises(DataError, match=f"^given: row {row} holds NaN or infinity"):
        list(binarized(source(values)[0]).blocks(1 << 20))


def test_labels_are_mapped():
    mapped = with_mapped_labels(source()[0], {"a": 1, "b": 0})
    assert gather(mapped.blocks(1 << 20))[1].tolist() == [1.0, 0.0, 1.0]
    # Another pass starts again.
    assert gather(mapped.blocks(1 << 20))[1].tolist() == [1.0, 0.0, 1.0]


def test_another_label_is_named_with_its_row():
    records = with_mapped_labels(source(labels=("a", "a", "c"))[0], {"a": 1, "b": 0})
    with pytest.raises(DataError, match=r"given: the label of row 3 is not in"):
        list(records.blocks(1 << 20))


def test_a_map_that_is_none():
    with pytest.raises(DataError, match="empty"):
        with_mapped_labels(source()[0], {})
