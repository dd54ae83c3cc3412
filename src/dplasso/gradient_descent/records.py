"""The records of a fit by gradient descent: where its sums of gradients come from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store import Store
from dplasso.gradient_descent.blend import Blend
from dplasso.gradient_descent.row_part import GradientPart
from dplasso.gradient_descent.slopes import LinearModel, Margins
from dplasso.losses.contract import without_offset
from dplasso.losses.targets import Targets
from dplasso.matrix.compressed import Compressed, clipped, compress
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.starting import StartingModel, StartingRows
from dplasso.matrix.transpose import transpose
from dplasso.matrix.unit_rows import (
    UnitRows,
    both_orientations,
    constant_entry,
    row_factors,
    select_columns,
    unit_row_margins,
)
from dplasso.runtime.threads import Threads


@dataclass(frozen=True)
class Records:
    """Records that one process holds: X both ways, in the same column numbers.

    `prior`: a public model that margins can start from. Then rows have their unit length in all
    columns of the data, `whole`, also where the records have some of them.
    """

    rows: Compressed
    columns: Compressed
    numbering: Numbering
    loss: Any
    targets: Targets
    threads: Threads
    prior: StartingModel | None = None
    whole: StartingRows | None = None

    @property
    def n_records(self) -> int:
        """N."""
        return self.targets.labels.size

    @property
    def counted(self) -> int:
        """N without records that are left out: the private count."""
        return self.targets.n_records

    @property
    def total_weight(self) -> float:
        """The sum of all weights."""
        return self.targets.total_weight

    @property
    def n_columns(self) -> int:
        """D."""
        return int(self.columns.indptr.size - 1)

    def part(
        self,
        kept: NDArray[np.int64],
        constant: float,
        norm_bound: float | None,
        unit: float,
        start: StartingModel | None = None,
    ) -> GradientPart:
        """Make ready the sums of gradients of unit rows; the first three as in `LinearModel`.

        `unit`: fixed-point units per unit of gradient.
        `start`: the public model that margins start from.
        """
        rows, columns, numbering = self._selected(kept)
        factor = self._factors(rows, constant, norm_bound)
        targets = self.targets
        if self.whole is not None and start is not None:
            offsets = self.whole.margins(start, factor, None, self.threads)
            targets = targets._replace(offsets=offsets)
        data = UnitRows(rows, columns, factor, columns.indptr.size - 1, constant_entry(constant))
        return GradientPart(
            data, self.loss, targets, unit, threads=self.threads, numbering=numbering
        )

    def _factors(
        self, rows: Compressed, constant: float, norm_bound: float | None
    ) -> NDArray[np.float64]:
        """Return what rows of some columns are multiplied by."""
        measured = rows if self.whole is None else self.whole.rows
        return row_factors(measured, constant, norm_bound, self.threads)

    def _selected(self, kept: NDArray[np.int64]) -> tuple[Compressed, Compressed, Numbering]:
        """Return some columns by rows and by columns, and their numbering; none means all."""
        if not kept.size:
            return self.rows, self.columns, self.numbering
        internal = self.numbering.internal
        chosen = internal[kept] if internal.size else kept
        return *select_columns(self.columns, chosen, self.n_records, self.threads.count), AS_GIVEN

    def margins(self, model: LinearModel, start: StartingModel | None = None) -> Margins | Blend:
        """Compute the margins of a model; with a start, those of both, the start's first.

        Of a model without weights, they are those of the start alone.
        """
        rows, _, numbering = self._selected(model.kept)
        original, weights = numbering.original, model.weights
        if model.bound is None:
            factor = self._factors(rows, model.constant, model.norm_bound)
        else:
            rows, factor = clipped(rows, model.bound), np.ones(self.n_records)
        first = None
        if self.whole is not None and start is not None:
            first = self.whole.margins(start, factor, model.bound, self.threads)[:, np.newaxis]
            if not len(weights):
                return Blend(first, self.loss, self.targets, self.threads)
        weights = weights[original[: self.n_columns]] if original.size else weights
        weights = np.ascontiguousarray(weights[:, 0] if weights.shape[1] == 1 else weights)
        margins = unit_row_margins(rows, weights, factor, model.intercept, self.threads)
        margins = margins.reshape(self.n_records, -1)
        if first is not None:
            parts = np.concatenate([first, margins[:, np.newaxis]], axis=1)
            return Blend(parts, self.loss, self.targets, self.threads)
        return Margins(
            margins + self.loss.offset, without_offset(self.loss), self.targets, self.threads
        )


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
    if kept is None or kept.size == X.shape[1]:
        whole = StartingRows(found.rows, found.numbering.original)
    elif isinstance(X, Store):
        whole = StartingRows(X.rows, X.original_column)
    else:
        matrix, by_rows = compress(X)
        rows = matrix if by_rows else transpose(matrix, X.shape[0], threads.count)
        whole = StartingRows(rows, AS_GIVEN.original)
    return replace(found, prior=prior, whole=whole)


def _records_of(
    X: Any,
    loss: Any,
    targets: Targets,
    threads: Threads,
    kept: NDArray[np.int64] | None,
    columns: Compressed | None,
) -> Records:
    if isinstance(X, Store) and kept is None:
        numbering = Numbering(X.internal_column, X.original_column)
        return Records(X.rows, X.columns, numbering, loss, targets, threads)
    chosen = kept
    if isinstance(X, Store):
        columns, chosen = X.columns, X.internal_column[kept]
    if columns is None or chosen is None:
        whole = kept is None or kept.size == X.shape[1]
        rows, columns = both_orientations(X if whole else X[:, kept], threads.count)
    else:
        rows, columns = select_columns(columns, chosen, targets.labels.size, threads.count)
    return Records(rows, columns, AS_GIVEN, loss, targets, threads)
