"""Counts of classes: exact, in parts of a record, of all rows or of those of a partition."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.weighted import Weighted, split_targets
from dplasso.privacy.share import shares

# Bits of a record of a regression that are counted, and of one with a weight.
_PART_BITS, _WEIGHT_BITS = 20, 28


def count_classes(
    loss: Any, targets: NDArray[Any], n_classes: int, *, regression: bool
) -> tuple[list[int], int]:
    """Count the records of each class, or at both ends of an interval.

    `loss`: `Weighted` for targets that carry weights: such a record counts for that part of one.
    `targets`, shape (N,): of the loss.
    `n_classes`: K, 2 for a regression.
    `regression`: whether targets are numbers in [-1, 1]: each counts for both ends, in the parts
    that make it their mean.

    Returns the counts in parts of a record, and how many bits of it they are.
    """
    if isinstance(loss, Weighted):
        given, weights = split_targets(loss, targets)
        whole = 2.0**_WEIGHT_BITS
        parts = shares(weights * whole, whole)
        if regression:
            upper = shares((0.5 + 0.5 * given) * weights * whole, whole).sum()
            return [(parts.sum() - upper).item(), upper.item()], _WEIGHT_BITS
        return [parts[given == k].sum().item() for k in range(n_classes)], _WEIGHT_BITS
    if regression:
        upper = shares((0.5 + 0.5 * targets) * 2.0**_PART_BITS, 2.0**_PART_BITS).sum().item()
        return [(targets.size << _PART_BITS) - upper, upper], _PART_BITS
    return np.bincount(targets, minlength=n_classes).tolist(), 0
