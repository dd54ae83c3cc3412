"""What the records of a fit are to teach: their targets, and how much each of them counts.

A weight multiplies its record's residual. The kernel takes it for a number in [0, 1], so that a
residual stays within the bound of the loss whatever a weight says.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.losses.contract import margins_within, tangent_offset
from dplasso.losses.logistic import round_up
from dplasso.privacy.share import shares

# Bits of a record that are counted.
_PART_BITS = 24
NO_WEIGHTS, NO_OFFSETS = np.zeros(0), np.zeros((0, 0))


class Targets(NamedTuple):
    """The targets of some records; the table of `dplasso.losses.contract` says what they are.

    `labels`, shape (N,), or (N, L) where a record has a target for each of L labels.
    `weights`, shape (N,): what each record counts, in [0, 1]; empty where each counts 1.
    `n_records`: the records that are not left out, whatever their weights.
    `offsets`, shape (N, K): where each record's margins start, finite, by its own row and what is
    public or released; empty where all start at 0.
    """

    labels: NDArray[np.float64]
    weights: NDArray[np.float64]
    n_records: int
    offsets: NDArray[np.float64] = NO_OFFSETS

    def count_rows(self, *, weighing: bool) -> int:
        """Return how many records are not left out, or of these only those of a weight above 0.

        A record of weight 0 counts for nothing, so a private count leaves it out too. Where the
        number of records is public, it is that of all.
        """
        return (
            int(np.count_nonzero(self.weights > 0.0))
            if weighing and self.weights.size
            else self.n_records
        )

    @property
    def total_weight(self) -> float:
        """The sum of all weights."""
        return float(self.weights.sum()) if self.weights.size else float(self.n_records)


def targets_of(
    labels: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    within: NDArray[np.bool_] | None = None,
) -> Targets:
    """Put targets and weights, in [0, 1], together.

    `within`, shape (N,): which records are not left out; the others are neither weighted nor
    counted.
    """
    n_records = len(labels) if within is None else int(np.count_nonzero(within))
    if within is not None:
        weights = np.where(within, 1.0 if weights is None else weights, 0.0)
    return Targets(labels, NO_WEIGHTS if weights is None else weights, n_records)


def count_classes(loss: Any, targets: Targets) -> tuple[list[int], int]:
    """Count the records of each class, or at both ends of an interval.

    A record counts for its weight; in a regression for both ends, in the parts that make its target
    their mean. Returns the counts in parts of a record, and how many bits of it they are.
    """
    labels, weights = targets.labels, targets.weights
    # As the kernels take them: no product overflows before `shares` enforces the bound.
    each = np.clip(weights, 0.0, 1.0) if weights.size else np.ones(labels.size)
    whole = 2.0**_PART_BITS
    total, *others = (
        shares(part * each * whole, whole).sum().item()
        for part in (np.ones(labels.size), *loss.class_parts(labels))
    )
    return [total - sum(others), *others], _PART_BITS


@njit(cache=True, nogil=True)
def weight_of(weights, i):
    """Return what record i counts: its weight, within [0, 1]; 0 for NaN."""
    if weights.size == 0 or weights[i] > 1.0:
        return 1.0
    return weights[i] if weights[i] > 0.0 else 0.0


@register_jitable
def offset_of(offsets, i, k):
    """Return where margin k of record i starts."""
    return offsets[i, k] if offsets.shape[0] else 0.0


@njit(cache=True, nogil=True)
def weighted_margins_within(loss, q, target, weight, offset, tolerance):
    """Return the ends of the margins whose residual times `weight` is within `tolerance` of q.

    Margins are counted from the record's own `offset`.
    """
    if weight == 0.0 and tolerance > 0.0:
        return np.float32(-np.inf), np.float32(np.inf)
    weight = weight if weight > 0.0 else 1.0
    lowest, highest = margins_within(loss, q / weight, target, tolerance / weight)
    if offset == 0.0:
        return lowest, highest
    return round_up(np.float64(lowest) - offset), -round_up(offset - np.float64(highest))


@njit(cache=True, nogil=True)
def weighted_tangent_offset(loss, q, target, weight, offset):
    """Return where the tangent of slope q of the loss times `weight` meets the margin `offset`."""
    if weight == 0.0:
        return 0.0
    return weight * tangent_offset(loss, q / weight, target) + q * offset
