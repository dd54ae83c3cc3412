"""Edges of bins at private quantiles: noisy numbers of records in the cells of a public grid.

Each record is in one cell of each column's grid, so with add-remove neighbours the numbers of
records of k columns move by sqrt(k) in L2 at most, whatever the values are. One Gaussian release
gives all of them; the edges follow from it and from public bounds alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.encoding.contract import Part
from dplasso.encoding.encoder import PublicEncoder
from dplasso.encoding.levels import Levels
from dplasso.encoding.parts import Bins
from dplasso.encoding.schema import ReleasedEdges, Schema
from dplasso.errors import DataError, ParameterError
from dplasso.fit.records import person_numbers, rows_within_limit
from dplasso.ledger import charged, check_affordable, checked_ledger
from dplasso.privacy.accounting import calibrate_mu, gaussian_epsilon
from dplasso.privacy.budget import LARGEST_EPSILON, MOST_EARLIER, Budget, Draws, build_budget
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_neighbors,
    check_positive,
    keeps_labels_alone,
)
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import make_statement
from dplasso.privacy.statement_entries import StatedRelease
from dplasso.tuning.estimates import check_noise, noisy_sums

_CELLS = 128
# Steps within a power of ten, near zero: none is a quarter more than the one before.
_STEPS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_DECADES = 4
_MOST_BINS = 64
_LARGEST_ROWS = 2**30

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class EdgesBudget:
    """What a release of edges costs, whom it protects, and who pays; see `private_quantiles`."""

    epsilon: float
    delta: float = 1e-6
    share: float = 0.05
    neighbors: str = "add-remove"
    rows_per_person: int = 1
    random_state: Any = None
    ledger: Any = None

    def budget(self, n_columns: int, n_cells: int) -> tuple[Budget, float]:
        """Return what the numbers of records in the cells of so many columns cost, as they are.

        And how far the numbers can move between neighbours, in L2.
        """
        epsilon = min(check_positive("epsilon", check_epsilon(self.epsilon)), LARGEST_EPSILON)
        delta = check_delta(self.delta)
        if not 0.0 < self.share < 0.5:
            raise ParameterError(f"`share` must lie between 0 and 0.5, got {self.share!r}")
        if keeps_labels_alone(check_neighbors(self.neighbors)):
            raise ParameterError(
                "with `neighbors='label'` features are public, and edges need no noise; put them "
                "at the quantiles of the table"
            )
        mu = math.sqrt(self.share) * calibrate_mu(epsilon, delta)
        # A record that is replaced leaves one cell of a column and enters another.
        added = self.neighbors == "add-remove"
        moved = math.sqrt(n_columns) if added else math.sqrt(2.0 * n_columns) / 2.0
        budget = build_budget(
            Draws(gaussian=9.0 * (n_cells + 64.0)),
            epsilon=gaussian_epsilon(mu, delta),
            delta=delta,
            n_iter=1,
            neighbors=self.neighbors,
            rows_per_person=self.rows_per_person,
        )
        sensitivity = budget.moved(math.nextafter(moved, math.inf))
        check_noise(sensitivity / budget.mu)
        return budget, sensitivity


def private_quantiles(
    table: Any,
    schema: Schema,
    bounds: Bounds,
    *,
    bins: int = 10,
    groups: "ArrayLike | None" = None,
    **budget: Any,
) -> Schema:
    """Put the edges of bins at private quantiles of a table.

    A fit on rows that the resulting schema encoded covers the edges by its own `epsilon`: its noise
    is as much larger as they cost, and its statement says so.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch
        The records.
    schema : Schema
        Its bins of the columns in `bounds` get other edges, and levels of bins become one; all else
        stays.
    bounds : mapping of str to (float, float)
        By column the interval that its numbers are publicly known to lie in.
    bins : int, default=10
        Most bins of a column, from 2 to 64.
    groups : array-like, shape (N,), default=None
        The person each row belongs to, as in `fit`. A fit with these edges needs groups as well,
        and a fit without groups needs edges without.
    epsilon : float
        The budget of edges and fit together, as the fit will be given it.
    delta : float, default=1e-6
        In (0, 1); likewise.
    share : float, default=0.05
        The part of the budget, of its squared mu, for the edges; between 0 and 0.5.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation, which the fit must share.
    rows_per_person : int, default=1
        Rows of one person, at most.
    random_state : None, int, Generator or RandomState, default=None
        Anything but None is for experiments, and the statement says so.
    ledger : path or Ledger, default=None
        The budget that is charged before anything is computed. A fit with a ledger needs its edges
        charged to the same one.

    Returns
    -------
    Schema
        With the edges, and with `edges`, what is said of them.

    Raises
    ------
    ValueError
        For a parameter out of range, or a column without bins; nothing is charged then.
    DataError
        If the table lacks a column, or holds a value that is not a number.
    BudgetError, LedgerError
        If the ledger has too little left or cannot be used; nothing is spent.
    """
    asked, grids = EdgesBudget(**budget), quantile_grids(schema, bounds)
    return quantiles_of(PublicEncoder(grids).transform(table), schema, grids, bins, groups, asked)


def quantile_grids(schema: Schema, bounds: Bounds) -> Schema:
    """Return a schema whose bins are the cells that records are counted in."""
    if schema.edges is not None:
        raise ValueError(
            f"the edges of {', '.join(schema.edges.columns)} were released before; begin from the "
            "schema without them, and name all columns at once"
        )
    if not bounds:
        raise ParameterError("name at least one column of bins, and the `bounds` of its numbers")
    known = [part.column for part in schema.parts if isinstance(part, Bins | Levels)]
    for column, pair in bounds.items():
        if known.count(column) != 1:
            raise ValueError(f"column {column!r} has no bins in the schema; declare it as bins")
        low, high = pair
        if not (math.isfinite(high - low) and low < high):
            raise ValueError(f"the bounds of {column!r} must be two finite numbers, low < high")
    parts = [Bins(name, _grid(*bounds[name]), missing="ignore") for name in bounds]
    grids = Schema(tuple(parts))
    if grids.n_features >= MOST_EARLIER:
        raise ValueError(f"{len(parts):,} columns are too many for one release")
    return grids


def _grid(low: float, high: float) -> tuple[float, ...]:
    """Return the cells' edges: steps of 1, 2 or 5, and near zero ever smaller ones."""
    width = (high - low) / _CELLS
    power = 10.0 ** math.floor(math.log10(width))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= width * 0.999)
    places = {k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)}
    fine = {digit * step * 10.0**-decade for digit in _STEPS for decade in range(-1, _DECADES)}
    whole = low == int(low) and high == int(high) and step >= 1.0
    places |= {sign * one for one in fine for sign in (1, -1) if not whole or one == int(one)}
    found = sorted({float(f"{one:.9g}") for one in (*places, low, high) if low <= one <= high})
    return tuple(found)


