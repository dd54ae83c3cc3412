"""Numbers and names that an adversary might choose: for the fuzzer and for fits on neighbours."""

import math

import numpy as np

_SINGLE, _DOUBLE = np.finfo(np.float32), np.finfo(np.float64)

# Finite doubles: both ends of their range and of that of single precision, what squares, sums or
# reciprocals of them overflow, denormals, zeros, and the neighbours of 1 and of 2^53.
FLOATS: tuple[float, ...] = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.0 + 2.0**-52, 1.0 - 2.0**-53, 3.0),
    *(float(_DOUBLE.max), -float(_DOUBLE.max), 1.7e308, -1.7e308, 1e308, 9e307),
    *(1.35e154, -1.35e154, 1e200, 1e-200, 2.0**400, 2.0**-400, 2.0**512, 1e100, -1e100),
    *(float(_DOUBLE.tiny), float(_DOUBLE.smallest_subnormal), -1e-310, 1e-290, 1e-320),
    *(float(_SINGLE.max), -float(_SINGLE.max), 3.4e38, 1e19, float(_SINGLE.tiny), 1e-45, 1e-39),
    *(2.0**53, 2.0**53 + 2.0, 2.0**63, -(2.0**63), 2.0**64, 1e18, math.pi),
)
# Of single precision, those that it holds.
SINGLES = tuple(float(np.float32(x)) for x in FLOATS if abs(x) <= float(_SINGLE.max))
# Stored before an entry, they add up to it in stored order alone: in another one, to 0 or 1e30.
CANCELLING = (1e30, -1e30)
# Whose row it is: different people whom a conversion to floating-point numbers makes one; the last
# makes unsigned what would be signed without.
PEOPLE = (*(2**60 + k for k in range(8)), 2**63)
