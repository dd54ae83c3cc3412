"""The compiled part of the svmlight reader, which parses a block of text into arrays.

The kernel reports only which line is wrong, and leaves numbers to Python's ``float`` if they have
an exponent or more than 18 digits, or if double precision cannot decide how to round them. It
converts eight digits at a time by arithmetic on a 64-bit word (the first byte lowest).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.data.blocks import MOST_COLUMNS
from dplasso.runtime.compilation import kernel

Text = NDArray[np.uint8]

_POINT = 46
_MOST_DIGITS = np.uint64(18)  # as many as an int64 always holds
_POWERS = np.array([10.0**k for k in range(19)])  # exact, all of them
_EXACT_INTEGER = 1 << 53
# Relative error of digits / 10**k in double precision, rounded up: each of the two roundings and
# Python's own one is at most 2**-53.
_MARGIN = 2.0**-50

_TENS = np.array([10**k for k in range(9)], np.uint64)
_EVERY = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_48 = np.uint64(48)
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_BYTES_0_4 = np.uint64(0x000000FF000000FF)
_UPPER_PAIRS = np.uint64(100 + (1000000 << 32))
_LOWER_PAIRS = np.uint64(1 + (10000 << 32))
_0, _1, _2, _3, _7, _8 = (np.uint64(k) for k in (0, 1, 2, 3, 7, 8))
_10, _16, _32, _56, _63 = (np.uint64(k) for k in (10, 16, 32, 56, 63))
_POINT_BYTE = np.uint8(_POINT)

_NEWLINE, _HASH, _PLUS, _COLON, _MINUS = 10, 35, 43, 58, 45
# The fast path may read this many bytes from the start of an entry: 15 digits and a colon, a sign,
# and then 40 bytes.
_LOOK_AHEAD = 64
_COLON_BYTE, _MINUS_BYTE = np.uint8(_COLON), np.uint8(_MINUS)
_SPACE_BYTE, _NEWLINE_BYTE = np.uint8(32), np.uint8(_NEWLINE)


@kernel
def is_digit(byte: int) -> bool:
    """Return whether a byte is one of "0" to "9"."""
    return 48 <= byte <= 57


@kernel
def as_float32(digits: int, after: int) -> tuple[bool, np.float32]:
    """Return (is exact, value) for digits, `after` of them behind the point.

    The value is the nearest double, rounded to a float32. It is exact if both ends of the margin of
    error round to the same float32.
    """
    near = digits / _POWERS[after]
    low = np.float32(near * (1.0 - _MARGIN))
    return low == np.float32(near * (1.0 + _MARGIN)), low


@kernel
def _eight_bytes(words, i):
    """Return the eight bytes of text from `i`, each minus "0", the first in the lowest bits."""
    shift = (i & _7) << _3
    at = i >> _3
    # Shifted in two steps, because a shift by 64 is not defined.
    return ((words[at] >> shift) | ((words[at + _1] << _1) << (_63 - shift))) ^ _ZEROS


@kernel
def _not_digits(word):
    """Set the high bit of the first byte above 9 (later marks are invalid); 0 for none."""
    # The carry of a byte above nine reaches only bytes after it.
    return ((word + _ABOVE_NINE) | word) & _HIGH_BITS


@kernel
def _bytes_before(marks):
    """Count the bytes before the first mark: 0 to 8."""
    first = (marks >> _7) & (~(marks >> _7) + _1)
    return (((first - _1) & _EVERY) * _EVERY) >> _56


@kernel
def _eight_digits(word):
    """Return the number with these eight digits."""
    word = word * _10 + (word >> _8)  # pairs; then fours, and all of them
    upper = (word & _BYTES_0_4) * _UPPER_PAIRS
    lower = ((word >> _16) & _BYTES_0_4) * _LOWER_PAIRS
    return (upper + lower) >> _32


@kernel
def _first_digits(word, n):
    """Return the number with the first `n` bytes as digits."""
    # Shift zeros in front, again in two steps because the whole shift may be 64.
    half = _32 - (n << _2)
    return _eight_digits((word << half) << half)


@njit(cache=True, nogil=True, inline="always")
def scan_digits(words, i):
    """Read 1 to 15 digits at `i`; return (count, number), (0, 0) if there are fewer or more."""
    word = _eight_bytes(words, i)
    marks = _not_digits(word)
    if marks:
        n = _bytes_before(marks)
        return n, _first_digits(word, n)
    number = _eight_digits(word)
    word = _eight_bytes(words, i + _8)
    marks = _not_digits(word)
    if not marks:
        return _0, _0
    n = _bytes_before(marks)
    return _8 + n, number * _TENS[n] + _first_digits(word, n)


@njit(cache=True, nogil=True, inline="always")
def scan_plain(text, words, i):
    """Read digits with or without a point at `i`; return (end, digits, count after the point).

    The end is 0 if there is no such number, or it has too many digits. Common lengths are branches,
    so that the processor can predict the place of the next byte.
    """
    kept = _0
    if text[i + _1] == _POINT_BYTE and is_digit(text[i]):
        digits = np.uint64(text[i]) - _48
        kept = np.uint64(digits > _0)
        i += _2
    else:
        word = _eight_bytes(words, i)
        n = _bytes_before(_not_digits(word))
        if n == _0 or n == _8:  # noqa: SIM109
            return _0, _0, _0
        digits = _first_digits(word, n)
        i += n
        if text[i] != _POINT_BYTE:
            return i, digits, _0
        kept = n if digits else _0
        i += _1
    after = _0
    while True:
        word = _eight_bytes(words, i)
        marks = _not_digits(word)
        if marks:
            n = _bytes_before(marks)
            after += n
            if kept + after > _MOST_DIGITS:
                return _0, _0, _0
            return i + n, digits * _TENS[n] + _first_digits(word, n), after
        after += _8
        if after > _16:
            return _0, _0, _0
        digits = digits * _TENS[8] + _eight_digits(word)
        i += _8


@kernel
def _is_space(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13 and byte != _NEWLINE)


@kernel
def _skip_spaces(text: Text, i: int) -> int:
    while i < text.size and _is_space(text[i]):
        i += 1
    return i


@kernel
def _ends_line(text: Text, i: int) -> bool:
    return i >= text.size or text[i] == _NEWLINE or text[i] == _HASH


@kernel
def _ends_token(text: Text, i: int) -> bool:
    return bool(_ends_line(text, i) or _is_space(text[i]))


@kernel
def _next_line(text: Text, i: int) -> int:
    while i < text.size and text[i] != _NEWLINE:
        i += 1
    return i + 1


@kernel
def _scan_index(text: Text, i: int) -> tuple[int, int]:
    """Read a whole number and a colon at `i`; return (end, index), `end` -1 if malformed."""
    start = i
    index = 0
    while i < text.size and is_digit(text[i]):
        digit = int(text[i] - 48)
        if index > (MOST_COLUMNS - digit) // 10:
            return -1, index
        index = index * 10 + digit
        i += 1
    if i == start or i >= text.size or text[i] != _COLON:
        return -1, index
    return i + 1, index


@kernel
def _quick_label(text, eights, i, end):
    """Read a number in a common format from `i` to `end`; return (is exact, value)."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    at, digits, after = scan_plain(text, eights, np.uint64(i))
    if np.int64(at) != end:
        return False, 0.0
    value = np.int64(digits) / _POWERS[np.int64(after)]
    return np.int64(digits) <= _EXACT_INTEGER, -value if negative else value


