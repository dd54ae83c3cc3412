"""A number's effect as one curve: the bins of all levels together, with the noise in them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.levels import Levels
from dplasso.encoding.schema import Schema
from dplasso.gradient_descent.schedule import SIGNIFICANT
from dplasso.matrix.scaling import SCALES
from dplasso.model.file import Model
from dplasso.model.linear import reading_for
from dplasso.model.weights import errors_of_all, linear_part


@dataclass(frozen=True)
class Curve:
    """The effect of a number on the margin of a typical row, centred over the bins.

    A typical row has one entry in each part of the schema, and the usual length of rows. A larger
    margin makes the class likelier; in a regression the margin is the target.

    `column`: the column of the table.
    `label`: the class whose margin it is; None for a regression.
    `edges`, shape (m + 1,): of the bins. Numbers beyond the ends belong to the first and last bin.
    `effect`, shape (m,): of the numbers in each bin.
    `standard_error`, shape (m,): of each effect by the noise alone, if the method has them.
    `log_scale`: whether steps grow with the size of the number.
    """

    column: str
    label: Any
    edges: NDArray[np.float64]
    effect: NDArray[np.float64]
    standard_error: NDArray[np.float64] | None
    log_scale: bool = False

    @property
    def band(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The effect less and plus three standard errors of the noise."""
        error = 0.0 if self.standard_error is None else SIGNIFICANT * self.standard_error
        return self.effect - error, self.effect + error

    @property
    def name(self) -> str:
        """The column, with the class where there are several curves of it."""
        return self.column if self.label is None else f"{self.column}: {self.label}"

    def rows(self) -> list[dict[str, Any]]:
        """Return the bins as JSON holds them: ``low``, ``high``, ``effect``, ``standard_error``."""
        errors = np.full(self.effect.size, None) if (own := self.standard_error) is None else own
        names = "low", "high", "effect", "standard_error"
        parts = self.edges[:-1], self.edges[1:], self.effect, errors
        each = zip(*(part.tolist() for part in parts), strict=True)
        return [dict(zip(names, row, strict=True)) for row in each]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with these rows."""
        import pandas as pd

        return pd.DataFrame(self.rows())


def curves_of(model: Model) -> list[Curve]:
    """Return a curve for each number in bins on several levels, and each of several classes."""
    schema = model.schema
    if schema is None or not any(isinstance(part, Levels) for part in schema.parts):
        return []
    coefficients, _, error = linear_part(model)
    weights = coefficients if isinstance(coefficients, np.ndarray) else coefficients.toarray()
    errors = None if error is None else errors_of_all(error, model)
    factor = typical_factor(model, schema)
    curves = []
    for part, offset in zip(schema.parts, schema.offsets, strict=False):
        if isinstance(part, Levels):
            levels = _entered(part, offset, model.linear.columns)
            for output, label in enumerate(model.output_labels):
                own = None if errors is None else factor * errors[output]
                curve = _merged(part, offset, levels, factor * weights[output], own)
                curves.append(Curve(part.column, label, *curve, part.spacing != "equal"))
    return curves


def typical_factor(model: Model, schema: Schema) -> float:
    """Return what the entries of a typical row are multiplied by.

    The row has one entry in each slot of the schema that enters the model; its scale is the mean of
    the slot's column scales by energy.
    """
    reading, bound = reading_for(model)
    if bound is not None:
        return 1.0
    scales, energies = np.ones(schema.n_features), np.ones(schema.n_features)
    kept: Any = reading.kept if reading.kept.size else slice(None)
    if reading.scale_exponents.size:
        scales[kept] = SCALES[reading.scale_exponents]
        energies[kept] = np.maximum(1e-9, model.released.energies)
    if reading.kept.size:
        left_out = np.ones(schema.n_features, np.bool_)
        left_out[reading.kept] = False
        energies[left_out] = 0.0
    square = 0.0
    for first, last, entries in schema.slots:
        own = energies[first:last]
        if own.any():
            square += entries * float(own @ scales[first:last] ** 2 / own.sum())
    longest, root = math.sqrt(1.0 - reading.constant**2), math.sqrt(square or 1.0)
    return longest / root if reading.norm_bound is None else longest / max(reading.norm_bound, root)


def _entered(part: Levels, offset: int, columns: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the levels that may have weights, and their first columns."""
    pairs = [
        (level, offset + start) for level, start in zip(part.levels, part.starts, strict=False)
    ]
    if not columns.size:
        return pairs
    entered = [
        (level, first)
        for level, first in pairs
        if np.searchsorted(columns, first) < np.searchsorted(columns, first + level)
    ]
    return entered or pairs[:1]


def _merged(
    part: Levels,
    offset: int,
    levels: list[tuple[int, int]],
    weights: NDArray[np.float64],
    errors: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Return edges of the finest bins, the sum of their levels' weights, and its error."""
    # The linear feature has steps at the finest bins, even if these do not enter.
    finest = part.levels[-1] if part.linear else levels[-1][0]
    linear = offset + part.starts[-1]
    effect, variance = np.zeros(finest), np.zeros(finest)
    for level, first in levels:
        own = weights[first : first + level]
        effect += np.repeat(own - own.mean(), finest // level)
        if errors is not None:
            squares = errors[first : first + level] ** 2
            # The variance of a weight minus the mean of its level.
            centred = squares * (1.0 - 2.0 / level) + squares.sum() / level**2
            variance += np.repeat(centred, finest // level)
    if part.linear:
        effect += weights[linear] * part.scores
        if errors is not None:
            variance += (errors[linear] * part.scores) ** 2
    return part.edges(finest), effect, None if errors is None else np.sqrt(variance)
