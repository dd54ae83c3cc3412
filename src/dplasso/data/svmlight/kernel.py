"""The compiled part of the svmlight reader: one block of text to arrays.

The kernel knows only "fine" and "this line is not": `dplasso.data.svmlight.lines` words what is
wrong. Whatever is not digits with at most a sign and a point, and numbers whose rounding double
precision cannot settle, are left to Python's ``float``.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.data.formats import MOST_COLUMNS
from dplasso.data.svmlight.numbers import (
    Text,
    as_float32,
    as_float64,
    is_digit,
    scan_digits,
    scan_plain,
)

_NEWLINE, _HASH, _PLUS, _COLON, _MINUS = 10, 35, 43, 58, 45
_Q, _I, _D = 113, 105, 100
# The quick way may look at this many bytes from the start of an entry: 15 digits and a colon,
# a sign, and then 40.
_LOOK_AHEAD = 64
_COLON_BYTE, _MINUS_BYTE = np.uint8(_COLON), np.uint8(_MINUS)
_SPACE_BYTE, _NEWLINE_BYTE = np.uint8(32), np.uint8(_NEWLINE)
_0, _1 = np.uint64(0), np.uint64(1)


@njit(cache=True, nogil=True)
def _is_space(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13 and byte != _NEWLINE)


@njit(cache=True, nogil=True)
def _skip_spaces(text: Text, i: int) -> int:
    while i < text.size and _is_space(text[i]):
        i += 1
    return i


@njit(cache=True, nogil=True)
def _ends_line(text: Text, i: int) -> bool:
    return i >= text.size or text[i] == _NEWLINE or text[i] == _HASH


@njit(cache=True, nogil=True)
def _ends_token(text: Text, i: int) -> bool:
    return _ends_line(text, i) or _is_space(text[i])


@njit(cache=True, nogil=True)
def _next_line(text: Text, i: int) -> int:
    while i < text.size and text[i] != _NEWLINE:
        i += 1
    return i + 1


@njit(cache=True, nogil=True)
def _skip_query(text: Text, i: int) -> int:
    """Step over ``qid:NUMBER`` at `i`, if it is there; -1 if it is there and malformed."""
    if not (
        i + 3 < text.size
        and text[i] == _Q
        and text[i + 1] == _I
        and text[i + 2] == _D
        and text[i + 3] == _COLON
    ):
        return i
    i += 4
    if i < text.size and text[i] == _MINUS:
        i += 1
    start = i
    while i < text.size and is_digit(text[i]):
        i += 1
    return i if i > start and _ends_token(text, i) else -1


@njit(cache=True, nogil=True)
def _scan_index(text: Text, i: int) -> tuple[int, int]:
    """Read a whole number and its colon at `i`: (end, index), `end` -1 where there is none."""
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


@njit(cache=True, nogil=True)
def _quick_label(text, eights, i, end):
    """Read the number from `i` to `end` if it is written as nearly all are: (settled, value)."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    at, digits, after = scan_plain(text, eights, np.uint64(i))
    if np.int64(at) != end:
        return False, 0.0
    settled, value = as_float64(np.int64(digits), np.int64(after))
    return settled, -value if negative else value


@njit(cache=True, nogil=True, inline="always")
def _quick_entry(text, eights, i):
    """Read ``index:value`` at `i` as nearly all are written: (end, index, settled, value).

    The end is -1 where the slow way has to look: it is then not said that anything is wrong.
    """
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


@njit(cache=True, nogil=True)
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

    `eights`: the same bytes, eight by eight, the first lowest; an incomplete eight is left out.
    `first_index`: the index that means column 0: 1, or 0.

    Written are, with room for as many records as there are lines and an entry for four bytes:
    `labels`, `starts`, `row_ends`: a record's label, where it starts in the text, and the number of
    entries up to its end.
    `hard`: what may be numbers and is left to Python's ``float``, as (entry, or -1 - record for a
    label; start; end).

    Returns the numbers of records, of entries and of hard numbers, the largest column (-1 if none),
    and the start of a line that cannot be read (-1 if there is none); the parse ends with it.
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
        i = _skip_query(text, _skip_spaces(text, i))
        if i < 0:
            return record, entry, n_hard, largest, line_start
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
