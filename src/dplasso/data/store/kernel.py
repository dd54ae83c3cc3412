"""Kernels of the store: scanning rows, renumbering columns, the external transpose, checks."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_columns(indices, counts):
    """Add the number of entries of each column."""
    for p in range(indices.size):
        counts[np.uint64(indices[p])] += 1


@njit(cache=True, nogil=True)
def column_starts(counts, original, indptr):
    """Write where each renumbered column starts."""
    total = np.int64(0)
    for k in range(original.size):
        indptr[k] = total
        total += counts[np.uint64(original[k])]
    indptr[original.size] = total


@njit(cache=True, nogil=True)
def renumber(columns, internal, part_of_column, counts):
    """Replace columns by their internal numbers, and count the entries of each part."""
    # Two short loops over cached entries are faster than one that waits for both tables.
    block = 2048
    for begin in range(0, columns.size, block):
        some = columns[begin : begin + block]
        for p in range(some.size):
            some[p] = internal[np.uint64(some[p])]
        for p in range(some.size):
            counts[np.uint64(part_of_column[np.uint64(some[p])])] += 1


@njit(cache=True, nogil=True)
def partition(
    columns, values, indptr, first, part_of_column, first_column, position, offsets, rows, out
):
    """Partition the entries of some rows, keeping their order.

    `columns` and `values` are those of the entries from `first` on; `offsets` receives columns
    counted from the part's first one, `rows` the rows, `out` the values.
    """
    size = columns.size
    row = np.searchsorted(indptr, first, side="right") - 1
    p = np.int64(0)
    while p < size:
        end = min(indptr[row + 1] - first, size)
        while p < end:
            k = np.uint64(columns[p])
            part = np.uint64(part_of_column[k])
            place = np.uint64(position[part])
            position[part] = place + np.uint64(1)
            offsets[place] = k - np.uint64(first_column[part])
            rows[place] = row
            if values.size:
                out[place] = values[p]
            p += 1
        row += 1


@njit(cache=True, nogil=True)
def place_part(offsets, rows, values, position, sorted_rows, sorted_values):
    """Sort entries by column, keeping their order; `position` is each column's next place."""
    for p in range(offsets.size):
        k = np.uint64(offsets[p])
        place = np.uint64(position[k])
        position[k] = place + np.uint64(1)
        sorted_rows[place] = rows[p]
        if values.size:
            sorted_values[place] = values[p]


@njit(cache=True, nogil=True)
def maps_agree(internal, original):
    """Return whether two maps of the columns are inverse to each other."""
    size = np.uint64(internal.size)
    for k in range(original.size):
        j = np.uint64(original[k])
        if j >= size or internal[j] != k:
            return False
    return True


@njit(cache=True, nogil=True)
def ascends(numbers, limit):
    """Return whether numbers, one at least, lie in 0 to `limit` - 1 and ascend strictly."""
    # Without a branch inside, so that the compiler can vectorise the loop.
    wrong = np.int64(numbers[0] < 0 or numbers[numbers.size - 1] >= limit)
    for p in range(1, numbers.size):
        wrong |= numbers[p] <= numbers[p - 1]
    return wrong == 0


@njit(cache=True, nogil=True)
def first_unordered(indices, starts, numbers, limit, begin, end):
    """Return the first entry from `begin` to `end` - 1 that a row must not hold, or -1.

    Indices must be 0 to `limit` - 1, and the number of each, from `numbers` or where that is empty
    itself, greater than that of the entry before it in the row.
    """
    row = np.searchsorted(starts, begin, side="right") - 1
    p = np.int64(begin)
    while p < end:
        stop = min(starts[row + 1], end)
        first = max(p - 1, starts[row])
        if stop > p and numbers.size == 0 and ascends(indices[first:stop], limit):
            p = stop
        before = np.int64(-1)
        if first < p < stop:
            # Beyond the limit it is the fault of the entries before `begin`.
            k = np.uint64(indices[p - 1])
            if k < np.uint64(limit):
                before = np.int64(numbers[k]) if numbers.size else np.int64(k)
        for q in range(p, stop):
            k = np.uint64(indices[q])
            if k >= np.uint64(limit):
                return q
            number = np.int64(numbers[k]) if numbers.size else np.int64(k)
            if number <= before:
                return q
            before = number
        p = stop
        row += 1
    return np.int64(-1)


@njit(cache=True, nogil=True)
def first_outside(words, limit, mask=-1):
    """Return the position of the first number, masked, that is not in 0 to limit - 1, or -1."""
    of_type = words.dtype.type
    mask = of_type(mask)
    # Block by block, without a branch inside, so that the compiler can vectorise the loop.
    block = 4096
    for begin in range(0, words.size, block):
        part = words[begin : begin + block]
        smallest, largest = part[0] & mask, part[0] & mask
        for p in range(part.size):
            word = of_type(part[p] & mask)
            smallest, largest = min(smallest, word), max(largest, word)
        if smallest < 0 or largest >= limit:
            for p in range(part.size):
                word = part[p] & mask
                if word < 0 or word >= limit:
                    return begin + p
    return -1
