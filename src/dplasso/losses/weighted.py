"""Records that count for less than a whole one: any loss, times a weight in [0, 1] per record.

A record's weight travels in its target, so that every solver carries it without knowing of it: the
whole part of the number stands for the target, twice the fraction is the weight. The kernels take a
weight for 1 at most, so a residual stays within the bound of the loss whatever a number says. A
record that is left out, but cannot be taken from a store, is -1: it has no weight and is not
counted.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.contract import (
    gradient,
    margins_within,
    probability,
    register,
    register_vector,
    residual_vector,
    tangent_offset,
    value,
)

# Targets of a regression lie on a grid of so many steps between -1 and 1.
_STEPS = 2.0**26


class Weighted(NamedTuple):
    """A loss of records with weights.

    Attributes
    ----------
    loss : NamedTuple
        The loss of a record of weight 1.
    lowest, unit : float
        A number n stands for the target ``lowest + unit * floor(n)``; classes for themselves.
    """

    loss: Any
    lowest: float = 0.0
    unit: float = 1.0

    @property
    def residual_bound(self) -> float:
        """C of the loss, since no weight exceeds 1."""
        return float(self.loss.residual_bound)

    @property
    def n_outputs(self) -> int:
        """Margins of a record."""
        return int(self.loss.n_outputs)

    @property
    def curvature(self) -> float:
        """That of a record of weight 1."""
        return float(self.loss.curvature)


def weighted(loss: Any, *, regression: bool) -> Weighted:
    """Return a loss whose targets are those of `weighted_targets`.

    `loss`: of a record of weight 1.
    `regression`: whether targets are numbers in [-1, 1], not classes.
    """
    return Weighted(loss, -1.0, 2.0 / _STEPS) if regression else Weighted(loss)


def weighted_targets(
    targets: NDArray[Any],
    weights: NDArray[np.float64] | None,
    *,
    regression: bool,
    within: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Put weights into targets.

    `targets`, shape (N,): numbers of classes, or numbers in [-1, 1].
    `weights`, shape (N,): in [0, 1]; None for 1 each.
    `regression`: whether targets are numbers in [-1, 1]; then they are rounded to a grid of 2^-25.
    `within`, shape (N,): which records are not left out; by default all.

    Returns shape (N,).
    """
    whole = np.rint((targets + 1.0) * (_STEPS / 2.0)) if regression else targets
    carried: NDArray[np.float64] = whole + 0.5 * (1.0 if weights is None else weights)
    return carried if within is None else np.where(within, carried, -1.0)


def count_records(loss: Any, targets: NDArray[Any]) -> int:
    """Return how many records are not left out, whatever their weights."""
    if isinstance(loss, Weighted):
        return int(np.count_nonzero(targets >= 0.0))
    return int(targets.size)


def split_targets(
    loss: Weighted, carried: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the targets and the weights that numbers carry, each of shape (N,)."""
    whole = np.floor(carried)
    return loss.lowest + loss.unit * whole, np.minimum(2.0 * (carried - whole), 1.0)


@njit(cache=True, nogil=True)
def target_of(loss, carried):
    """Return the target that a number carries."""
    return loss.lowest + loss.unit * np.floor(carried)


@njit(cache=True, nogil=True)
def weight_of(carried):
    """Return the weight that a number carries, in [0, 1]."""
    return min(2.0 * (carried - np.floor(carried)), 1.0)


@njit(cache=True, nogil=True)
def weighted_gradient(loss, margin, carried):
    """Return the residual times the weight."""
    return weight_of(carried) * gradient(loss.loss, margin, target_of(loss, carried))


@njit(cache=True, nogil=True)
def weighted_margins_within(loss, q, carried, tolerance):
    """Return the ends of the interval of margins whose residual is within `tolerance` of q."""
    weight = weight_of(carried)
    if weight == 0.0 and tolerance > 0.0:
        return np.float32(-np.inf), np.float32(np.inf)
    weight = weight if weight > 0.0 else 1.0
    return margins_within(loss.loss, q / weight, target_of(loss, carried), tolerance / weight)


@njit(cache=True, nogil=True)
def weighted_value(loss, margin, carried):
    """Return the loss times the weight."""
    return weight_of(carried) * value(loss.loss, margin, target_of(loss, carried))


@njit(cache=True, nogil=True)
def weighted_tangent_offset(loss, q, carried):
    """Return where the tangent of slope q meets margin zero."""
    weight = weight_of(carried)
    if weight == 0.0:
        return 0.0
    return weight * tangent_offset(loss.loss, q / weight, target_of(loss, carried))


@njit(cache=True, nogil=True)
def weighted_probability(loss, margin):
    """Return what a margin says of the target, whatever the weights were."""
    return probability(loss.loss, margin)


@njit(cache=True, nogil=True)
def weighted_residuals(loss, margins, carried, residuals):
    """Set `residuals` to those of a record with several margins, times its weight."""
    weight = weight_of(carried)
    residual_vector(loss.loss, margins, target_of(loss, carried), residuals)
    for k in range(residuals.size):
        residuals[k] *= weight


register(
    Weighted,
    weighted_gradient,
    weighted_margins_within,
    weighted_value,
    weighted_tangent_offset,
    weighted_probability,
)
register_vector(Weighted, weighted_residuals)
