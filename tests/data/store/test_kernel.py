"""The store's kernels against slow, obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.data.store import kernel
from dplasso.data.store.transpose import cut_columns

counts_lists = st.lists(st.integers(0, 9), min_size=1, max_size=40)


@given(counts_lists, st.integers(1, 12), st.integers(1, 12))
def test_parts_are_bounded_and_whole(counts, most_entries, most_columns):
    indptr = np.cumsum([0, *counts])
    first = cut_columns(indptr, most_entries, most_columns)
    assert first[0] == 0
    assert first[-1] == len(counts)
    widths, sizes = np.diff(first), np.diff(indptr[first])
    assert ((widths == 1) | ((sizes <= most_entries) & (widths <= most_columns))).all()
    assert (widths > 0).all()
    # No part could take one column more.
    for part in range(widths.size - 1):
        more = sizes[part] + counts[first[part + 1]]
        assert more > most_entries or widths[part] == most_columns


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 20_000])
def test_the_first_index_outside_is_found_anywhere(kind, size):
    rng = np.random.default_rng(size)
    indices = rng.integers(0, 50, size).astype(kind)
    assert kernel.first_outside(indices, 50) == -1
    for wrong in (-1, 50, np.iinfo(kind).max, np.iinfo(kind).min):
        for at in {0, size // 2, size - 1} if size else ():
            corrupted = indices.copy()
            corrupted[[at, size - 1]] = wrong
            assert kernel.first_outside(corrupted, 50) == at
