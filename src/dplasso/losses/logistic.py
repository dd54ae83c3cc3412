"""Logistic loss with a bounded residual, of one label or many: linear tails.

``q = clip(sigma(margin) - target, -C, C)`` is the gradient of a convex loss. C = 1 clips nothing. C
= 1/2 halves the sensitivity of every step, and does not change the first gradient, because all
residuals have the size 1/2 at zero weights (docs/logistic.md).

A multi-label sample has a margin and a residual for each of L labels, ``clip(sigma(v_l) - y_l, -c,
c)``. Their L2 norm is at most ``C = c sqrt(L)``, so one release for all labels needs sqrt(L) times
the noise of a release for one label.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.exponential import exponential, logarithm
from dplasso.losses.loss import mean_target, register
from dplasso.matrix.compressed import clip
from dplasso.runtime.compilation import kernel

_UPWARDS = 2.0**-23
_TINY = 1e-30
# Smaller numbers have fewer digits.
_SMALLEST = 2.0**-1022


class Logistic(NamedTuple):
    """The logistic loss of a target in {0, 1}.

    `residual_bound`: C in [1/2, 1], public. `offset`: added to every margin; public or released.
    `negative_weight`, `positive_weight`: weight of a record of each class, in (0, 1].
    """

    residual_bound: float = 1.0
    offset: float = 0.0
    negative_weight: float = 1.0
    positive_weight: float = 1.0

    @property
    def label_distance(self) -> float:
        return 2.0 * self.residual_bound

    @property
    def bends_alike(self) -> bool:
        """Whether the second derivative is the same for both targets."""
        return self.residual_bound >= 1.0 and self.negative_weight == self.positive_weight

    @property
    def link_terms(self) -> tuple[float, bool]:
        return self.residual_bound, False

    def class_parts(self, labels: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [labels]

    def starting_offset(self, counts: NDArray[np.float64], deviation: float) -> float:
        weighted = counts * np.array([self.negative_weight, self.positive_weight])
        p = min(0.99, max(0.01, 0.5 + 0.5 * mean_target(weighted, deviation)))
        rarer = min(p, 1.0 - p)
        # The inverse of the link: below 1 - C the residual of the rarer class is clipped.
        sigma = self.residual_bound * rarer / (1.0 - rarer)
        sigma = sigma if sigma < 1.0 - self.residual_bound else rarer
        margin = math.log(sigma / (1.0 - sigma))
        return margin if p < 0.5 else -margin

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of both classes, shape (N, 2): the inverse of the minimiser.

        With ``s = sigma(margin)`` and C the bound: ``s / (s + C)`` below 1 - C, ``C / (C + 1 - s)``
        above C, s between (docs/logistic.md).
        """
        margins, bound = margins + self.offset, self.residual_bound
        rise = np.exp(-np.abs(margins))
        rarer, likelier = rise / (1.0 + rise), 1.0 / (1.0 + rise)
        tail = rarer < 1.0 - bound
        total = np.where(tail, rarer + bound, 1.0)
        rarer, likelier = rarer / total, np.where(tail, bound, likelier) / total
        positive = margins >= 0
        return np.column_stack(
            [np.where(positive, rarer, likelier), np.where(positive, likelier, rarer)]
        )


@kernel
def sigma(margin):
    """Return 1 / (1 + exp(-margin)), monotone in the margin despite rounding."""
    return 1.0 / (1.0 + exponential(-margin))


@kernel
def logit(p):
    """Return the margin at which sigma is p; infinite from 0 down and from 1 up."""
    if p < _SMALLEST:
        return -np.inf
    if p >= 1.0:
        return np.inf
    return logarithm(p / (1.0 - p))


@kernel
def round_up(margin):
    """Round a margin up to float32, by at most a little more than a unit in its last place."""
    if np.isinf(margin):
        return np.float32(margin)
    return np.float32(margin + (abs(margin) * _UPWARDS + _TINY))


@kernel
def logistic_gradient(loss, margin, target):
    """Return the clipped residual; 0 if the margin is NaN."""
    q = clip(sigma(margin + loss.offset) - target, loss.residual_bound)
    return q * (loss.positive_weight if target else loss.negative_weight)


@kernel
def logistic_second_derivative(loss, margin, target):
    """Return ``sigma (1 - sigma)``; 0 where the residual is clipped."""
    p = sigma(margin + loss.offset)
    if not abs(p - target) <= loss.residual_bound:
        return 0.0
    return p * (1.0 - p) * (loss.positive_weight if target else loss.negative_weight)


@kernel
def logistic_value(loss, margin, target):
    """Return the loss: ``log(1 + exp(z))``, z the margin on the wrong side, linear from C on."""
    wrong = -(margin + loss.offset) if target else margin + loss.offset
    edge = logit(loss.residual_bound)
    beyond = max(wrong - edge, 0.0)
    inside = wrong - beyond
    logistic = max(inside, 0.0) + np.log1p(np.exp(-abs(inside)))
    tail = loss.residual_bound * beyond if beyond > 0.0 else 0.0
    return (logistic + tail) * (loss.positive_weight if target else loss.negative_weight)


@kernel
def logistic_margins_within(loss, q, target, tolerance):
    """Return the ends of the interval of margins whose residual is within `tolerance` of q."""
    if tolerance == 0.0:
        return np.float32(np.inf), np.float32(-np.inf)
    weight = loss.positive_weight if target else loss.negative_weight
    q, tolerance = q / weight, tolerance / weight
    p = q + target
    lowest = -np.inf if q - tolerance <= -loss.residual_bound else logit(p - tolerance)
    highest = np.inf if q + tolerance >= loss.residual_bound else logit(p + tolerance)
    return round_up(lowest - loss.offset), -round_up(loss.offset - highest)


@kernel
def logistic_tangent_offset(loss, q, target):
    """Return ``-p log p - (1 - p) log(1 - p)`` at ``p = q + target``, for weight 1 and offset 0."""
    weight = loss.positive_weight if target else loss.negative_weight
    p = q / weight + target
    if p <= 0.0 or p >= 1.0:
        return q * loss.offset
    return (-p * np.log(p) - (1.0 - p) * np.log1p(-p)) * weight + q * loss.offset


register(
    Logistic,
    {"n_outputs": 1, "n_labels": 1, "curvature": 0.25, "two_targets": True},
    gradient=logistic_gradient,
    second_derivative=logistic_second_derivative,
    value=logistic_value,
    margins_within=logistic_margins_within,
    tangent_offset=logistic_tangent_offset,
)


class ManyLogistic(NamedTuple):
    """The logistic losses of L targets in {0, 1}; C bounds the L2 norm of all residuals."""

    n_labels: int
    residual_bound: float

    @property
    def label_distance(self) -> float:
        return 2.0 * self.residual_bound

    @property
    def n_outputs(self) -> int:
        return self.n_labels

    @property
    def link_terms(self) -> tuple[float, bool]:
        return min(1.0, max(0.5, self.residual_bound / math.sqrt(self.n_labels))), False

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each label, shape (N, L): the inverse of its residuals."""
        return Logistic(self.link_terms[0]).link(margins.ravel())[:, 1].reshape(margins.shape)


@kernel
def label_residuals(loss, margins, target, residuals):
    """Set `residuals`; rounding adds less to their norm than the slack of unit rows."""
    bound = loss.residual_bound / np.sqrt(np.float64(margins.size))
    for k in range(margins.size):
        residuals[k] = clip(sigma(margins[k]) - target[k], bound)


register(ManyLogistic, {"curvature": 0.25, "offset": 0.0}, residual_vector=label_residuals)