@njit(cache=True, nogil=True, inline="always")
def _quick_entry(text, eights, i):
    """Read a common ``index:value``; return (end or -1, index, is exact, value)."""
    n, index = scan_digits(eights, np.uint64(i))
    at = np.uint64(i) + n
    if n == _0 or text[at] != _COLON_BYTE:
        return -1, 0, False, np.float32(0.0)
    at += _1
    negative = text[at] == _MINUS_BYTE
    if negative:
        at += _1
    at, digits, after = scan_plain(text, eights, at)
    if at == _0 or (text[at] != _SPACE_BYTE and text[at] != _NEWLINE_BYTE):
        return -1, 0, False, np.float32(0.0)
    settled, value = as_float32(np.int64(digits), np.int64(after))
    return np.int64(at), np.int64(index), settled, -value if negative else value


@kernel
def parse_block(
    text: Text,
    eights: NDArray[np.uint64],
    first_index: int,
    n_columns: int,
    labels: NDArray[np.float64],
    starts: NDArray[np.int64],
    row_ends: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.float32],
    hard: NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    """Parse whole lines of svmlight text; the last may lack its line end.

    `eights`: the text as little-endian 64-bit words, without an incomplete last word.
    `labels`, `starts`, `row_ends`: outputs with room for one record per line.
    `columns`, `values`: outputs with room for one entry per four bytes.
    `hard`: output of numbers left to Python: (entry, or -1 - record for a label; start; end).

    Returns the numbers of records, entries and hard numbers, the largest column (-1 if none), and
    the start of the first wrong line (-1 if none).
    """
    i = 0
    record = 0
    entry = 0
    n_hard = 0
    largest = -1
    last_quick = 8 * eights.size - _LOOK_AHEAD
    while i < text.size:
        i = _skip_spaces(text, i)
        if _ends_line(text, i):
            i = _next_line(text, i)
            continue
        line_start = i
        while not _ends_token(text, i):
            i += 1
        settled = False
        if line_start <= last_quick:
            settled, labels[record] = _quick_label(text, eights, line_start, i)
        if not settled:
            hard[n_hard, 0] = -1 - record
            hard[n_hard, 1] = line_start
            hard[n_hard, 2] = i
            n_hard += 1
        starts[record] = line_start
        previous = -1
        while True:
            i = _skip_spaces(text, i)
            if _ends_line(text, i):
                break
            settled = False
            if i <= last_quick:
                end, index, settled, value = _quick_entry(text, eights, i)
                column = index - first_index
            if settled:
                if column <= previous or column >= n_columns:
                    return record, entry, n_hard, largest, line_start
                i = end
            else:
                i, index = _scan_index(text, i)
                column = index - first_index
                if i < 0 or column <= previous or column >= n_columns:
                    return record, entry, n_hard, largest, line_start
                start = i
                while not _ends_token(text, i):
                    i += 1
                hard[n_hard, 0] = entry
                hard[n_hard, 1] = start
                hard[n_hard, 2] = i
                n_hard += 1
            columns[entry] = column
            values[entry] = value
            entry += 1
            previous = column
        largest = max(largest, previous)
        row_ends[record] = entry
        record += 1
        i = _next_line(text, i)
    return record, entry, n_hard, largest, -1
