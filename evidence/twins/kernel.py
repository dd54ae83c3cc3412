"""Kernels of the generated data sets: each row from its own random numbers, in any order.

A row's stream depends on the seed and the row's number alone, so the result does not depend on how
rows are shared among threads. These numbers make data, not privacy: a plain 64-bit mixer does.
"""

import numpy as np
from numba import njit

# Ranks are drawn by a table of this many quantiles, linear in between.
QUANTILES = 1 << 16
_FRACTION_BITS = 48
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TWO_MINUS_48 = 2.0**-_FRACTION_BITS
_TWO_MINUS_53 = 2.0**-53
# A row that has drawn this many times its length takes its last columns uniformly.
_PATIENCE = 16


@njit(cache=True, nogil=True)
def mix(word):
    """Return a 64-bit word mixed so that neighbours have nothing in common."""
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def row_state(seed, row):
    """Return the state at which a row's stream starts."""
    return mix(np.uint64(seed) * _GOLDEN + mix(np.uint64(row) + _GOLDEN))


@njit(cache=True, nogil=True)
def uniform(word):
    """Return a 64-bit word as a double in [0, 1)."""
    return np.float64(np.uint64(word) >> np.uint64(11)) * _TWO_MINUS_53


@njit(cache=True, nogil=True)
def draw_rank(word, table, n_ranks):
    """Return the rank at a random word's place in the quantile table."""
    cell = np.int64(np.uint64(word) >> np.uint64(_FRACTION_BITS))
    below = np.uint64((1 << _FRACTION_BITS) - 1)
    fraction = np.float64(np.uint64(word) & below) * _TWO_MINUS_48
    rank = np.int64(table[cell] + fraction * (table[cell + 1] - table[cell]))
    return min(rank, n_ranks - 1)


@njit(cache=True, nogil=True)
def count_dense(seed, first, last, presence, counts):
    """Count how many of the dense columns rows `first` to `last` hold."""
    for i in range(first, last):
        state = row_state(seed, i)
        for k in range(presence.size):
            state += _GOLDEN
            if uniform(mix(state)) < presence[k]:
                counts[i] += 1


@njit(cache=True, nogil=True)
def fill_rows(
    seed,
    first,
    last,
    base,
    indptr,
    indices,
    values,
    score,
    presence,
    dense_weight,
    table,
    planted,
    columns,
    shift,
    unit_rows,
):
    """Draw rows `first` to `last`: columns without duplicates, ascending, values and scores.

    `seed`, `first`, `last`: seed of the data set; rows to fill.
    `base`: the row with which `indices`, `values` and `score` start.
    `indptr`, shape (N + 1,): where each row of the whole matrix starts.
    `indices`, `values`: filled with the entries.
    `score`: filled with the planted model's score.
    `presence`, `dense_weight`, shape (K,): share of rows that hold each dense column, and its
    planted weight.
    `table`, shape (QUANTILES + 1,): quantiles of the ranks of the sparse columns.
    `planted`: planted weights of the most popular sparse columns.
    `columns`, shape (D,): column number of the dense columns, then of the ranks.
    `shift`: rank from which popularity falls off; inverse document frequency starts there.
    `unit_rows`: values like tf-idf scaled to unit norm; otherwise ones (dense columns real in (0,
    1]).
    """
    n_dense = presence.size
    n_ranks = columns.size - n_dense
    longest = np.int64(0)
    for i in range(first, last):
        longest = max(longest, np.int64(indptr[i + 1] - indptr[i]))
    size = 8
    while size < 2 * longest:
        size *= 2
    seen = np.zeros(size, dtype=np.int64)
    keys = np.empty(longest, dtype=np.int64)
    value = np.empty(longest, dtype=np.float32)
    bits = value.view(np.int32)
    for i in range(first, last):
        state = row_state(seed, i)
        length = np.int64(indptr[i + 1] - indptr[i])
        total = 0.0
        count = 0
        for k in range(n_dense):
            state += _GOLDEN
            if uniform(mix(state)) < presence[k]:
                # Not the next word of the stream: `count_dense` reads that one for the next column.
                value[count] = np.float32(1.0 - uniform(mix(mix(state) + _GOLDEN)))
                total += dense_weight[k] * (np.float64(value[count]) - 0.5)
                keys[count] = columns[k]
                count += 1
        # A stream of its own for what follows.
        state = mix(state + np.uint64(1))
        mask = 8
        while mask < 2 * length:
            mask *= 2
        mask -= 1
        stamp = np.int64(i - first + 1) << 32
        sparse = 0.0
        squares = 0.0
        tries = 0
        while count < length:
            state += _GOLDEN
            word = mix(state)
            if tries < _PATIENCE * length:
                rank = draw_rank(word, table, n_ranks)
            else:
                rank = np.int64(uniform(word) * n_ranks)
            tries += 1
            # A hash set of this row's ranks; entries of other rows have another stamp.
            entry = stamp | rank
            slot = np.int64(mix(np.uint64(rank)) & np.uint64(mask))
            while seen[slot] >> 32 == stamp >> 32 and seen[slot] != entry:
                slot = (slot + 1) & mask
            if seen[slot] == entry:
                continue
            seen[slot] = entry
            weight = 1.0
            if unit_rows:
                state += _GOLDEN
                frequency = 1.0 - 0.5 * np.log1p(-uniform(mix(state)))
                weight = frequency * (0.5 + np.log1p(np.float64(rank) / shift))
                squares += weight * weight
            value[count] = np.float32(weight)
            if rank < planted.size:
                sparse += planted[rank] * weight
            keys[count] = columns[n_dense + rank]
            count += 1
        if unit_rows and squares > 0.0:
            norm = 1.0 / np.sqrt(squares)
            for p in range(length):
                value[p] = np.float32(np.float64(value[p]) * norm)
            sparse *= norm * np.sqrt(np.float64(length))
        score[i - base] = total + sparse
        # Sorting column and value as one number; float32 bits fit the lower half.
        for p in range(length):
            keys[p] = (keys[p] << 32) | (np.int64(bits[p]) & np.int64(0xFFFFFFFF))
        keys[:length].sort()
        start = indptr[i] - indptr[base]
        for p in range(length):
            indices[start + p] = np.int32(keys[p] >> 32)
            bits[p] = np.int32(keys[p] & np.int64(0x7FFFFFFF))
        for p in range(length):
            values[start + p] = value[p]
