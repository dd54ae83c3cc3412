"""Where margins start: those that a public linear model gives the rows.

The model is public and a margin is a function of its own row, so nothing here needs noise. Margins
are finite whatever the rows and the model hold.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from dplasso.matrix.compressed import Compressed, clip
from dplasso.matrix.unit_rows import Scaling, row_factors
from dplasso.runtime.threads import Threads, even_parts

# Margins are clipped to it, far beyond any that means something; one that is no number counts as 0.
_LARGEST = 2.0**20

# Weights are rarely larger than this in the root of their mean square.
_USEFUL = 4.0


@dataclass(frozen=True)
class StartingModel:
    """A public linear model: `weights`, shape (D, K), in the order of the data; `intercept`."""

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]

    @property
    def loudness(self) -> float:
        """A slope that brings the weights to a size that unit rows have use for; at most 1."""
        size = np.abs(self.weights[self.weights != 0.0])
        if not size.size:
            return 1.0
        # Relative to the largest, squares neither overflow nor vanish.
        largest = float(size.max())
        return min(1.0, _USEFUL / largest / float(np.sqrt(np.mean((size / largest) ** 2))))

    def stretched(self, slope: float, shift: ArrayLike) -> "StartingModel":
        """Return the model whose margins are `slope` times these, and `shift` more."""
        with np.errstate(over="ignore"):
            weights, intercept = self.weights * slope, self.intercept * slope
        largest = np.finfo(np.float64).max
        started = np.clip(intercept, -largest, largest) + np.asarray(shift)
        return StartingModel(np.clip(weights, -largest, largest), started)


def spread(
    halvings: NDArray[np.int8], columns: NDArray[np.int64], n_columns: int
) -> NDArray[np.int8]:
    """Return how often all columns are halved, from that of some; empty for never."""
    if not halvings.size:
        return halvings
    whole = np.zeros(n_columns, dtype=np.int8)
    whole[columns] = halvings
    return whole


@dataclass(frozen=True)
class StartingRows:
    """Rows with all their columns: what their margins start from is a function of these.

    `original`: the columns' numbers in the data, where `rows` has numbers of its own.
    `columns`: those that the records have, ascending; none for all.
    `n_columns`: D of the data.
    """

    rows: Compressed
    original: NDArray[Any]
    columns: NDArray[np.int64]
    n_columns: int

    def factors(self, scaling: Scaling, threads: Threads) -> NDArray[np.float64]:
        """Return what each row's entries are multiplied by, shape (N,): as long as all of it."""
        halvings = scaling.around
        if halvings.size and self.columns.size:
            halvings = spread(halvings, self.columns, self.n_columns)
        if halvings.size and self.original.size:
            halvings = halvings[self.original[: self.n_columns]]
        given = scaling.constant, scaling.norm_bound, threads
        return row_factors(self.rows, *given, halvings)

    def margins(
        self,
        model: StartingModel,
        factor: NDArray[np.float64],
        bound: float | None,
        threads: Threads,
    ) -> NDArray[np.float64]:
        """Return a public model's margins, shape (N, K), finite; entries clipped to `bound`."""
        weights = model.weights
        if self.original.size:
            weights = weights[self.original[: weights.shape[0]]]
        margins = np.empty((factor.size, weights.shape[1]))
        edges = even_parts(self.rows.indptr, threads.count)
        given = np.ascontiguousarray(weights), model.intercept, factor
        bound = np.inf if bound is None else float(bound)
        threads.run(lambda t: _margins(self.rows, edges[t], edges[t + 1], *given, bound, margins))
        return margins


@njit(cache=True, nogil=True)
def _margins(rows, first, last, weights, intercept, factor, bound, margins):
    values, found = rows.values, np.empty(weights.shape[1])
    for i in range(first, last):
        for k in range(found.size):
            found[k] = 0.0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            value = clip(values[p] if values.size else rows.constant, bound)
            j = np.uint64(rows.indices[p])
            for k in range(found.size):
                found[k] += value * weights[j, k]
        for k in range(found.size):
            margins[i, k] = clip(found[k] * factor[i] + intercept[k], _LARGEST)
