"""From the caller's matrix to the kernels' arrays: nothing lost, nothing written to."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso import DataError
from dplasso.matrix.compressed import (
    canonical,
    check_rows,
    clipped,
    compress,
    without_duplicates,
    working_dtype,
)


def entries(seed, shape=(7, 5), density=0.4):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < density, rng.normal(size=shape), 0.0).astype(np.float32)


def expand(matrix, n_minor):
    """Write a compressed matrix out, entry by entry; each entry at most once."""
    found = np.zeros((matrix.indptr.size - 1, n_minor))
    for i in range(found.shape[0]):
        for p in range(matrix.indptr[i], matrix.indptr[i + 1]):
            assert found[i, matrix.indices[p]] == 0
            value = matrix.values[p] if matrix.values.size else matrix.constant
            found[i, matrix.indices[p]] = value
    return found


def test_entries_are_kept_in_float32_only_where_it_is_exact():
    class Foreign:
        dtype = object()

    for dtype in (bool, np.int8, np.uint16, np.float16, np.float32):
        assert working_dtype(np.zeros((1, 1), dtype=dtype)) == np.float32, dtype
    for dtype in (np.int32, np.int64, np.float64, np.longdouble, object, complex):
        assert working_dtype(np.zeros((1, 1), dtype=dtype)) == np.float64, dtype
    assert working_dtype([[1.0]]) == working_dtype(Foreign()) == np.float64


class TestCompress:
    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("index", [np.int32, np.int64])
    def test_canonical_input_is_used_as_it_is(self, kind, dtype, index):
        X = kind(entries(0).astype(dtype))
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
        compressed, by_rows = compress(X)
        assert by_rows == (X.format == "csr")
        assert np.shares_memory(compressed.indices, X.indices) == (index == np.int32)
        assert np.shares_memory(compressed.values, X.data)
        assert compressed.values.dtype == dtype
        assert compressed.indices.dtype == np.int32
        dense = entries(0) if by_rows else entries(0).T
        np.testing.assert_array_equal(expand(compressed, dense.shape[1]), dense)

    def test_arrays_that_kernels_cannot_take_as_they_are_become_ones_that_they_can(self):
        X = sp.csr_array(entries(0))
        X.data = np.repeat(X.data, 2)[::2]
        X.indices.flags.writeable = False
        compressed, _ = compress(X)
        assert compressed.values.flags.c_contiguous
        # Kernels would be compiled again for arrays that cannot be written to.
        assert compressed.indices.flags.writeable
        assert np.shares_memory(compressed.indices, X.indices)

    def test_equal_values_are_not_stored(self):
        X = sp.csr_array((entries(2) != 0).astype(np.float32) * 0.5)
        compressed, _ = compress(X)
        assert compressed.values.size == 0
        assert compressed.constant == 0.5
        np.testing.assert_array_equal(expand(compressed, 5), X.toarray())
        # The type of the values does not say whether they are all equal.
        assert compressed.values.dtype == np.float32
        # Kernels are compiled once for such matrices, whatever they are numbered by.
        wide = X.copy()
        wide.indices = wide.indices.astype(np.int64)
        for mine, other in zip(compressed, compress(wide)[0], strict=True):
            np.testing.assert_array_equal(mine, other)
            assert np.asarray(mine).dtype == np.asarray(other).dtype
        X.data[-1] = 0.25
        compressed, _ = compress(X)
        assert compressed.values.size == X.nnz
        assert compressed.constant == 0.0

    def test_room_behind_the_last_entry_is_ignored(self):
        X = sp.csr_array(entries(3))
        X.data, X.indices = np.append(X.data, np.float32(9)), np.append(X.indices, 0)
        compressed, _ = compress(X)
        assert compressed.indices.size == X.indptr[-1]
        np.testing.assert_array_equal(expand(compressed, 5), entries(3))

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
    @pytest.mark.parametrize("index", [-1, 99, 2**32 + 1])
    def test_an_index_outside_the_matrix_is_refused(self, kind, index):
        X = kind(entries(4))
        # The last would be another column in 32 bits.
        X.indices = X.indices.astype(np.int64)
        X.indices[2] = index
        with pytest.raises(DataError, match="an index lies outside 0 to"):
            compress(X)


ROWS = st.lists(st.lists(st.integers(-2, 12), max_size=4), max_size=6)


def first(rows):
    return next((i for i, wrong in enumerate(rows) if wrong), -1)


@given(ROWS, st.integers(1, 12))
@example([[1, 1], [0, 99], [2, 1]], 12)
def test_the_first_row_that_does_not_fit_is_found(rows, n_columns):
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = np.array([j for row in rows for j in row], np.int32)
    outside, unordered, largest = check_rows(indptr, indices, n_columns)
    assert outside == first(not all(0 <= j < n_columns for j in row) for row in rows)
    if outside < 0:
        assert unordered == first(row != sorted(set(row)) for row in rows)
        assert largest == max((j for row in rows for j in row), default=-1)


def test_pointers_that_do_not_fit_are_a_row_outside():
    indices = np.zeros(3, np.int32)
    for pointers, row in (([0, 4], 0), ([0, 2, 1, 3], 1), ([-1, 3], 0), ([0, 1, 9], 1)):
        assert check_rows(np.array(pointers), indices, 5)[0] == row


def store_rows(rows, form, shape, dtype=np.float32):
    """Store rows, lists of columns and entries, in a format that keeps each row's own order."""
    numbers = np.repeat(np.arange(len(rows)), [len(columns) for columns, _ in rows])
    columns = np.concatenate([columns for columns, _ in rows]).astype(np.int32)
    entries = np.concatenate([entries for _, entries in rows]).astype(dtype)
    if form == "coo":
        # The entries of the rows lie among each other.
        ranks = np.concatenate([np.arange(len(columns)) for columns, _ in rows])
        order = np.argsort(ranks, kind="stable")
        return sp.coo_array((entries[order], (numbers[order], columns[order])), shape=shape)
    ends = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    X = sp.csr_array((entries, columns, ends), shape=shape)
    # scipy's conversion is a stable counting sort.
    return X if form == "csr" else X.tocsc()


