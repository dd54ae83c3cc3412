"""Where the margins of a fit start: the best model without columns, from noisy counts."""

import math

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.clipped_multinomial import balanced_margins

# A count or a difference counts as far as it is beyond so many standard deviations of its noise.
_DEVIATIONS = 2.0
# No class counts as rarer than this part of its share among equals.
_LEAST_SHARE = 0.01


def mean_target(negative: float, positive: float, deviation: float) -> float:
    """Return the mean of targets of -1 and 1, or between them, from noisy counts of both ends.

    The parameters as of `offset_of`.
    """
    total = max(1.0, negative + positive)
    difference = positive - negative
    noise = _DEVIATIONS * math.sqrt(2.0) * deviation
    difference = math.copysign(max(0.0, abs(difference) - noise), difference)
    return min(1.0, max(-1.0, difference / total))


def offset_of(negative: float, positive: float, deviation: float, residual_bound: float) -> float:
    """Return the margin that minimises the loss without columns, from noisy counts.

    `negative`, `positive`: records of the classes, noisy.
    `deviation`: standard deviation of each count's noise. A difference within two of its own
    standard deviations is taken for none.
    `residual_bound`: C.
    """
    p = min(0.99, max(0.01, 0.5 + 0.5 * mean_target(negative, positive, deviation)))
    rarer = min(p, 1.0 - p)
    # The link of the clipped loss (docs/logistic.md): below 1 - C the residual of the rarer
    # class is clipped.
    sigma = residual_bound * rarer / (1.0 - rarer)
    sigma = sigma if sigma < 1.0 - residual_bound else rarer
    margin = math.log(sigma / (1.0 - sigma))
    return margin if p < 0.5 else -margin


def offsets_of(
    counts: NDArray[np.float64], deviation: float, residual_bound: float
) -> NDArray[np.float64]:
    """Return the margins that minimise the multinomial loss without columns, from noisy counts.

    `counts`, shape (K,): records of the classes, noisy.
    `deviation`: standard deviation of each count's noise. A difference from their mean within two
    of them is taken for none.
    `residual_bound`: C.

    Returns shape (K,).
    """
    mean = counts.mean()
    beyond = np.abs(counts - mean) - _DEVIATIONS * deviation
    level = mean + np.copysign(np.maximum(0.0, beyond), counts - mean)
    shares = np.maximum(level / max(1.0, level.sum()), _LEAST_SHARE / counts.size)
    return balanced_margins(shares / shares.sum(), residual_bound)
