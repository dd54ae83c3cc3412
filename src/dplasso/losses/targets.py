"""Targets and weights of records.

A weight multiplies the residual of its record. Kernels clip it to [0, 1], so that a residual stays
within the bound of the loss.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.losses.logistic import round_up
from dplasso.losses.loss import margins_within, tangent_offset
from dplasso.privacy.share import shares
from dplasso.runtime.compilation import kernel

# Fraction bits of a weight in private counts.
PART_BITS = 24
NO_WEIGHTS, NO_OFFSETS = np.zeros(0), np.zeros((0, 0))


class Targets(NamedTuple):
    """Targets and weights of some records.

    `labels`, shape (N,), or (N, L) with a target for each of L labels.
    `weights`, shape (N,): in [0, 1]; empty if all are 1.
    `n_records`: number of records that are not left out, for any weights.
    `offsets`, shape (N, K): finite starting margins, functions of the record's own row and of
    public or released values; empty if all are 0.
    """

    labels: NDArray[np.float64]
    weights: NDArray[np.float64]
    n_records: int
    offsets: NDArray[np.float64] = NO_OFFSETS

    def count_rows(self, *, weighing: bool) -> int:
        """Return the number of records that are not left out.

        With `weighing`, records of weight 0 are not counted: a private count leaves them out,
        because they contribute nothing, and a public number of records includes them.
        """
        return (
            int(np.count_nonzero(self.weights > 0.0))
            if weighing and self.weights.size
            else self.n_records
        )


def targets_of(
    labels: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    within: NDArray[np.bool_] | None = None,
) -> Targets:
    """Return targets; records that are not `within` get label 0 and weight 0.

    `labels`: of the others.
    """
    n_records = len(labels)
    if within is not None:
        entering, labels = labels, np.zeros((within.size, *labels.shape[1:]))
        labels[within] = entering
        weights = np.where(within, 1.0 if weights is None else weights, 0.0)
    return Targets(labels, NO_WEIGHTS if weights is None else weights, n_records)


def count_classes(loss: Any, targets: Targets) -> list[int]:
    """Count the records of each class, or at both ends of an interval.

    A record counts for its weight; in a regression for both ends, so that its target is their mean.
    Returns the counts in units of ``2^-PART_BITS`` records.
    """
    labels, whole = targets.labels, 2.0**PART_BITS
    each = weights_within(targets.weights, labels.size)
    total, *others = (
        shares(part * each * whole, whole).sum().item()
        for part in (np.ones(labels.size), *loss.class_parts(labels))
    )
    return [total - sum(others), *others]


def sum_squares(unit: float, targets: Targets) -> int:
    """Return the sum of ``weight (target^2 - 1/2)``, for targets in [-1, 1], in units."""
    labels = targets.labels
    each = weights_within(targets.weights, labels.size)
    total: int = shares(each * (labels * labels - 0.5) * unit, 0.5 * unit).sum().item()
    return total


def weights_within(weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the weights of `count` records within [0, 1], as `weight_of` does."""
    if not weights.size:
        return np.ones(count)
    return np.where(weights > 0.0, np.minimum(weights, 1.0), 0.0)


@kernel
def weight_of(weights, i):
    """Return the weight of record i, clipped to [0, 1]; 0 for NaN."""
    if weights.size == 0 or weights[i] > 1.0:
        return 1.0
    return weights[i] if weights[i] > 0.0 else 0.0


@register_jitable
def offset_of(offsets, i, k):
    """Return the starting value of margin k of record i."""
    return offsets[i, k] if offsets.shape[0] else 0.0


@kernel
def weighted_margins_within(loss, q, target, weight, offset, tolerance):
    """Return `margins_within` for residuals times `weight`, relative to `offset`."""
    if weight == 0.0 and tolerance > 0.0:
        return np.float32(-np.inf), np.float32(np.inf)
    weight = weight if weight > 0.0 else 1.0
    lowest, highest = margins_within(loss, q / weight, target, tolerance / weight)
    if offset == 0.0:
        return lowest, highest
    return round_up(np.float64(lowest) - offset), -round_up(offset - np.float64(highest))


@kernel
def weighted_tangent_offset(loss, q, target, weight, offset):
    """Return where the tangent of slope q of the weighted loss meets `offset`."""
    if weight == 0.0:
        return 0.0
    return weight * tangent_offset(loss, q / weight, target) + q * offset