def quantiles_of(
    X: Any, schema: Schema, grids: Schema, bins: int, groups: Any, asked: EdgesBudget
) -> Schema:
    """Return what `private_quantiles` does, of records that `grids` encoded."""
    if not (isinstance(bins, int) and 2 <= bins <= _MOST_BINS):
        raise ParameterError(f"`bins` must be a whole number from 2 to {_MOST_BINS}, got {bins!r}")
    budget, sensitivity = asked.budget(len(grids.parts), grids.n_features)
    ledger = checked_ledger(asked.ledger, epsilon=asked.epsilon, random_state=asked.random_state)
    if X.shape[0] >= _LARGEST_ROWS:
        raise DataError(f"{X.shape[0]:,} rows are too many for one release")
    stream, sigma = random_stream(asked.random_state), sensitivity / budget.mu
    if groups is not None:
        X = X[rows_within_limit(person_numbers(groups, X.shape[0]), asked.rows_per_person)]
    words = "Gaussian noise on the numbers of records in the cells of a public grid"
    statement = make_statement(
        budget,
        [StatedRelease("edges", words, {"sensitivity": sensitivity})],
        seeded=asked.random_state is not None,
        classes_declared=True,
        about="edges",
    )
    columns = tuple(part.columns[0] for part in grids.parts)
    if ledger is not None and ledger.purpose is None:
        ledger = replace(ledger, purpose=f"edges of bins: {', '.join(columns)}"[:200])
    check_affordable(ledger, budget)
    noisy = np.empty(0)
    with charged(ledger, budget, release=lambda: _digest(noisy)):
        counted = np.bincount(X.indices, minlength=grids.n_features).astype(np.int64)
        noisy = noisy_sums(counted << 32, sensitivity, sigma, stream)
    cells = np.split(noisy, grids.offsets[1:-1])
    edges = {
        part.column: _edges_at(own, part.edges, bins, sigma)  # type: ignore[attr-defined]
        for part, own in zip(grids.parts, cells, strict=True)
    }
    told = ReleasedEdges(columns, _digest(noisy), statement, by_person=groups is not None)
    return _with_edges(schema, edges, told)


def _edges_at(
    cells: NDArray[np.float64], grid: tuple[float, ...], bins: int, sigma: float
) -> tuple[float, ...]:
    """Return places of the grid near quantiles, from noisy numbers of records between them.

    Where noise is all that there is, the places are evenly spread over the grid.
    """
    total, below = float(cells.sum()), np.cumsum(cells)[:-1]
    if total <= 3.0 * sigma * math.sqrt(cells.size):
        chosen = np.linspace(0, len(grid) - 1, bins + 1).astype(int)
    else:
        upwards = np.maximum.accumulate(below)
        downwards = np.minimum.accumulate(below[::-1])[::-1]
        rising = 0.5 * (upwards + downwards)
        aims = total * np.arange(1, bins) / bins
        chosen = np.abs(rising[None, :] - aims[:, None]).argmin(axis=1)
    return tuple(grid[k] for k in np.unique(chosen))


def _digest(noisy: NDArray[np.float64]) -> str:
    """Return what tells this release from others, which may come to the same edges."""
    return sha256(noisy.astype("<f8").tobytes()).hexdigest()


def _with_edges(
    schema: Schema, edges: Mapping[str, tuple[float, ...]], told: ReleasedEdges
) -> Schema:
    """Put edges into a schema; they need no confirmation any more."""
    parts: list[Part] = []
    marks: list[str] = []
    for part, mark in zip(schema.parts, schema.confirm, strict=True):
        ours = isinstance(part, Bins | Levels) and part.column in edges
        if isinstance(part, Levels) and ours:
            parts.append(Bins(part.column, edges[part.column], missing=part.missing))
        else:
            parts.append(replace(part, edges=edges[part.column]) if ours else part)  # type: ignore[attr-defined, type-var]
        marks.append("" if ours else mark)
    return replace(schema, parts=tuple(parts), confirm=tuple(marks), edges=told)
