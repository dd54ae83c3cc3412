"""Reference categories: the column of each one-hot group that gets no coefficient.

The columns of a whole group add up to the constant entry, so only differences between their
coefficients are identified. Leaving out one column makes the others differences from it. The sums
of the other columns are then the entries that remain: this costs no privacy.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dplasso.matrix.triangles import symmetric
from dplasso.phases.moments import Moments

OneHot = Sequence[Sequence[int]]
"""The columns of each group of indicators, of which a record has at most one."""

# A group is not whole if the curvature along its direction is beyond so many times the edge of the
# noise: some records then have none of its columns, and these are the reference already.
_BEYOND = 2.0
# The same part of the largest entry of the curvature, for sums without noise.
_ROUNDING = 1e-6


def with_references(moments: Moments, groups: OneHot) -> Moments:
    """Return the sums with a reference category for each whole group.

    The reference is the column with the largest curvature, usually the most frequent one. The
    weights become differences from it, which leaves margins as they are.
    """
    if not moments.constant:
        # Without an intercept, a group stands for it.
        return moments
    size = moments.weights.size
    curvature, weights = symmetric(moments.curvature, size), moments.weights.copy()
    least = max(moments.edge(size), _ROUNDING * float(np.abs(curvature).max()))
    references = []
    for group in groups:
        columns = np.asarray(group, dtype=np.int64)
        if columns.size < 2 or _along(moments, curvature, columns) > _BEYOND * least:
            continue
        reference = int(columns[np.argmax(np.diag(curvature)[columns])])
        shift = float(weights[reference])
        weights[columns] -= shift
        weights[-1] += shift * moments.entry_scale / moments.constant
        references.append(reference)
    return replace(moments, weights=weights, references=np.array(sorted(references), np.int64))


def _along(moments: Moments, curvature: NDArray[np.float64], columns: NDArray[np.int64]) -> float:
    """Return the curvature along the direction in which a whole group changes no margin."""
    direction = np.zeros(moments.weights.size)
    direction[columns] = 1.0 / moments.entry_scale
    direction[-1] = -1.0 / moments.constant
    direction /= math.sqrt(float(direction @ direction))
    return float(direction @ curvature @ direction)
