"""Squared loss with a bounded residual: Huber's loss.

``q = clip(margin - target, -C, C)``, with targets in [-1, 1] (docs/multiclass.md).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.logistic import round_up
from dplasso.losses.loss import mean_target, register
from dplasso.matrix.compressed import clip
from dplasso.runtime.compilation import kernel


class Squared(NamedTuple):
    """The squared loss of a target in [-1, 1]; `residual_bound` C > 0 is public."""

    residual_bound: float = 0.25
    offset: float = 0.0

    @property
    def label_distance(self) -> float:
        return 2.0 * self.residual_bound

    def class_parts(self, labels: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the part of each record that belongs to the upper end of the interval."""
        return [0.5 + 0.5 * labels]

    def starting_offset(self, counts: NDArray[np.float64], deviation: float) -> float:
        return mean_target(counts, deviation, calibrated=False)

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean targets, shape (N,): the margins themselves, within [-1, 1]."""
        return np.clip(margins + self.offset, -1.0, 1.0)


@kernel
def squared_gradient(loss, margin, target):
    """Return the clipped residual; 0 if the margin is NaN."""
    return clip(margin + loss.offset - target, loss.residual_bound)


@kernel
def squared_second_derivative(loss, margin, target):
    """Return 1; 0 where the residual is clipped."""
    return 1.0 if abs(margin + loss.offset - target) <= loss.residual_bound else 0.0


@kernel
def squared_value(loss, margin, target):
    """Return the loss: half the square of the distance, linear from C on."""
    distance = abs(margin + loss.offset - target)
    inside = min(distance, loss.residual_bound)
    return inside * (distance - 0.5 * inside)


@kernel
def squared_margins_within(loss, q, target, tolerance):
    """Return the ends of the interval of margins whose residual is within `tolerance` of q."""
    if tolerance == 0.0:
        return np.float32(np.inf), np.float32(-np.inf)
    bound = loss.residual_bound
    middle = target + q - loss.offset
    lowest = -np.inf if q - tolerance <= -bound else middle - tolerance
    highest = np.inf if q + tolerance >= bound else middle + tolerance
    return round_up(lowest), -round_up(-highest)


@kernel
def squared_tangent_offset(loss, q, target):
    """Return ``-q (q / 2 + target - offset)``, inside the bound and beyond it."""
    return -q * (0.5 * q + target - loss.offset)


register(
    Squared,
    {"n_outputs": 1, "n_labels": 1, "curvature": 1.0, "two_targets": False, "bends_alike": False},
    gradient=squared_gradient,
    second_derivative=squared_second_derivative,
    value=squared_value,
    margins_within=squared_margins_within,
    tangent_offset=squared_tangent_offset,
)
