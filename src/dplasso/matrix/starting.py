"""Starting margins, from a public linear model.

A margin is a function of its own row and of public numbers, so it needs no noise.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.matrix.compressed import Compressed
from dplasso.matrix.scaling import Scaling, spread
from dplasso.matrix.unit_rows import row_factors, unit_row_margins
from dplasso.runtime.threads import Threads

# Margins are clipped to this number; NaN becomes 0.
_LARGEST = 2.0**20

# Useful weights have at most this root mean square.
_USEFUL = 4.0
_EVERY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class StartingModel:
    """A public linear model whose weights are scaled by `slope`.

    `weights`, shape (D, K): in the order of the data, times `useful_slope`.
    `intercept`, shape (K,). `slope`: of the original weights.
    `constant`: the constant entry of the unit rows that vertices start from.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    useful_slope: float = 1.0
    slope: float = 1.0
    constant: float = 0.0

    def stretched(self, slope: float, shift: ArrayLike) -> "StartingModel":
        """Return the model whose margins are `slope` times these, plus `shift`."""
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            started = np.clip(self.intercept * slope, -largest, largest) + np.asarray(shift)
        return replace(self, intercept=started, slope=self.slope * slope)


def useful_slope(weights: NDArray[np.float64]) -> float:
    """Return a factor, at most 1, that brings weights to a useful size for unit rows."""
    size = np.abs(weights[weights != 0.0])
    if not size.size:
        return 1.0
    # Squares of ratios to the largest neither overflow nor vanish.
    largest = float(size.max())
    return min(1.0, _USEFUL / largest / float(np.sqrt(np.mean((size / largest) ** 2))))


def last_made(
    known: dict[str, Any], name: str, asked: tuple[Any, ...], make: Callable[[], Any]
) -> Any:
    """Return what was made last under a name if it was asked for alike, else make and keep it."""
    before = known[name][0] if name in known else ()
    # Arrays are mostly the same object.
    same = (a is b or np.array_equal(a, b) for a, b in zip(asked, before, strict=True))
    if name not in known or not all(same):
        # What was made before may be large.
        known.pop(name, None)
        known[name] = asked, make()
    return known[name][1]


@dataclass(frozen=True)
class StartingRows:
    """Rows with all their D columns; `columns` are those of the records, empty for all."""

    rows: Compressed
    n_columns: int
    columns: NDArray[np.int64] = field(default_factory=lambda: _EVERY)
    # The last products with a model's weights, and the last factors of rows. Both are shared by
    # copies with other `columns`.
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    def started(self, model: StartingModel, threads: Threads) -> NDArray[np.float64]:
        """Return the margins of unit rows that vertices start from, shape (N, K)."""
        factor = self.factors(Scaling(_EVERY, model.constant, None), threads)
        return self.margins(model, factor, threads)

    def factors(self, scaling: Scaling, threads: Threads) -> NDArray[np.float64]:
        """Return the factor of each row's entries, by its length in all columns, shape (N,)."""
        scale_exponents = scaling.around
        if scale_exponents.size and self.columns.size:
            scale_exponents = spread(scale_exponents, self.columns, self.n_columns)
        asked = scaling.constant, scaling.norm_bound, scale_exponents
        arguments = self.rows, *asked[:2], threads, scale_exponents
        factors: NDArray[np.float64]
        factors = last_made(self._known, "factors", asked, lambda: row_factors(*arguments))
        return factors

    def margins(
        self,
        model: StartingModel,
        factor: NDArray[np.float64],
        threads: Threads,
    ) -> NDArray[np.float64]:
        """Return the margins of a public model, shape (N, K), finite."""

        def multiplied() -> NDArray[np.float64]:
            n_outputs, ones = model.weights.shape[1], np.ones(self.rows.indptr.size - 1)
            vector = np.ascontiguousarray(model.weights[:, 0] if n_outputs == 1 else model.weights)
            products = unit_row_margins(self.rows, vector, ones, np.zeros(n_outputs), threads)
            return products.reshape(ones.size, n_outputs)

        products = last_made(self._known, "products", (model.weights,), multiplied)
        with np.errstate(over="ignore", invalid="ignore"):
            margins: NDArray[np.float64] = (
                products * (factor * (model.slope / model.useful_slope))[:, np.newaxis]
            )
            margins += model.intercept
        margins[np.isnan(margins)] = 0.0
        np.clip(margins, -_LARGEST, _LARGEST, out=margins)
        return margins
