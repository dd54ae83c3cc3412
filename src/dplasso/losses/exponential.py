"""Exponential and logarithm of residuals, bit-identical on every machine.

The functions of C libraries differ in the last bit, and a sum may run on several machines. These
functions are fixed sequences of IEEE 754 operations, which numba does not fuse.

``exp(x) = 2^(k / 256) exp(r)`` with ``0 < r < ln 2 / 255`` and a polynomial without negative terms,
so every operation is monotone in x. A test checks each place where k changes.
"""

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from dplasso.runtime.compilation import kernel

_STEPS = 256
# Adding this number leaves the nearest integer in the last bits.
_SHIFT = 1.5 * 2.0**52
_SHIFT_BITS = np.float64(_SHIFT).view(np.int64)
# Less than the half that rounding adds, so that r is never negative.
_BELOW = 0.5 + 2.0**-10
# The bits of the square root of 1/2, which centres the significand.
_HALF_BITS = np.float64(0.5**0.5).view(np.int64)


def _powers() -> tuple[NDArray[np.int64], NDArray[np.float64], float, float, float]:
    """Return 2^(i / 256) as bits and what relatively is missing, and ln 2 / 256 in parts."""
    with localcontext() as context:
        context.prec = 60
        root = Decimal(2)
        for _ in range(8):
            root = root.sqrt()
        powers = [root**i for i in range(_STEPS)]
        nearest = np.array(powers, dtype=np.float64)
        missing = [
            float(power / Decimal(near) - 1) for power, near in zip(powers, nearest, strict=True)
        ]
        step = Decimal(2).ln() / _STEPS
        # Few bits, so that any multiple k is exact.
        high = float(round(step * 2**42)) / 2.0**42
        low, inverse = float(step - Decimal(high)), float(1 / step)
    return nearest.view(np.int64), np.array(missing), high, low, inverse


_POWER, _MISSING, _STEP_HIGH, _STEP_LOW, _STEPS_PER_UNIT = _powers()


@kernel
def exponential(x):
    """Return exp(x), to 0.52 units in the last place; 0 below -708, infinite above 709."""
    if x < -708.0:
        return 0.0
    if x > 709.0:
        return np.inf
    shifted = (x * _STEPS_PER_UNIT - _BELOW) + _SHIFT
    # From the bits, because NaN has no whole part.
    k = np.float64(shifted).view(np.int64) - _SHIFT_BITS
    whole = shifted - _SHIFT
    r = (x - whole * _STEP_HIGH) - whole * _STEP_LOW
    i = k & (_STEPS - 1)
    power = np.int64(_POWER[i] + ((k >> 8) << 52)).view(np.float64)
    series = r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0)))))
    return power + power * (_MISSING[i] + series)


@kernel
def logarithm(x):
    """Return log(x) of a normal number, to two units in the last place or 1e-16."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - _HALF_BITS) >> 52
    significand = np.int64(bits - (exponent << 52)).view(np.float64)
    s = (significand - 1.0) / (significand + 1.0)
    square = s * s
    series = 0.0
    for n in range(23, 1, -2):
        series = (series + 1.0 / n) * square
    return exponent * 0.6931471805599453 + 2.0 * (s + s * series)
