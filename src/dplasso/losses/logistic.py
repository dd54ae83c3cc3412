"""Logistic loss with a bounded residual: logistic in the middle, linear tails.

``q = clip(sigma(margin) - target, -C, C)`` is the gradient of a convex loss. With C = 1 nothing is
clipped; with C = 1/2 nothing is lost at zero weights, where every residual is exactly 1/2 in size,
while the sensitivity of every step is halved (docs/logistic.md).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.contract import one_residual, register, register_vector
from dplasso.losses.exponential import exponential, logarithm

_UPWARDS = 2.0**-23
_TINY = 1e-30
# Numbers below have lost digits.
_SMALLEST = 2.0**-1022


class Logistic(NamedTuple):
    """The logistic loss of a target in {0, 1}.

    Attributes
    ----------
    residual_bound : float
        C in [1/2, 1], public.
    offset : float
        Added to every margin: public, or released before.
    negative_weight, positive_weight : float
        What the loss of a record of each class counts, in (0, 1]: a residual stays within C.
    """

    residual_bound: float = 1.0
    offset: float = 0.0
    negative_weight: float = 1.0
    positive_weight: float = 1.0

    @property
    def n_outputs(self) -> int:
        """One margin."""
        return 1

    @property
    def curvature(self) -> float:
        """That of the logistic loss at 0."""
        return 0.25


@njit(cache=True, nogil=True)
def sigma(margin):
    """Return 1 / (1 + exp(-margin)); it never falls where the margin grows."""
    return 1.0 / (1.0 + exponential(-margin))


@njit(cache=True, nogil=True)
def logit(p):
    """Return the margin at which sigma is p; infinite from 0 down and from 1 up."""
    if p < _SMALLEST:
        return -np.inf
    if p >= 1.0:
        return np.inf
    return logarithm(p / (1.0 - p))


@njit(cache=True, nogil=True)
def round_up(margin):
    """Round a margin up to float32, by at most a little more than a unit in its last place."""
    if np.isinf(margin):
        return np.float32(margin)
    return np.float32(margin + (abs(margin) * _UPWARDS + _TINY))


@njit(cache=True, nogil=True)
def weight_of(loss, target):
    """Return what a record of this class counts."""
    return loss.positive_weight if target else loss.negative_weight


@njit(cache=True, nogil=True)
def logistic_gradient(loss, margin, target):
    """Return the residual, clipped; a margin that is no number pulls with nothing."""
    q = sigma(margin + loss.offset) - target
    bound = loss.residual_bound
    if q > bound:
        q = bound
    if q < -bound:
        q = -bound
    return q * weight_of(loss, target) if q == q else 0.0


@njit(cache=True, nogil=True)
def logistic_margins_within(loss, q, target, tolerance):
    """Return the ends of the interval of margins whose residual is within `tolerance` of q."""
    if tolerance == 0.0:
        return np.float32(np.inf), np.float32(-np.inf)
    weight = weight_of(loss, target)
    q, tolerance = q / weight, tolerance / weight
    p = q + target
    lowest = -np.inf if q - tolerance <= -loss.residual_bound else logit(p - tolerance)
    highest = np.inf if q + tolerance >= loss.residual_bound else logit(p + tolerance)
    return round_up(lowest - loss.offset), -round_up(loss.offset - highest)


@njit(cache=True, nogil=True)
def logistic_value(loss, margin, target):
    """Return the loss: ``log(1 + exp(z))``, z the margin on the wrong side, linear from C on."""
    wrong = -(margin + loss.offset) if target else margin + loss.offset
    edge = logit(loss.residual_bound)
    beyond = max(wrong - edge, 0.0)
    inside = wrong - beyond
    logistic = max(inside, 0.0) + np.log1p(np.exp(-abs(inside)))
    tail = loss.residual_bound * beyond if beyond > 0.0 else 0.0
    return (logistic + tail) * weight_of(loss, target)


@njit(cache=True, nogil=True)
def logistic_tangent_offset(loss, q, target):
    """Return ``-p log p - (1 - p) log(1 - p)`` at ``p = q + target``, for weight 1 and offset 0."""
    weight = weight_of(loss, target)
    p = q / weight + target
    if p <= 0.0 or p >= 1.0:
        return q * loss.offset
    return (-p * np.log(p) - (1.0 - p) * np.log1p(-p)) * weight + q * loss.offset


@njit(cache=True, nogil=True)
def logistic_probability(loss, margin):
    """Return P(target = 1): the mean target at which this margin minimises the loss."""
    margin = margin + loss.offset
    rarer = sigma(-abs(margin))
    bound = loss.residual_bound
    likelier = 1.0 - rarer
    if rarer < 1.0 - bound:
        rarer, likelier = rarer / (rarer + bound), bound / (rarer + bound)
    return likelier if margin > 0.0 else rarer


register(
    Logistic,
    logistic_gradient,
    logistic_margins_within,
    logistic_value,
    logistic_tangent_offset,
    logistic_probability,
)
register_vector(Logistic, one_residual)


def class_probabilities(margins: NDArray[np.float64], residual_bound: float) -> NDArray[np.float64]:
    """Compute the probabilities of both classes by the inverse link of docs/logistic.md.

    With ``s = sigma(margin)`` and C the bound: ``s / (s + C)`` below 1 - C, ``C / (C + 1 - s)``
    above C, s between.

    `margins`, shape (N,): margins.
    `residual_bound`: C in [1/2, 1]; 1 gives the plain sigmoid.

    Returns shape (N, 2): of target 0 and target 1; each computed without cancellation.
    """
    rise = np.exp(-np.abs(margins))
    rarer, likelier = rise / (1.0 + rise), 1.0 / (1.0 + rise)
    tail = rarer < 1.0 - residual_bound
    total = np.where(tail, rarer + residual_bound, 1.0)
    rarer, likelier = rarer / total, np.where(tail, residual_bound, likelier) / total
    positive = margins >= 0
    return np.column_stack(
        [np.where(positive, rarer, likelier), np.where(positive, likelier, rarer)]
    )
