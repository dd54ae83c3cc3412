"""Edges of bins at private quantiles, from noisy counts of records in the cells of a public grid.

Each record is in one cell of each column's grid. With add-remove neighbours the counts of k columns
therefore have L2 sensitivity sqrt(k), whatever the values are. One Gaussian release covers all
counts, and the edges depend only on it and on public bounds.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.data.people import number_groups
from dplasso.encoding.contract import Part
from dplasso.encoding.encoder import PublicEncoder
from dplasso.encoding.levels import Levels
from dplasso.encoding.parts import Bins
from dplasso.encoding.schema import ReleasedEdges, Schema
from dplasso.encoding.suggest import round_up
from dplasso.errors import DataError, ParameterError, shown
from dplasso.fit.records import rows_within_limit
from dplasso.ledger import Ledger, charged, check_affordable, checked_ledger
from dplasso.privacy.accounting import calibrate_mu, gaussian_epsilon
from dplasso.privacy.budget import LARGEST_EPSILON, MOST_EARLIER, Budget
from dplasso.privacy.parameters import (
    RELATIONS,
    check_delta,
    check_epsilon,
    check_neighbors,
    check_positive,
)
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import StatedRelease, make_statement
from dplasso.tuning.estimates import noisy_sums, sums_budget

_CELLS = 128
# Edges within a power of ten near zero; each is at most a third larger than the previous one.
_STEPS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_DECADES = 4
_MOST_BINS = 64
_LARGEST_ROWS = 2**30

Bounds = Mapping[str, tuple[float, float]]


def private_quantiles(
    table: Any,
    schema: Schema,
    bounds: Bounds,
    *,
    epsilon: float,
    delta: float = 1e-6,
    share: float = 0.05,
    bins: int = 10,
    groups: "ArrayLike | None" = None,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    random_state: Any = None,
    ledger: "str | PathLike[str] | Ledger | None" = None,
) -> Schema:
    """Set the edges of bins to private quantiles of a table.

    The `epsilon` of a fit with the resulting schema covers the edges too. The fit adds more noise
    to pay for them, and its statement lists them.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or RecordBatch
        The records.
    schema : Schema
        The schema of the table. The columns in `bounds` get bins with the new edges instead of
        their `Bins` or `Levels`.
    bounds : mapping of str to (float, float)
        For each column, an interval that is publicly known to contain its numbers.
    epsilon : float
        Privacy loss of edges and fit together; pass the same value to the fit.
    delta : float, default=1e-6
        In (0, 1); pass the same value to the fit.
    share : float, default=0.05
        Share of the squared mu of the budget for the edges, between 0 and 0.5.
    bins : int, default=10
        Largest number of bins of a column, from 2 to 64.
    groups : array-like, shape (N,), default=None
        The person each row belongs to. Pass groups both here and to `fit`, or to neither.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation, which must be that of the fit.
    rows_per_person : int, default=1
        Largest number of rows of a person.
    random_state : None, int, Generator or RandomState, default=None
        Any value other than None is for experiments, and the statement says so.
    ledger : path or Ledger, default=None
        The ledger to charge before anything is computed. A fit that charges a ledger needs edges
        that were charged to the same ledger.

    Returns
    -------
    Schema
        The schema with the new edges, and a record of their release in `edges`.

    Raises
    ------
    ValueError
        For a parameter out of range, or a column without bins. Nothing is charged then.
    DataError
        If the table lacks a column, or holds a value that is not a number.
    BudgetError, LedgerError
        If the ledger has too little left or cannot be used. Nothing is charged then.
    """
    grids = quantile_grids(schema, bounds)
    X = PublicEncoder(grids).transform(table)
    if not (isinstance(bins, int) and 2 <= bins <= _MOST_BINS):
        raise ParameterError(f"`bins` must be whole, from 2 to {_MOST_BINS}, got {shown(bins)}")
    budget, sensitivity = edges_budget(
        len(grids.parts), grids.n_features, epsilon, delta, share, neighbors, rows_per_person
    )
    paid = checked_ledger(ledger, epsilon=epsilon, random_state=random_state)
    if X.shape[0] >= _LARGEST_ROWS:
        raise DataError(f"{X.shape[0]:,} rows are too many for one release")
    stream, sigma = random_stream(random_state), sensitivity / budget.mu
    if groups is not None:
        person = number_groups([("groups", groups, X.shape[0])])
        X = X[rows_within_limit(person, rows_per_person)]
    words = "Gaussian noise on the numbers of records in the cells of a public grid"
    by_person = groups is not None
    statement = make_statement(
        budget,
        [StatedRelease("edges", words, {"sensitivity": sensitivity})],
        seeded=random_state is not None,
        classes_declared=True,
        by_person=by_person,
        about="edges",
    )
    columns = tuple(part.columns[0] for part in grids.parts)
    if paid is not None and paid.purpose is None:
        paid = replace(paid, purpose=f"edges of bins: {', '.join(columns)}"[:200])
    check_affordable(paid, budget)
    noisy = np.empty(0)
    with charged(paid, budget, release=lambda: _digest(noisy)):
        counted = np.bincount(X.indices, minlength=grids.n_features).astype(np.int64)
        noisy = noisy_sums(counted << 32, sensitivity, sigma, stream)
    cells = np.split(noisy, grids.offsets[1:-1])
    edges = {
        part.column: _edges_at(own, part.edges, bins, sigma)  # type: ignore[attr-defined]
        for part, own in zip(grids.parts, cells, strict=True)
    }
    released = ReleasedEdges(columns, _digest(noisy), statement, by_person=by_person)
    return _with_edges(schema, edges, released)


def edges_budget(
    n_columns: int,
    n_cells: int,
    epsilon: float,
    delta: float = 1e-6,
    share: float = 0.05,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> tuple[Budget, float]:
    """Return the budget of a release of counts, and the L2 sensitivity of the counts."""
    epsilon = min(check_positive("epsilon", check_epsilon(epsilon)), LARGEST_EPSILON)
    if not 0.0 < share < 0.5:
        raise ParameterError(f"`share` must lie between 0 and 0.5, got {shown(share)}")
    if not RELATIONS[check_neighbors(neighbors)].hides_features:
        raise ParameterError(
            "with `neighbors='label'` features are public, so edges need no noise; use the "
            "quantiles of the table"
        )
    mu = math.sqrt(share) * calibrate_mu(epsilon, check_delta(delta))
    # Replacing a record moves it from one cell of a column to another.
    added = neighbors == "add-remove"
    moved = math.sqrt(n_columns) if added else math.sqrt(2.0 * n_columns) / 2.0
    return sums_budget(
        n_cells,
        math.nextafter(moved, math.inf),
        epsilon=gaussian_epsilon(mu, delta),
        delta=delta,
        neighbors=neighbors,
        rows_per_person=rows_per_person,
    )


def quantile_grids(schema: Schema, bounds: Bounds) -> Schema:
    """Return a schema whose bins are the cells in which records are counted."""
    if schema.edges is not None:
        raise ValueError(
            f"the edges of {', '.join(schema.edges.columns)} were released before; use the "
            "original schema, and pass all columns at once"
        )
    if not bounds:
        raise ParameterError("`bounds` is empty; pass an interval for at least one column of bins")
    binned = [part.column for part in schema.parts if isinstance(part, Bins | Levels)]
    for column, pair in bounds.items():
        if binned.count(column) != 1:
            raise ValueError(f"column {column!r} has no bins in the schema; declare it as bins")
        low, high = pair
        if not (math.isfinite(high - low) and low < high):
            raise ValueError(f"the bounds of {column!r} must be two finite numbers, low < high")
    parts = [Bins(name, _grid(*bounds[name]), missing="ignore") for name in bounds]
    grids = Schema(tuple(parts))
    if grids.n_features >= MOST_EARLIER:
        raise ValueError(f"{len(parts):,} columns are too many for one release; pass fewer")
    return grids


def _grid(low: float, high: float) -> tuple[float, ...]:
    """Return the edges of cells at steps of 1, 2 or 5 times 10^k, with finer cells near zero."""
    step = round_up(0.999 * (high - low) / _CELLS)
    places = {k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)}
    fine = {digit * step * 10.0**-decade for digit in _STEPS for decade in range(-1, _DECADES)}
    whole = low == int(low) and high == int(high) and step >= 1.0
    places |= {sign * edge for edge in fine for sign in (1, -1) if not whole or edge == int(edge)}
    inside = (edge for edge in (*places, low, high) if low <= edge <= high)
    return tuple(sorted({float(f"{edge:.9g}") for edge in inside}))


def _edges_at(
    cells: NDArray[np.float64], grid: tuple[float, ...], bins: int, sigma: float
) -> tuple[float, ...]:
    """Return the edges nearest to the quantiles, or spread evenly if noise hides the total."""
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
    """Return a digest of this release; other releases may result in the same edges."""
    return sha256(noisy.astype("<f8").tobytes()).hexdigest()


def _with_edges(
    schema: Schema, edges: Mapping[str, tuple[float, ...]], released: ReleasedEdges
) -> Schema:
    """Return a schema with new edges, which need no confirmation."""
    parts: list[Part] = []
    marks: list[str] = []
    for part, mark in zip(schema.parts, schema.confirm, strict=True):
        ours = isinstance(part, Bins | Levels) and part.column in edges
        own = Bins(part.column, edges[part.column], part.missing) if ours else part  # type: ignore[attr-defined]
        parts.append(own)
        marks.append("" if ours else mark)
    return replace(schema, parts=tuple(parts), confirm=tuple(marks), edges=released)
