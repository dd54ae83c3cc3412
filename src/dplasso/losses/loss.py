"""The contract of a loss (docs/architecture.md); offsets and weights from counts of the classes.

A loss is a NamedTuple of public numbers. It has these attributes:

=================  ========================================================================
`residual_bound`   C, the bound on a residual, or on the L2 norm of several residuals
`label_distance`   how far another label moves them in L2, at most 2 C; not if clipped by entry
`offset`           number added to every margin, or one number for each margin
`n_outputs`        margins of a record
`n_labels`         labels of a record: 1, or one for each margin in multi-label fits
`two_targets`      whether all targets are 0 or 1; losses of one margin only
`bends_alike`      whether the second derivative is the same for both targets
`curvature`        upper bound on the second derivative, which limits stable steps
`class_parts`      part of each record that belongs to each class but the first; of counts
`link`             maps margins to class probabilities, or to mean targets
`link_terms`       C of the link, and whether it bounds the norm of all residuals together
`starting_offset`  offset that minimises the loss without columns; LASSO only
=================  ========================================================================

`register` ties kernels to it, and the attributes that are constants. The mechanisms use
`residual_bound` as the sensitivity of a record, so a kernel whose residual exceeds it breaks the
guarantee. Targets are float64: 0 or 1, class numbers, or numbers in [-1, 1].
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.runtime.compilation import implement, implementation, kernel

# A class imbalance is used only as far as it exceeds this many standard deviations of the noise.
DEVIATIONS = 2.0
# Smallest share of a class, relative to equal shares.
_LEAST_SHARE = 0.01


def gradient(loss: Any, margin: float, target: float) -> float:
    """Return the residual q of a record with one margin; ``|q| <= residual_bound``."""
    return float(implementation("gradient", loss)(loss, margin, target))


def residual_vector(loss: Any, margins: Any, target: float, residuals: Any) -> None:
    """Set `residuals` to the residuals of a record with one or more margins."""
    implementation("residual_vector", loss)(loss, margins, target, residuals)


def second_derivative(loss: Any, margin: float, target: float) -> float:
    """Return the derivative of the residual, from 0 to `curvature`; 0 if it is clipped."""
    return float(implementation("second_derivative", loss)(loss, margin, target))


def value(loss: Any, margin: float, target: float) -> float:
    """Return the loss of a record, for the history of Algorithm 1."""
    return float(implementation("value", loss)(loss, margin, target))


def margins_within(loss: Any, q: float, target: float, tolerance: float) -> tuple[Any, Any]:
    """Return the lowest and the highest margin whose residual is within a tolerance of q.

    Both are rounded inwards to float32. If there is no such margin, the lowest exceeds the highest.
    """
    lowest, highest = implementation("margins_within", loss)(loss, q, target, tolerance)
    return lowest, highest


def tangent_offset(loss: Any, q: float, target: float) -> float:
    """Return ``value - q * margin`` at any margin with residual q: for Algorithm 2's history."""
    return float(implementation("tangent_offset", loss)(loss, q, target))


def without_offset(loss: Any) -> Any:
    """Return the loss without its offset, for margins that include it."""
    return loss._replace(offset=0.0 * loss.offset) if "offset" in loss._fields else loss


@kernel
def one_residual(loss, margins, target, residuals):
    """Implement `residual_vector` by `gradient`, for a loss of one margin."""
    residuals[0] = gradient(loss, margins[0], target)


_CONTRACT = {
    function.__name__: function
    for function in (
        *(gradient, residual_vector, second_derivative),
        *(value, margins_within, tangent_offset),
    )
}


def register(loss_class: type, constants: Mapping[str, Any], **kernels: Callable[..., Any]) -> None:
    """Give a loss attributes, the same for all its parameters, and kernels by the names above.

    A loss of one margin needs no `residual_vector`.
    """
    for name, constant in constants.items():
        setattr(loss_class, name, constant)
    if "gradient" in kernels:
        kernels = {"residual_vector": one_residual} | kernels
    for name, own in kernels.items():
        implement(_CONTRACT[name], loss_class, own)


def mean_target(counts: NDArray[np.float64], deviation: float, *, calibrated: bool = True) -> float:
    """Return the mean of targets in [-1, 1]; a difference of counts within its noise is 0.

    A larger difference is less by its noise if margins are `calibrated`, which finds the rest.
    Otherwise it shrinks the less, the larger it is.
    """
    negative, positive = float(counts[0]), float(counts[1])
    difference, noise = positive - negative, DEVIATIONS * math.sqrt(2.0) * deviation
    if calibrated or abs(difference) <= noise:
        difference = math.copysign(max(0.0, abs(difference) - noise), difference)
    else:
        difference *= 1.0 - (noise / difference) ** 2
    return min(1.0, max(-1.0, difference / max(1.0, negative + positive)))


def class_shares(counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return the shares of K classes; a difference from the mean within its noise counts as 0."""
    mean = counts.mean()
    beyond = np.abs(counts - mean) - DEVIATIONS * deviation
    level = mean + np.copysign(np.maximum(0.0, beyond), counts - mean)
    shares = np.maximum(level / max(1.0, level.sum()), _LEAST_SHARE / counts.size)
    return np.asarray(shares / shares.sum())
