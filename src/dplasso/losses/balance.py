"""Where margins start: what noisy counts of the classes say, as far as it is beyond their noise."""

import math

import numpy as np
from numpy.typing import NDArray

# The balance of the classes counts as far as it is beyond so many standard deviations.
DEVIATIONS = 2.0
# No class counts as rarer than this part of its share among equals.
_LEAST_SHARE = 0.01


def mean_target(counts: NDArray[np.float64], deviation: float) -> float:
    """Return the mean of targets in [-1, 1], from noisy counts at the lower and the upper end.

    `deviation`: of each count's noise. A difference within two of its own deviations is none.
    """
    negative, positive = float(counts[0]), float(counts[1])
    difference, noise = positive - negative, DEVIATIONS * math.sqrt(2.0) * deviation
    difference = math.copysign(max(0.0, abs(difference) - noise), difference)
    return min(1.0, max(-1.0, difference / max(1.0, negative + positive)))


def class_shares(counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return the shares of K classes; a difference from their mean within its noise is none."""
    mean = counts.mean()
    beyond = np.abs(counts - mean) - DEVIATIONS * deviation
    level = mean + np.copysign(np.maximum(0.0, beyond), counts - mean)
    shares = np.maximum(level / max(1.0, level.sum()), _LEAST_SHARE / counts.size)
    return np.asarray(shares / shares.sum())


def balanced_weights(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a record of each class counts so that all classes count alike, in (0, 1]."""
    shares = class_shares(counts, 0.0)
    return np.asarray(shares.min() / shares)
