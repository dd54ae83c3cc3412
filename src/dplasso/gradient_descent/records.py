"""The records of a fit by gradient descent: where its sums of gradients come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store import Store
from dplasso.gradient_descent.row_part import GradientPart
from dplasso.gradient_descent.slopes import LinearModel, Margins, offset_of
from dplasso.losses.weighted import count_records
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.margins import clipped
from dplasso.matrix.numbering import AS_GIVEN, Numbering
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
    """Records that one process holds.

    `rows`, `columns`: X both ways, in the same column numbers.
    `numbering`: of the columns.
    `loss`: Logistic, Squared or Multinomial.
    `labels`, shape (N,): the targets: 0 or 1, numbers of classes, or numbers in [-1, 1].
    `threads`: of the run.
    """

    rows: Compressed
    columns: Compressed
    numbering: Numbering
    loss: Any
    labels: NDArray[Any]
    threads: Threads

    @property
    def n_records(self) -> int:
        """N."""
        return int(self.labels.size)

    @property
    def counted(self) -> int:
        """N without records that are left out: the private count."""
        return int(count_records(self.loss, self.labels))

    @property
    def n_columns(self) -> int:
        """D."""
        return int(self.columns.indptr.size - 1)

    def part(
        self, kept: NDArray[np.int64], constant: float, norm_bound: float | None, unit: float
    ) -> GradientPart:
        """Make ready the sums of gradients of rows that are unit rows of some columns.

        `kept`: the columns, ascending; none for all.
        `constant`, `norm_bound`: as in `dplasso.matrix.unit_rows.row_factors`.
        `unit`: fixed-point units per unit of gradient.
        """
        rows, columns, numbering = self._selected(kept)
        factor = row_factors(rows, constant, norm_bound, self.threads)
        data = UnitRows(rows, columns, factor, columns.indptr.size - 1, constant_entry(constant))
        return GradientPart(
            data, self.loss, self.labels, unit, threads=self.threads, numbering=numbering
        )

    def _selected(self, kept: NDArray[np.int64]) -> tuple[Compressed, Compressed, Numbering]:
        """Return some columns by rows and by columns, and their numbering; none means all."""
        if not kept.size:
            return self.rows, self.columns, self.numbering
        internal = self.numbering.internal
        chosen = internal[kept] if internal.size else kept
        return *select_columns(self.columns, chosen, self.n_records, self.threads.count), AS_GIVEN

    def margins(self, model: LinearModel) -> Margins:
        """Compute the margins of a model."""
        rows, _, numbering = self._selected(model.kept)
        original = numbering.original
        if model.bound is None:
            factor = row_factors(rows, model.constant, model.norm_bound, self.threads)
        else:
            rows, factor = clipped(rows, model.bound), np.ones(self.n_records)
        weights = model.weights[original[: self.n_columns]] if original.size else model.weights
        one = self.loss.n_outputs == 1
        margins = unit_row_margins(
            rows,
            np.ascontiguousarray(weights[:, 0] if one else weights),
            factor,
            model.intercept[0] if one else model.intercept,
            self.threads,
        )
        return Margins(
            margins.reshape(self.n_records, -1) + offset_of(self.loss),
            self.loss,
            self.labels,
            self.threads,
        )


def records_of(
    X: Any,
    loss: Any,
    labels: NDArray[Any],
    threads: Threads,
    kept: NDArray[np.int64] | None = None,
    columns: Compressed | None = None,
) -> Records:
    """Lay out a matrix, or take a store as it is.

    `X`, shape (N, D): a store, or a matrix in memory as `dplasso.matrix.compressed.compress`
    takes it.
    `loss`, `labels`, `threads`: as in `Records`.
    `kept`: the columns that the records are to have, ascending; by default all.
    `columns`: X by columns, where there is a matrix in memory in that layout already.
    """
    if isinstance(X, Store) and kept is None:
        numbering = Numbering(X.internal_column, X.original_column)
        return Records(X.rows, X.columns, numbering, loss, labels, threads)
    chosen = kept
    if isinstance(X, Store):
        columns, chosen = X.columns, X.internal_column[kept]
    if columns is None or chosen is None:
        whole = kept is None or kept.size == X.shape[1]
        rows, columns = both_orientations(X if whole else X[:, kept], threads.count)
    else:
        rows, columns = select_columns(columns, chosen, labels.size, threads.count)
    return Records(rows, columns, AS_GIVEN, loss, labels, threads)