def added_up(rows, dtype):
    """Add up every row entry by entry in double precision; return what each column comes to.

    `dtype`: of the entries as they are stored.
    """
    found = []
    for columns, entries in rows:
        sums = {}
        for j, x in zip(columns.tolist(), entries.astype(dtype).astype(float), strict=True):
            sums[j] = sums[j] + x if j in sums else x
        found.append(dict(sorted(sums.items())))
    return found


def by_row(X):
    """Return what the entries of each row of a canonical matrix are, by its columns."""
    coo = X.tocoo()
    found = [{} for _ in range(X.shape[0])]
    for i, j, x in sorted(zip(coo.row.tolist(), coo.col.tolist(), coo.data, strict=True)):
        assert j not in found[i]
        found[i][j] = x
    return found


def same_bits(one, other):
    assert [list(row) for row in one] == [list(row) for row in other]
    for left, right in zip(one, other, strict=True):
        assert [x.tobytes() for x in left.values()] == [x.tobytes() for x in right.values()]


def many_duplicates(rng, n_rows, n_columns, *, ascending=True):
    """Draw rows longer than what a sort does by insertion, whose sums depend on the order."""
    for _ in range(n_rows):
        columns = rng.integers(0, n_columns, rng.integers(0, 90))
        if ascending:
            columns.sort()
        yield columns, rng.normal(size=columns.size) * 10.0 ** rng.integers(-9, 9, columns.size)


FORMATS = pytest.mark.parametrize("form", ["csr", "csc", "coo"])


