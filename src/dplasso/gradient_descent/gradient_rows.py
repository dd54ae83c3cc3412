"""The records of a fit by gradient descent, and the sums of gradients over them.

The records are all rows in one process, or one partition. A partition keeps no state between steps.
It receives weights and returns integer sums, whose total does not depend on the partition.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store import Store
from dplasso.gradient_descent.energies import N_SIZES, NO_LOADS
from dplasso.gradient_descent.magnitudes import N_MAGNITUDES
from dplasso.gradient_descent.margins import LONGEST, LinearModel, Margins, leave_out
from dplasso.gradient_descent.row_sums import (
    Units,
    add_named_sums,
    count_along,
    row_entries,
    row_magnitudes,
    row_moments,
    row_sizes,
    tile_energies,
)
from dplasso.gradient_descent.steps import GradientPart
from dplasso.losses.loss import without_offset
from dplasso.losses.targets import Targets, weights_within
from dplasso.matrix.centring import centred_rows
from dplasso.matrix.compressed import Compressed, Make
from dplasso.matrix.geometry import Geometry, mixed_rows
from dplasso.matrix.scaling import Mix, Scaling, constant_entry
from dplasso.matrix.starting import StartingModel, StartingRows, last_made
from dplasso.matrix.tiles import Tiles, lay_tiles
from dplasso.matrix.unit_rows import (
    UnitRows,
    by_rows,
    keep_columns,
    parts_within,
    row_factors,
    unit_row_margins,
)
from dplasso.runtime.threads import Threads, cut

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class GradientRows:
    """Records that one process holds.

    `prior`: a public model that margins can start from. Rows are then scaled to unit length over
    all columns of the data, `whole`, even if the fit uses only some of them.
    """

    rows: Compressed
    n_columns: int
    make: Make
    loss: Any
    targets: Targets
    threads: Threads
    prior: StartingModel | None = None
    whole: StartingRows | None = None
    # The tiles, and the last unit rows with the scaling that they were made for. Copies share them.
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def n_records(self) -> int:
        """N."""
        return len(self.targets.labels)

    def lay_out(self) -> Tiles:
        """Lay the rows out as tiles unless this has been done."""
        arguments = self.rows, self.n_columns, self.loss.n_outputs, self.threads, self.make
        tiles: Tiles = last_made(self._known, "tiles", (), lambda: lay_tiles(*arguments))
        return tiles

    def part(
        self, scaling: Scaling, unit: float, start: StartingModel | None = None
    ) -> GradientPart:
        """Return the sums of gradients over unit rows, in `unit` per unit of gradient."""
        data, targets = self._unit_rows(scaling), self.targets
        if self.whole is not None and start is not None:
            offsets = self.whole.margins(start, data.factor * scaling.length, self.threads)
            targets = targets._replace(offsets=offsets)
        if scaling.length < 1.0:
            targets = targets._replace(weights=self._weights(data, scaling))
        return GradientPart(data, self.loss, targets, unit, threads=self.threads)

    def energies(
        self, scaling: Scaling, unit: float, loads: NDArray[np.int64] = NO_LOADS
    ) -> NDArray[np.int64]:
        """Return the energies of the columns of unit rows, then counts of rows by `loads`."""
        data = self._unit_rows(scaling)
        totals = np.zeros(data.n_columns + N_SIZES, dtype=np.int64)
        columns, arguments = totals[: data.n_columns], (data.factor, self.targets, unit)

        def some(t: int) -> None:
            blocks = np.arange(t, data.tiles.n_blocks, self.threads.count)
            tile_energies(data.tiles, blocks, data.scale_exponents, *arguments, columns)

        self.threads.run(some)
        totals[data.n_columns :] = self._summed(
            N_SIZES, lambda *own: row_sizes(data.rows, loads, self.targets, unit, *own)
        )
        return totals

    def magnitudes(self, scaling: Scaling, unit: float) -> NDArray[np.int64]:
        """Return the counts of `row_magnitudes` in units, of each column in turn."""
        rows, _ = self._rows(scaling)
        return self._summed(
            self.n_columns * N_MAGNITUDES,
            lambda *own: row_magnitudes(rows, self.targets, unit, *own),
        )

    def column_sums(
        self, scaling: Scaling, scales: NDArray[np.float64], length: float, unit: float
    ) -> NDArray[np.int64]:
        """Return the sums of `row_entries` in units, of each column."""
        rows, _ = self._rows(scaling)
        return self._summed(
            self.n_columns,
            lambda *own: row_entries(rows, scales, length, self.targets, unit, *own),
        )

    def _summed(self, size: int, add: Callable[[int, int, Any], Any]) -> NDArray[np.int64]:
        """Return the totals of ``add(first, last, totals)`` over all rows."""
        edges = cut(0, self.n_records, self.threads.count)

        def some(t: int) -> NDArray[np.int64]:
            totals = np.zeros(size, dtype=np.int64)
            add(edges[t], edges[t + 1], totals)
            return totals

        total: NDArray[np.int64] = np.sum(self.threads.run(some), axis=0)
        return total

    def moments(
        self, loss: Any, scaling: Scaling, weights: NDArray[np.float64], units: Units
    ) -> NDArray[np.int64]:
        """Return gradient and triangles, concatenated, in units; the constant entry is last."""
        if scaling.scale_exponents.size or scaling.length < 1.0:
            # Rows would be longer than 1, and a record's contribution than its bound.
            raise ValueError("moments are of rows and columns as long as they are")
        data, size = self._unit_rows(scaling), weights.size
        pairs = size * (size + 1) // 2
        bounds = loss.residual_bound, loss.curvature, loss.residual_bound**2
        most = Units(*(unit * bound for unit, bound in zip(units, bounds, strict=True)))
        rows = data.rows, data.factor, data.constant, loss, self.targets, weights, units, most

        def add(first: int, last: int, totals: NDArray[np.int64]) -> None:
            row_moments(*rows, first, last, *np.split(totals, [size, size + pairs]))

        return self._summed(size + pairs * (2 if units.squares else 1), add)

    def named_sums(
        self, loss: Any, weights: NDArray[np.float64], offsets: NDArray[np.float64], units: Units
    ) -> NDArray[np.int64]:
        """Return the sums of `add_named_sums`, of margins by weights of shape (D, 3)."""
        factors = np.ones(self.n_records)
        margins = unit_row_margins(self.rows, weights, factors, offsets, self.threads)
        totals = np.zeros(3, dtype=np.int64)
        add_named_sums(margins, loss, self.targets, units, totals)
        return totals

    def mixed(
        self, scaling: Scaling, geometry: Geometry, mix: Mix, start: StartingModel | None = None
    ) -> "GradientRows":
        """Append latent entries to the records; margins start at those of unit rows."""
        targets = self.targets
        if self.whole is not None and start is not None:
            factor = self.whole.factors(scaling, self.threads)
            targets = targets._replace(offsets=self.whole.margins(start, factor, self.threads))
        own = mixed_rows(self.rows, geometry, mix, self.threads)
        size = mix.n_directions + self.n_columns * (mix.part < 1.0)
        return GradientRows(own, size, np.empty, self.loss, targets, self.threads)

    def count_along(self, least: float, unit: float) -> NDArray[np.int64]:
        """Count mixed rows whose squared length is at least `least`, in units; shape (1,)."""
        return np.array([count_along(self.rows, self.targets, least, unit)])

    def gradient_beside(
        self, model: LinearModel, columns: NDArray[np.int64], unit: float
    ) -> NDArray[np.int64]:
        """Return gradients in unit rows of some columns, at the margins of a model of others."""
        margins = self.margins(model)
        targets = self.targets._replace(offsets=margins.parts[:, 0])
        rows = replace(self, loss=margins.loss, targets=targets)
        part = rows.part(Scaling(columns, 0.0, None), unit)
        return part.sums(np.zeros(columns.size * self.loss.n_outputs))

    def _unit_rows(self, scaling: Scaling) -> UnitRows:
        """Return unit rows of the columns that are kept, or of all."""
        asked = scaling._replace(length=1.0)
        made: UnitRows = last_made(self._known, "unit rows", asked, lambda: self._made(scaling))
        if scaling.length == 1.0:
            return made
        return made._replace(factor=made.factor / scaling.length)

    def _made(self, scaling: Scaling) -> UnitRows:
        constant, scale_exponents = scaling.constant, scaling.scale_exponents
        if scaling.kept.size or scaling.centres.size:
            # After a cut the columns before it are not needed again.
            self._known.pop("tiles", None)
        (rows, make), size = self._rows(scaling), scaling.kept.size or self.n_columns
        if self.whole is None:
            arguments = rows, constant, scaling.norm_bound, self.threads, scale_exponents
            factor = row_factors(*arguments)
        else:
            factor = self.whole.factors(scaling, self.threads)
        if rows is self.rows:
            tiles = self.lay_out()
        else:
            tiles = lay_tiles(rows, size, self.loss.n_outputs, self.threads, make)
        return UnitRows(rows, tiles, factor, size, constant_entry(constant), scale_exponents)

    def _rows(self, scaling: Scaling) -> tuple[Compressed, Make]:
        """Return the rows of the columns in use, centred, and what makes arrays of their size."""
        rows, make, asked = self.rows, self.make, (scaling.kept, scaling.centres, scaling.limits)
        if scaling.kept.size:
            rows, make = keep_columns(rows, scaling.kept, self.n_columns, self.threads), np.empty
        if scaling.centres.size:
            arguments = rows, *asked[1:], self.threads, make
            rows = last_made(self._known, "centred", asked, lambda: centred_rows(*arguments))
        return rows, make

    def _weights(self, data: UnitRows, scaling: Scaling) -> NDArray[np.float64]:
        """Return weights that limit each contribution to that of a unit row, shape (N,)."""
        own = data.factor, scaling.constant, self.threads
        parts = parts_within(data.rows, scaling.scale_exponents, *own)
        return parts * weights_within(self.targets.weights, self.n_records)

    def margins(self, model: LinearModel, start: StartingModel | None = None) -> Margins:
        """Compute the margins of a model, after those of `start` if there is one."""
        rows, _, factor, *_ = self._unit_rows(model.scaling)
        first = None
        if self.whole is not None and start is not None:
            length = factor * model.scaling.length
            first = self.whole.margins(start, length, self.threads)[:, np.newaxis]
            if not len(model.weights):
                return Margins(first, self.loss, self.targets, self.threads, LONGEST)
        weights = model.weights
        weights = np.ascontiguousarray(weights[:, 0] if weights.shape[1] == 1 else weights)
        margins = unit_row_margins(rows, weights, factor, model.intercept, self.threads)
        margins = margins.reshape(self.n_records, 1, self.loss.n_outputs)
        shared = self.targets, self.threads
        if first is not None:
            parts = np.concatenate([first, margins], axis=1)
            return Margins(parts, self.loss, *shared, LONGEST)
        margins, loss = margins + self.loss.offset, without_offset(self.loss)
        if model.influence:
            # A row without entries teaches only the constant.
            own = self.targets.labels, self.targets.weights, model.influence * (factor != 0.0)
            leave_out(loss, margins[:, 0], model.centre, *own)
        return Margins(margins, loss, *shared)


def build_gradient_rows(
    X: Any,
    loss: Any,
    targets: Targets,
    threads: Threads,
    kept: NDArray[np.int64] | None = None,
    prior: StartingModel | None = None,
    whole: StartingRows | None = None,
) -> GradientRows:
    """Lay out a matrix in memory; a store is used as it is.

    `kept`: the columns that the fit uses, ascending. `whole`: the rows with all columns, if the
    caller has them.
    """
    n_columns = int(X.shape[1])
    size = n_columns if kept is None else kept.size
    if whole is None:
        rows = X.rows if isinstance(X, Store) else by_rows(X, threads.count)
        whole = StartingRows(rows, n_columns)
    rows, make = whole.rows, X.scratch if isinstance(X, Store) else np.empty
    if kept is None or size == n_columns:
        kept = _NONE
    else:
        rows, make = keep_columns(rows, kept, n_columns, threads), np.empty
    records = GradientRows(rows, size, make, loss, targets, threads)
    if prior is None:
        return records
    return replace(records, prior=prior, whole=replace(whole, columns=kept))
