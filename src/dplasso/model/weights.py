"""A model's weights as a table, with names and marks for those that may be noise."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from dplasso.encoding.schema import Schema
from dplasso.gradient_descent.schedule import SIGNIFICANT
from dplasso.model.file import Model
from dplasso.phases.releases import Drawn

BY_NOISE = "noise alone could have picked this"
# Share of runs in which uniform draws may mark any vertex as clear.
_BY_CHANCE = 0.05
_PRINTED = 20
_LONGEST_NAME = 40


class NamedWeight(NamedTuple):
    """A pair; data frames take its field names as column names."""

    name: Any
    weight: float


@dataclass(frozen=True)
class Weights:
    """The weights of a model, one for each column that has one.

    Like a pandas Series it has `index`, `values` and a length, and ``weights["age"]`` is the weight
    of that column. Iteration gives pairs of name and weight. Arrays have shape (k,).

    `columns`: column numbers, from 0.
    `values`: the weights.
    `names`: names of the columns, if the training data had any; otherwise `schema` names them.
    `standard_error`: standard deviation of each weight by the noise alone, if the method has one.
    `steps`: for the LASSO, steps towards the weight's sign minus steps against it.
    `labels`: for more than two classes, the class of each weight; ``weights["age"]`` is that of the
    first.
    `clear`: whether a weight is clear of the noise: beyond three standard errors, or for the LASSO
    chosen more often than uniform draws choose any vertex in 19 of 20 runs. None without noise.
    `correction`: for a fit from a prior, what it added to each weight. Columns that it left as they
    were are not listed.
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    names: NDArray[np.object_] | None = None
    standard_error: NDArray[np.float64] | None = None
    steps: NDArray[np.int64] | None = None
    clear: NDArray[np.bool_] | None = None
    labels: NDArray[Any] | None = None
    schema: Schema | None = None
    correction: NDArray[np.float64] | None = None

    @cached_property
    def index(self) -> NDArray[Any]:
        """Names of the columns, or their numbers where they have none."""
        if self.names is None and self.schema is not None:
            return np.array(self.schema.names(self.columns), dtype=object)
        return self.columns if self.names is None else self.names

    def __len__(self) -> int:
        return int(self.columns.size)

    def __iter__(self) -> Iterator[NamedWeight]:
        return map(NamedWeight, self.index.tolist(), self.values.tolist())

    def __getitem__(self, column: Any) -> float:
        """Return the weight of a column by name, or by number where there are no names."""
        (place,) = np.nonzero(self.index == column)
        if not place.size:
            raise KeyError(f"no column {column!r} has a weight")
        return float(self.values[place[0]])

    def top(self, count: int) -> "Weights":
        """Return the `count` largest by magnitude, largest first."""
        return self.chosen(np.argsort(-np.abs(self.values), kind="stable")[:count])

    def chosen(self, order: NDArray[Any]) -> "Weights":
        """Return the weights at these places, or where a mask is true."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
        return replace(self, **{name: array[order] for name, array in arrays.items()})

    def rows(self) -> list[dict[str, Any]]:
        """Return the weights as JSON holds them.

        ``column`` (from 0), ``name``, ``weight``, ``standard_error``, ``z``, ``steps`` and
        ``clear``, each None where the method or the data have none; of more than two classes also
        ``class``; of a fit that started from a prior also ``correction``.
        """
        error, values, nothing = self.standard_error, self.values, np.full(len(self), None)
        named = self.index is not self.columns
        parts: dict[str, Any] = {
            "column": self.columns,
            "name": np.array([*map(str, self.index)], dtype=object) if named else None,
            "weight": values,
            "standard_error": error,
            "z": None if error is None else values / error,
            "steps": self.steps,
            "clear": self.clear,
        }
        if self.labels is not None:
            parts = {"class": self.labels, **parts}
        if self.correction is not None:
            parts["correction"] = self.correction
        lists = [(nothing if part is None else part).tolist() for part in parts.values()]
        return [dict(zip(parts, row, strict=True)) for row in zip(*lists, strict=True)]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with these rows, indexed by name or number."""
        import pandas as pd

        table = pd.DataFrame(self.rows(), index=self.index)
        return table.drop(columns=["column", "name"], errors="ignore").dropna(axis=1, how="all")

    def __repr__(self) -> str:
        lines = []
        for row in self.top(_PRINTED).rows():
            name = row_name(row, str(row["column"]))
            notes = "" if row["z"] is None else f"  z {row['z']:+.1f}"
            notes += "" if row["steps"] is None else f"  steps {row['steps']}"
            notes += f"  ({BY_NOISE})" if row["clear"] is False else ""
            notes += f"  correction {row['correction']:+.4f}" if "correction" in row else ""
            lines.append(f"{name[:_LONGEST_NAME]:{_LONGEST_NAME}}  {row['weight']:+.4f}{notes}")
        if len(self) > _PRINTED:
            lines.append(f"... and {len(self) - _PRINTED:,} more, smaller")
        return "\n".join(lines) or "(no column has a weight)"


def row_name(row: Mapping[str, Any], number: str) -> str:
    """Return the name of a row of `Weights.rows`, or its number if it has no name."""
    name = number if row["name"] is None else row["name"]
    return f"{row['class']}: {name}" if "class" in row else name


