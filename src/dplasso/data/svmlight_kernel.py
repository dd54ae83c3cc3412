"""The compiled part of the svmlight reader: one block of text to arrays.

The kernel knows only "fine" and "this line is not": what is wrong with a line is worked out,
and put into words, by `dplasso.data.svmlight`. Numbers whose rounding double precision cannot
settle are left to Python's ``float``: the kernel hands back where they stand.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Text = NDArray[np.uint8]

INDEX_MAX = 2**63 - 1

_NEWLINE, _HASH, _COLON, _PLUS, _MINUS, _POINT = 10, 35, 58, 43, 45, 46
_Q, _I, _D, _E = 113, 105, 100, 101
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_KEPT_DIGITS = 18  # as many as an int64 always holds
_EXACT_POWER = 22  # the largest power of ten that a double holds exactly
_EXACT_INTEGER = 1 << 53
# Relative error of digits * 10**k or digits / 10**k in double precision, rounded up: each of
# the three roundings and Python's own one is at most 2**-53, the digits left out 2**-56.
_MARGIN = 2.0**-50


@njit(cache=True, nogil=True)
def _is_space(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13 and byte != _NEWLINE)


@njit(cache=True, nogil=True)
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


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
def _scan_number(text: Text, i: int) -> tuple[int, bool, int, int, bool]:
    """Read a decimal number at `i` as ``+-digits * 10**exponent``.

    Returns (end, negative, digits, exponent, exact); `end` is -1 where no number starts, and
    `exact` is false if digits were left out.
    """
    n = text.size
    negative = False
    if i < n and (text[i] == _PLUS or text[i] == _MINUS):
        negative = text[i] == _MINUS
        i += 1
    digits = 0
    exponent = 0
    seen = 0
    kept = 0
    exact = True
    fraction = False
    while i < n:
        byte = text[i]
        if _is_digit(byte):
            seen += 1
            if kept < _KEPT_DIGITS:
                digits = digits * 10 + int(byte - 48)
                if digits > 0:
                    kept += 1
                if fraction:
                    exponent -= 1
            else:
                exact = exact and byte == 48
                if not fraction:
                    exponent += 1
        elif byte == _POINT and not fraction:
            fraction = True
        else:
            break
        i += 1
    if seen == 0:
        return -1, negative, digits, exponent, exact
    if i < n and (text[i] | 32) == _E:
        i += 1
        down = False
        if i < n and (text[i] == _PLUS or text[i] == _MINUS):
            down = text[i] == _MINUS
            i += 1
        if i >= n or not _is_digit(text[i]):
            return -1, negative, digits, exponent, exact
        power = 0
        while i < n and _is_digit(text[i]):
            if power < 10**16:  # beyond it, no file has the digits that would make up for it
                power = power * 10 + int(text[i] - 48)
            i += 1
        exponent += -power if down else power
    return i, negative, digits, exponent, exact


@njit(cache=True, nogil=True)
def _as_float64(digits: int, exponent: int, exact: bool) -> tuple[bool, float]:
    """Return (settled, value): the correctly rounded double, where one operation gives it."""
    if digits == 0:
        return True, 0.0
    if not exact or digits > _EXACT_INTEGER or abs(exponent) > _EXACT_POWER:
        return False, 0.0
    if exponent < 0:
        return True, digits / _POWERS[-exponent]
    return True, digits * _POWERS[exponent]


@njit(cache=True, nogil=True)
def _as_float32(digits: int, exponent: int) -> tuple[bool, np.float32]:
    """Return (settled, value): the correctly rounded double, rounded to a float32.

    The double is known only to within a margin; where both ends of it round to the same finite
    float32, that is the answer.
    """
    if digits == 0:
        return True, np.float32(0.0)
    if abs(exponent) >= _POWERS.size:
        return False, np.float32(0.0)
    near = digits / _POWERS[-exponent] if exponent < 0 else digits * _POWERS[exponent]
    low = np.float32(near * (1.0 - _MARGIN))
    high = np.float32(near * (1.0 + _MARGIN))
    return bool(low == high and high < np.inf), low


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
    while i < text.size and _is_digit(text[i]):
        i += 1
    return i if i > start and _ends_token(text, i) else -1


@njit(cache=True, nogil=True)
def _scan_index(text: Text, i: int) -> tuple[int, int]:
    """Read a whole number and its colon at `i`: (end, index), `end` -1 where there is none."""
    start = i
    index = 0
    while i < text.size and _is_digit(text[i]):
        digit = int(text[i] - 48)
        if index > (INDEX_MAX - digit) // 10:
            return -1, index
        index = index * 10 + digit
        i += 1
    if i == start or i >= text.size or text[i] != _COLON:
        return -1, index
    return i + 1, index


@njit(cache=True, nogil=True)
def parse_block(
    text: Text,
    first_index: int,
    n_columns: int,
    labels: NDArray[np.float64],
    row_ends: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.float32],
    hard: NDArray[np.int64],
) -> tuple[int, int, int, int, int, int]:
    """Parse whole lines of svmlight text.

    Parameters
    ----------
    text : uint8[:]
        The lines; the last may lack its line end.
    first_index : int
        The index that means column 0: 1, or 0.
    n_columns : int
        Columns must be less than this.
    labels, row_ends : float64[:], int64[:]
        Written: a record's label, and the number of entries up to its end. Room for as many
        records as there are lines.
    columns, values : int64[:], float32[:]
        Written: the entries. Room for as many as there are colons.
    hard : int64[:, 4]
        Written: numbers left to Python's ``float``, as (entry, or -1 - record for a label;
        start; end; line). Room for every entry and label.

    Returns
    -------
    n_records, n_entries, n_hard : int
    n_lines : int
        Lines begun so far.
    largest : int
        The largest column, -1 if none.
    bad_line : int
        Where a line starts that cannot be read, -1 if there is none. The parse ends with it.
    """
    i = 0
    record = 0
    entry = 0
    n_hard = 0
    line = 0
    largest = -1
    while i < text.size:
        line += 1
        line_start = i
        i = _skip_spaces(text, i)
        if _ends_line(text, i):
            i = _next_line(text, i)
            continue
        start = i
        i, negative, digits, exponent, exact = _scan_number(text, i)
        if i < 0 or not _ends_token(text, i):
            return record, entry, n_hard, line, largest, line_start
        settled, number = _as_float64(digits, exponent, exact)
        labels[record] = -number if negative else number
        if not settled:
            hard[n_hard, 0] = -1 - record
            hard[n_hard, 1] = start
            hard[n_hard, 2] = i
            hard[n_hard, 3] = line
            n_hard += 1
        i = _skip_query(text, _skip_spaces(text, i))
        if i < 0:
            return record, entry, n_hard, line, largest, line_start
        previous = -1
        while True:
            i = _skip_spaces(text, i)
            if _ends_line(text, i):
                break
            i, index = _scan_index(text, i)
            column = index - first_index
            if i < 0 or column <= previous or column >= n_columns:
                return record, entry, n_hard, line, largest, line_start
            start = i
            i, negative, digits, exponent, exact = _scan_number(text, i)
            if i < 0 or not _ends_token(text, i):
                return record, entry, n_hard, line, largest, line_start
            settled, value = _as_float32(digits, exponent)
            columns[entry] = column
            values[entry] = -value if negative else value
            if not settled:
                hard[n_hard, 0] = entry
                hard[n_hard, 1] = start
                hard[n_hard, 2] = i
                hard[n_hard, 3] = line
                n_hard += 1
            entry += 1
            previous = column
        largest = max(largest, previous)
        row_ends[record] = entry
        record += 1
        i = _next_line(text, i)
    return record, entry, n_hard, line, largest, -1
