"""Decimal numbers in text as nearly all are written, for the compiled svmlight reader.

Digits with or without a point, no more than 18: every other number is left to Python's ``float``.
Eight bytes are looked at as one 64-bit word (the first byte lowest): all eight digits are found and
summed up by arithmetic on the word, without a branch.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

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


@njit(cache=True, nogil=True)
def is_digit(byte: int) -> bool:
    """Return whether a byte is one of "0" to "9"."""
    return 48 <= byte <= 57


@njit(cache=True, nogil=True)
def as_float64(digits: int, after: int) -> tuple[bool, float]:
    """Return (settled, value) of digits, `after` of them behind the point: the nearest double."""
    return digits <= _EXACT_INTEGER, digits / _POWERS[after]


@njit(cache=True, nogil=True)
def as_float32(digits: int, after: int) -> tuple[bool, np.float32]:
    """Return (settled, value) of digits, `after` of them behind the point.

    The value is the nearest double, rounded to a float32. The double is known only to within a
    margin; where both ends of it round to the same float32, that is the answer.
    """
    near = digits / _POWERS[after]
    low = np.float32(near * (1.0 - _MARGIN))
    return low == np.float32(near * (1.0 + _MARGIN)), low


@njit(cache=True, nogil=True)
def _eight_bytes(words, i):
    """Return the eight bytes of text from `i`, minus "0" each, the first one lowest."""
    shift = (i & _7) << _3
    at = i >> _3
    # Shifted in two steps, because a shift by 64 is not defined.
    return ((words[at] >> shift) | ((words[at + _1] << _1) << (_63 - shift))) ^ _ZEROS


@njit(cache=True, nogil=True)
def _not_digits(word):
    """Mark the first byte above 9, by its high bit; marks after it mean nothing. 0: none."""
    # The carry of a byte above nine reaches only bytes after it.
    return ((word + _ABOVE_NINE) | word) & _HIGH_BITS


@njit(cache=True, nogil=True)
def _bytes_before(marks):
    """Count the bytes before the first mark: 0 to 8."""
    first = (marks >> _7) & (~(marks >> _7) + _1)
    return (((first - _1) & _EVERY) * _EVERY) >> _56


@njit(cache=True, nogil=True)
def _eight_digits(word):
    """Return the number that eight digits write."""
    word = word * _10 + (word >> _8)  # pairs; then fours, and all of them
    upper = (word & _BYTES_0_4) * _UPPER_PAIRS
    lower = ((word >> _16) & _BYTES_0_4) * _LOWER_PAIRS
    return (upper + lower) >> _32


@njit(cache=True, nogil=True)
def _first_digits(word, n):
    """Return the number that the first `n` bytes, digits all, write."""
    # Zeros are put in front. In two steps again: the whole shift may be 64.
    half = _32 - (n << _2)
    return _eight_digits((word << half) << half)


@njit(cache=True, nogil=True, inline="always")
def scan_digits(words, i):
    """Read 1 to 15 digits at `i`: (how many, number); (0, 0) where there are fewer or more."""
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
    """Read digits with or without a point at `i`: (end, digits, how many after the point).

    The end is 0 where there is anything else, or too many digits. It says nothing about what
    follows the number.

    Where the next byte is looked for must not wait for how many digits there were, if it can be
    guessed: so the common lengths (one digit before the point, eight more after it) are branches.
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
