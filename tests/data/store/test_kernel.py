"""The store's kernels against slow, obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.data.store import kernel
from dplasso.matrix import numbering

counts_lists = st.lists(st.integers(0, 9), min_size=1, max_size=40)


@given(counts_lists)
def test_numbering_is_a_stable_sort_by_falling_count(counts):
    internal, original = np.empty((2, len(counts)), np.int32)
    starts = np.empty(len(counts) + 1, np.int64)
    array = np.array(counts)
    numbering.number_by_count(array, np.zeros(array.max() + 1, np.int64), internal)
    numbering.invert(internal, original)
    kernel.column_starts(array, original, starts)
    expected = sorted(range(len(counts)), key=lambda j: (-counts[j], j))
    assert original.tolist() == expected
    assert [expected.index(j) for j in range(len(counts))] == internal.tolist()
    assert starts.tolist() == np.cumsum([0] + [counts[j] for j in expected]).tolist()
    assert kernel.maps_agree(internal, original)
    assert kernel.pointers_rise(starts, sum(counts))


@given(counts_lists, st.integers(1, 12), st.integers(1, 12))
def test_parts_are_bounded_and_whole(counts, most_entries, most_columns):
    indptr = np.cumsum([0, *counts])
    nothing = np.empty(0, np.int64), np.empty(0, np.uint16)
    n_parts = kernel.cut_columns(indptr, most_entries, most_columns, *nothing)
    first, part_of = np.empty(n_parts + 1, np.int64), np.empty(len(counts), np.uint16)
    assert kernel.cut_columns(indptr, most_entries, most_columns, first, part_of) == n_parts
    assert first[0] == 0
    assert first[-1] == len(counts)
    widths, sizes = np.diff(first), np.diff(indptr[first])
    assert ((widths == 1) | ((sizes <= most_entries) & (widths <= most_columns))).all()
    assert (widths > 0).all()
    assert part_of.tolist() == np.repeat(np.arange(n_parts), widths).tolist()
    # No part could take one column more.
    for part in range(n_parts - 1):
        more = sizes[part] + counts[first[part + 1]]
        assert more > most_entries or widths[part] == most_columns


@given(
    st.lists(st.sampled_from([1.0, 1.0, -2.0, 0.0, 0.1, np.nan, np.inf, -np.inf]), max_size=8),
    st.sampled_from([np.float32, np.float64]),
)
def test_values_are_scanned(values, kind):
    array = np.array(values, kind)
    bad, equal, largest = kernel.scan_values(array, 1.0)
    finite = np.isfinite(array)
    if not finite.all():
        assert bad == np.argmin(finite)
        return
    assert bad == -1
    assert equal == (array == 1).all()
    assert largest == np.abs(array).max(initial=0)


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


@given(st.permutations(range(6)), st.integers(0, 5), st.integers(-7, 12))
def test_maps_that_are_not_inverse_are_told(original, at, wrong):
    internal = np.argsort(original).astype(np.int32)
    corrupted = np.array(original, np.int32)
    corrupted[at] = wrong
    assert kernel.maps_agree(internal, corrupted) == (wrong == original[at])


@pytest.mark.parametrize("pointers", [[1, 3], [0, 2], [0, 4, 3], [0, -1, 3], [0, 3, 2, 3]])
def test_pointers_that_do_not_rise_are_told(pointers):
    assert not kernel.pointers_rise(np.array(pointers), 3)
