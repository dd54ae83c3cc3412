"""The records of a fit by gradient descent: where its sums of gradients come from."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store import Store
from dplasso.gradient_descent.energies import (
    N_SIZES,
    NO_LOADS,
    column_energies,
    row_sizes,
    tile_energies,
)
from dplasso.gradient_descent.row_part import GradientPart
from dplasso.gradient_descent.slopes import LONGEST, LinearModel, Margins
from dplasso.losses.contract import without_offset
from dplasso.losses.targets import Targets
from dplasso.matrix.compressed import Compressed, clipped
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.starting import StartingModel, StartingRows
from dplasso.matrix.tiles import Tiles, lay_tiles
from dplasso.matrix.unit_rows import (
    Scaling,
    UnitRows,
    by_rows,
    constant_entry,
    keep_columns,
    parts_within,
    row_factors,
    select_columns,
    unit_row_margins,
)
from dplasso.runtime.threads import Threads, cut


@dataclass(frozen=True)
class Records:
    """Records that one process holds.

    `columns`: X by columns, in the same numbers, as a store has it; None for a matrix in memory.
    `prior`: a public model that margins can start from. Then rows have their unit length in all
    columns of the data, `whole`, also where the records have some of them.
    """

    rows: Compressed
    columns: Compressed | None
    n_columns: int
    numbering: Numbering
    loss: Any
    targets: Targets
    threads: Threads
    prior: StartingModel | None = None
    whole: StartingRows | None = None
    # The unit rows that were asked for last, and the scaling's bytes.
    _last: list[Any] = field(default_factory=list, init=False, repr=False)

    @property
    def n_records(self) -> int:
        """N."""
        return len(self.targets.labels)

    @property
    def counted(self) -> int:
        """N without records that are left out: the private count."""
        return self.targets.n_records

    @property
    def total_weight(self) -> float:
        """The sum of all weights."""
        return self.targets.total_weight

    @cached_property
    def _tiles(self) -> Tiles:
        return self._in_tiles(self.rows, self.n_columns)

    def _in_tiles(self, rows: Compressed, n_columns: int) -> Tiles:
        return lay_tiles(rows, n_columns, self.loss.n_outputs, self.threads)

    def part(
        self, scaling: Scaling, unit: float, start: StartingModel | None = None
    ) -> GradientPart:
        """Make ready the sums of gradients of unit rows.

        `unit`: fixed-point units per unit of gradient.
        `start`: the public model that margins start from.
        """
        data, numbering = self._unit_rows(scaling)
        targets = self.targets
        if self.whole is not None and start is not None:
            offsets = self.whole.margins(start, data.factor * scaling.reach, None, self.threads)
            targets = targets._replace(offsets=offsets)
        if scaling.reach < 1.0:
            targets = targets._replace(weights=self._weights(data, scaling.constant))
        return GradientPart(
            data, self.loss, targets, unit, threads=self.threads, numbering=numbering
        )

    def energies(
        self, scaling: Scaling, unit: float, loads: NDArray[np.int64] = NO_LOADS
    ) -> NDArray[np.int64]:
        """Return the energies of the columns of unit rows, then counts of rows by `loads`."""
        data, numbering = self._unit_rows(scaling)
        totals = np.empty(data.n_columns + N_SIZES, dtype=np.int64)
        columns, sizes = totals[: data.n_columns], totals[data.n_columns :]
        known, edges = (data.halvings, data.factor), cut(0, data.n_columns, self.threads.count)

        def some(t: int) -> None:
            if isinstance(data.columns, Tiles):
                for b in range(t, data.columns.n_blocks, self.threads.count):
                    own = columns[b * data.columns.width : (b + 1) * data.columns.width]
                    tile_energies(data.columns, b, *known, self.targets, unit, own)
                return
            span = edges[t], edges[t + 1]
            column_energies(data.columns, *known, self.targets, unit, *span, columns[slice(*span)])

        self.threads.run(some)
        sizes[:] = 0
        if loads.size and numbering.original.size:
            loads = loads[numbering.original[: data.n_columns]]
        row_sizes(data.rows, loads, self.targets, unit, 0, self.n_records, sizes)
        if numbering.internal.size:
            columns[:] = columns[numbering.internal[: data.n_columns]]
        return totals

    def _unit_rows(self, scaling: Scaling) -> tuple[UnitRows, Numbering]:
        """Return unit rows of the columns that are kept, or of all, and their numbering."""
        arrays = scaling.kept, scaling.halvings, scaling.around
        asked = (
            scaling.constant,
            scaling.norm_bound,
            scaling.reach,
            *(array.tobytes() for array in arrays),
        )
        if not self._last or self._last[0] != asked:
            self._last[:] = asked, self._made_unit_rows(scaling)
        made: tuple[UnitRows, Numbering] = self._last[1]
        return made

    def _made_unit_rows(self, scaling: Scaling) -> tuple[UnitRows, Numbering]:
        rows, numbering = self._selected(scaling.kept)
        size = scaling.kept.size or self.n_columns
        constant, halvings = scaling.constant, scaling.halvings
        if halvings.size and numbering.original.size:
            halvings = halvings[numbering.original[:size]]
        if self.whole is None:
            factor = row_factors(rows, constant, scaling.norm_bound, self.threads, halvings)
        else:
            factor = self.whole.factors(scaling, self.threads) / scaling.reach
        columns: Compressed | Tiles
        if scaling.kept.size:
            columns = self._in_tiles(rows, size)
        else:
            columns = self._tiles if self.columns is None else self.columns
        return UnitRows(rows, columns, factor, size, constant_entry(constant), halvings), numbering

    def _weights(self, data: UnitRows, constant: float) -> NDArray[np.float64]:
        """Return weights with which no row pulls with more than a unit row does, shape (N,)."""
        parts, given = parts_within(data, constant, self.threads), self.targets.weights
        return parts * np.clip(np.nan_to_num(given), 0.0, 1.0) if given.size else parts

    def _selected(self, kept: NDArray[np.int64]) -> tuple[Compressed, Numbering]:
        """Return rows of some columns and their numbering; none means all."""
        if not kept.size:
            return self.rows, self.numbering
        if self.columns is None:
            return keep_columns(self.rows, kept, self.n_columns, self.threads), AS_GIVEN
        chosen = self.numbering.internal[kept]
        return select_columns(self.columns, chosen, self.n_records, self.threads.count)[0], AS_GIVEN

    def margins(self, model: LinearModel, start: StartingModel | None = None) -> Margins:
        """Compute the margins of a model; with a start, those of both, the start's first.

        Of a model without weights, they are those of the start alone.
        """
        if model.bound is None:
            (rows, _, factor, *_), numbering = self._unit_rows(model.scaling)
        else:
            rows, numbering = self._selected(model.scaling.kept)
            rows, factor = clipped(rows, model.bound), np.ones(self.n_records)
        first = None
        if self.whole is not None and start is not None:
            length = factor * model.scaling.reach
            first = self.whole.margins(start, length, model.bound, self.threads)[:, np.newaxis]
            if not len(model.weights):
                return Margins(first, self.loss, self.targets, self.threads, LONGEST)
        original, weights = numbering.original, model.weights
        weights = weights[original[: self.n_columns]] if original.size else weights
        weights = np.ascontiguousarray(weights[:, 0] if weights.shape[1] == 1 else weights)
        margins = unit_row_margins(rows, weights, factor, model.intercept, self.threads)
        margins = margins.reshape(self.n_records, 1, self.loss.n_outputs)
        known = self.targets, self.threads
        if first is not None:
            parts = np.concatenate([first, margins], axis=1)
            return Margins(parts, self.loss, *known, LONGEST)
        return Margins(margins + self.loss.offset, without_offset(self.loss), *known)


def records_of(
    X: Any,
    loss: Any,
    targets: Targets,
    threads: Threads,
    kept: NDArray[np.int64] | None = None,
    columns: Compressed | None = None,
    prior: StartingModel | None = None,
) -> Records:
    """Lay out a matrix in memory, or take a store as it is.

    `kept`: the columns that the records are to have, ascending; by default all.
    `columns`: X by columns, where a matrix in memory has that layout already.
    `prior`: a public model that margins can start from.
    """
    found = _records_of(X, loss, targets, threads, kept, columns)
    if prior is None:
        return found
    rows, original = found.rows, found.numbering.original
    own: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    if kept is not None and kept.size < X.shape[1]:
        own = kept
        if isinstance(X, Store):
            rows, original = X.rows, X.original_column
        else:
            rows = by_rows(X, threads.count)
    whole = StartingRows(rows, original, own, int(X.shape[1]))
    return replace(found, prior=prior, whole=whole)


def _records_of(
    X: Any,
    loss: Any,
    targets: Targets,
    threads: Threads,
    kept: NDArray[np.int64] | None,
    columns: Compressed | None,
) -> Records:
    size, common = X.shape[1] if kept is None else kept.size, (loss, targets, threads)
    if isinstance(X, Store) and kept is None:
        numbering = Numbering(X.internal_column, X.original_column)
        return Records(X.rows, X.columns, size, numbering, *common)
    chosen = kept
    if isinstance(X, Store):
        columns, chosen = X.columns, X.internal_column[kept]
    if columns is None or chosen is None:
        rows = by_rows(X if kept is None or size == X.shape[1] else X[:, kept], threads.count)
    else:
        rows, _ = select_columns(columns, chosen, len(targets.labels), threads.count)
    return Records(rows, None, size, AS_GIVEN, *common)
