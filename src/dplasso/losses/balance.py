"""Starting margins and class weights from noisy counts of the classes."""

import math

import numpy as np
from numpy.typing import NDArray

# A class imbalance is used only as far as it exceeds this many standard deviations of the noise.
DEVIATIONS = 2.0
# Smallest share of a class, relative to equal shares.
_LEAST_SHARE = 0.01


def mean_target(counts: NDArray[np.float64], deviation: float) -> float:
    """Return the mean of targets in [-1, 1], from noisy counts at the lower and the upper end.

    `deviation`: of the noise of each count. A difference within its noise counts as 0.
    """
    negative, positive = float(counts[0]), float(counts[1])
    difference, noise = positive - negative, DEVIATIONS * math.sqrt(2.0) * deviation
    difference = math.copysign(max(0.0, abs(difference) - noise), difference)
    return min(1.0, max(-1.0, difference / max(1.0, negative + positive)))


def class_shares(counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return the shares of K classes; a difference from the mean within its noise counts as 0."""
    mean = counts.mean()
    beyond = np.abs(counts - mean) - DEVIATIONS * deviation
    level = mean + np.copysign(np.maximum(0.0, beyond), counts - mean)
    shares = np.maximum(level / max(1.0, level.sum()), _LEAST_SHARE / counts.size)
    return np.asarray(shares / shares.sum())


def balanced_weights(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a weight for each class, in (0, 1], that gives all classes the same total weight."""
    shares = class_shares(counts, 0.0)
    return np.asarray(shares.min() / shares)