def weights_of(model: Model) -> Weights:
    """Return the weights of every column of a model whose weight is not zero.

    If it started from a prior, the weights of every column that it corrected. The order is by class
    and column; the unit is that of the target in a regression.
    """
    coefficients, _, error = linear_part(model)
    correction = None
    entries = coo_array(coefficients if model.prior is None else model.linear.coefficients)
    outputs, columns = (places.astype(np.int64) for places in entries.coords)
    values = entries.data
    if model.prior is not None:
        correction = entries.data * target_unit(model)[0]
        values = np.asarray(coefficients[outputs, columns]).reshape(-1)
    names = given_names(model)
    weights = Weights(
        columns,
        values,
        names=None if names is None else names[columns],
        labels=model.classes[outputs] if coefficients.shape[0] > 1 else None,
        schema=model.schema,
        correction=correction,
    )
    if error is not None:
        if not error.any():
            return weights
        every = error.shape[-1] == coefficients.shape[1]
        places = columns if every else np.searchsorted(model.linear.columns, columns)
        error = error[outputs, places] if error.ndim == 2 else error[places]
        return replace(weights, standard_error=error, clear=np.abs(values) > SIGNIFICANT * error)
    vertices = model.released.last(Drawn)
    assert vertices is not None, "a model has vertices or weights"
    vertex, place = np.unique(vertices.vertex, return_inverse=True)
    net = np.zeros(vertex.size, dtype=np.int64)
    np.add.at(net, place, vertices.sign.astype(np.int64))
    coordinates = outputs * vertices.per_output + columns
    moved = values if correction is None else correction
    steps = net[np.searchsorted(vertex, coordinates)] * np.sign(moved).astype(np.int64)
    if model.statement.mechanism == "none":
        return replace(weights, steps=steps)
    among = 2 * vertices.n_outputs * vertices.per_output
    return replace(
        weights, steps=steps, clear=steps >= steps_beyond_chance(vertices.vertex.size, among)
    )


def given_names(model: Model) -> NDArray[np.object_] | None:
    """Return the names of all columns, if X or the pipeline named them."""
    made = model.row_steps
    return made.columns if model.feature_names is None and made is not None else model.feature_names


def linear_part(model: Model) -> tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]:
    """Return weights, intercepts and the weights' standard errors, the prior included.

    All are in the target's unit. The errors have shape (k,), for the columns with a weight, or (L,
    k) for L labels; with a prior that of the weights.
    """
    linear, prior = model.linear, model.prior
    coefficients, intercept, error = linear.coefficients, linear.intercept, linear.standard_errors
    if prior is not None:
        slope = linear.prior_slope
        started: Any = prior.weights * slope
        if error is not None:
            noise = 0.0 if prior.standard_error is None else slope * prior.standard_error
            error = np.hypot(errors_of_all(error, model), noise)
        if not isinstance(coefficients, np.ndarray):
            started = csr_array(started)
        coefficients, intercept = coefficients + started, intercept + slope * prior.intercept
    if model.statement.target_bounds is None:
        return coefficients, intercept, error
    half, middle = target_unit(model)
    error = None if error is None else error * half
    return coefficients * half, intercept * half + middle, error


def errors_of_all(error: NDArray[np.float64], model: Model) -> NDArray[np.float64]:
    """Return standard errors of all columns, shape (K, D); 0 for those that do not enter."""
    columns, whole = model.linear.columns, np.zeros(model.linear.coefficients.shape)
    # An empty list of columns means all of them.
    whole[:, columns if columns.size == error.shape[-1] else slice(None)] = error
    return whole


def target_unit(model: Model) -> tuple[float, float]:
    """Return the size of 1 in the target's unit and the target at 0; targets are in [-1, 1]."""
    if model.statement.target_bounds is None:
        return 1.0, 0.0
    low, high = model.statement.target_bounds
    return 0.5 * high - 0.5 * low, 0.5 * low + 0.5 * high


def signs(model: Model) -> str:
    """Say which of two classes a positive weight speaks for; nothing for more classes."""
    first, *others = model.output_labels
    return "" if others or first is None else f"Positive weights speak for {first}."


def count_of(weights: Weights) -> str:
    """Return how many weights are listed, in words."""
    if weights.correction is None:
        return f"{len(weights):,} non-zero weights"
    return f"{len(weights):,} corrections to the public model"


def steps_beyond_chance(n_steps: int, n_vertices: int) -> int:
    """Return how many of T uniform draws must fall on one vertex to rule out chance.

    By the union bound, any vertex gets so many in at most one run of 20. The result is T + 1 if no
    count is rare enough.
    """
    from scipy.special import bdtrc

    beyond = n_vertices * bdtrc(np.arange(n_steps), n_steps, 1.0 / n_vertices)
    return 1 + int(np.count_nonzero(beyond > _BY_CHANCE))


def beyond_by_chance(n_columns: int) -> int:
    """Return how many weights lie beyond three standard errors by noise alone, on average."""
    return round(n_columns * math.erfc(SIGNIFICANT / math.sqrt(2.0)))