class TestDuplicates:
    @FORMATS
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("index", [np.int32, np.int64])
    def test_entries_of_a_record_add_up_in_their_stored_order(self, form, dtype, index):
        rng = np.random.default_rng(0)
        rows = [*many_duplicates(rng, 40, 12, ascending=False), *many_duplicates(rng, 40, 12)]
        X = store_rows(rows, form, (80, 12), dtype)
        names = ("data", "row", "col") if form == "coo" else ("data", "indices", "indptr")
        for name in names[1:]:
            setattr(X, name, getattr(X, name).astype(index))
        given = [getattr(X, name).copy() for name in names]
        found = without_duplicates(X)
        same_bits(by_row(found), added_up(rows, dtype))
        assert found.has_canonical_format
        assert found.format == ("csc" if form == "csc" else "csr")
        for before, name in zip(given, names, strict=True):
            assert before.tobytes() == getattr(X, name).tobytes()

    @FORMATS
    @pytest.mark.parametrize("dtype", [np.longdouble, np.int64, np.int8, bool])
    def test_of_other_types_they_add_up_in_double_precision(self, form, dtype):
        rng, most = np.random.default_rng(3), 2.0 ** (8 * np.dtype(dtype).itemsize - 2)
        rows = [
            (columns, (entries * most / (1.0 + np.abs(entries))).astype(dtype))
            for columns, entries in many_duplicates(rng, 30, 12, ascending=False)
        ]
        X = store_rows(rows, form, (30, 12), dtype)
        found = without_duplicates(X)
        assert found.dtype == np.float64
        same_bits(by_row(found), added_up(rows, working_dtype(X)))

    @pytest.mark.parametrize("dtype", [object, str])
    def test_objects_and_texts_are_refused(self, dtype):
        """scipy converts them, and another record then changes the order in which they add up."""
        X = sp.csr_array(np.ones((2, 3)))
        X.data = X.data.astype(dtype)
        with pytest.raises(DataError, match="objects or texts"):
            without_duplicates(X)

    def test_a_row_that_ascends_is_copied_bit_by_bit(self):
        entries = np.array([-0.0, 5e-324, np.nan, np.inf, 1.0, 1.0])
        X = sp.csr_array((entries, [0, 1, 2, 3, 1, 0], [0, 4, 6]), shape=(2, 4))
        assert canonical(X).data[:4].tobytes() == entries[:4].tobytes()

    def test_sums_that_overflow_are_finite_by_their_own_row(self):
        big = np.finfo(float).max
        rows = (
            ([big, big], big),
            ([-big, -big, 1.0], -big),
            ([big, big, -big, -big], big),
            ([big, -big, 3.0], 3.0),
            # What is not a number when it is given is refused by whoever checks the entries.
            ([np.inf, 1.0], np.inf),
            ([np.nan, 1.0], np.nan),
        )
        entries = np.concatenate([given for given, _ in rows])
        ends = np.cumsum([0, *(len(given) for given, _ in rows)])
        X = sp.csr_array((entries, np.zeros(ends[-1], np.int32), ends), shape=(len(rows), 1))
        expected = np.array([total for _, total in rows])
        np.testing.assert_array_equal(canonical(X).data, expected)

    def test_another_record_of_double_precision_changes_no_other(self):
        columns, entries = np.zeros(4, int), np.array([1.0, 1e8, 0.25, -1e8])
        single = store_rows([(columns, entries)], "csr", (1, 2), np.float32)
        double = single.astype(np.float64)
        same_bits(by_row(canonical(single)), by_row(canonical(double)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_clipped_entry_is_the_same_number_whatever_the_others_are(dtype):
    """0.1 is no float32: whether others are equal, or beyond the bound, must not show."""
    bound = 0.1
    for entry in (1.0, -1.0, 0.1, np.float32(0.1), 0.05):
        expected = min(max(float(dtype(entry)), -bound), bound)
        for others in ([], [entry], [0.01], [7.0], [-7.0, 0.0], [np.nan]):
            X = sp.csr_array(np.array([[entry, *others]], dtype=dtype))
            found = clipped(compress(X)[0], bound)
            first = found.values[0] if found.values.size else found.constant
            assert float(first) == expected
