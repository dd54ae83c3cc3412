"""The rows of a run in rounds: integer margins, exact residuals, and their part of the gradients.

All vertices have the same weight, so a margin is ``scale`` times an integer. At the end of a round
the rows that hold a drawn column get new residuals; the others keep theirs. Residuals depend on
their own row and on releases only, and sums of integers do not depend on the order. So the bits do
not depend on how rows are partitioned.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.column_gradients import (
    ENTRIES,
    LARGE_STEP_ENTRIES,
    RECOMPUTED_PART,
    SHARED_PART,
    Units,
    gradients_of,
)
from dplasso.frank_wolfe.gradient import margin_term, renew_residuals, replace_contributions
from dplasso.frank_wolfe.long_columns import LongColumns, gradient_of, long_columns
from dplasso.frank_wolfe.problem import gradient_unit
from dplasso.losses.targets import Targets
from dplasso.matrix.compressed import Make, clip
from dplasso.matrix.orientations import Column, Design, column_span, refuse_damage
from dplasso.matrix.starting import StartingModel, StartingRows
from dplasso.runtime.compilation import kernel
from dplasso.runtime.threads import ONE_THREAD, Threads, cut, even_parts
from dplasso.selection.selector import NOTHING_REPORTED

# Fraction bits of a margin relative to the bound: 2^22 steps cannot overflow 62 bits.
_MARGIN_BITS = 40
# A round lists its changes if it touches at most one entry per so many gradients.
_LISTED = 4
# If a round touches a larger part of the entries of long columns, their gradients are recomputed:
# an entry then costs 0.7 ns, and a listed change ten times as much.
_LONG_PART = 0.1


# A column, its first and last entry, and the output and sign of its vertex.
Drawn = tuple[Column, int, int, tuple[int, int]]


class Changes(NamedTuple):
    """How rows change the column gradients.

    `coordinates`: the changed ones, in any order; None for all.
    `amounts`: the changes; those of one coordinate add up.
    `whole`: whether the amounts are the new gradients.
    """

    coordinates: NDArray[np.integer] | None
    amounts: NDArray[np.int64]
    whole: bool = False


@dataclass(frozen=True)
class RoundSteps:
    """The public numbers of a run in rounds.

    `vertex_weight`: the weight that a vertex adds to its coordinate.
    `start`: the public model that margins start from.
    """

    loss: Any
    bound: float
    n_columns: int
    n_steps: int
    vertex_weight: float
    share_bits: int
    start: StartingModel | None = None

    @property
    def n_coordinates(self) -> int:
        """Coordinates of all outputs; ``k D + j`` is column j of output k."""
        return self.n_columns * int(self.loss.n_outputs)

    @property
    def unit(self) -> float:
        """Fixed-point units per unit of a column gradient."""
        return gradient_unit(self.bound, self.loss.residual_bound, self.share_bits)

    @property
    def margin_unit(self) -> float:
        """Fixed-point units of a margin per unit of an entry."""
        return float(2.0**_MARGIN_BITS / self.bound)


class RoundRows:
    """Rows of one design; implements `dplasso.frank_wolfe.rounds.Rows`.

    One thread computes a round that touches few entries. Otherwise threads divide the rows, or the
    columns if most entries are touched. `alone`: whether there are no other rows, so that gradients
    may be recomputed. `whole`: the rows as a public model takes them, if the caller has them.
    """

    def __init__(
        self,
        steps: RoundSteps,
        design: Design,
        targets: Targets,
        threads: Threads = ONE_THREAD,
        *,
        alone: bool = False,
        make: Make = np.empty,
        whole: StartingRows | None = None,
    ) -> None:
        if steps.start is not None:
            whole = whole or StartingRows(design.rows, design.n_columns)
            targets = targets._replace(offsets=whole.started(steps.start, threads))
        self._alone = alone
        self._make = make
        self._long: LongColumns | None = None
        shape = targets.labels.size, steps.loss.n_outputs
        self._steps, self._design, self._threads = steps, design, threads
        self._targets = targets
        self._margin, self._residual = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        self._touched = np.zeros(targets.labels.size, dtype=np.bool_)
        self._rows = np.arange(targets.labels.size, dtype=np.int32)

    def start(self, level: int = 0) -> NDArray[np.int64]:
        """Return these rows' part of the column gradients at zero weights.

        If there are no other rows, columns whose gradients stay within ``2^level`` are left out as
        0.
        """
        edges = cut(0, self._rows.size, self._threads.count)
        self._threads.run(lambda t: self._renew(self._rows[edges[t] : edges[t + 1]]))
        if self._alone and level > self._steps.share_bits:
            fewest = 1 << (level - self._steps.share_bits)
            self._long = long_columns(self._design, fewest, self._threads, self._make)
        anew = self._anew()
        if anew.coordinates is None:
            return anew.amounts
        alpha = np.zeros(self._steps.n_coordinates, dtype=np.int64)
        alpha[anew.coordinates] = anew.amounts
        return alpha

    def gradient(self, coordinate: int) -> int | None:
        """Return a column gradient that was left out; None for another one."""
        output, j = divmod(coordinate, self._steps.n_columns)
        if self._long is None or self._long.is_long[j]:
            return None
        return gradient_of(self._design, j, self._units, self._residual, output)

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Add the vertices of a round."""
        design, n_coordinates = self._design, self._steps.n_coordinates
        drawn = []
        for coordinate, s in zip(vertex.tolist(), sign.tolist(), strict=True):
            output, j = divmod(coordinate, self._steps.n_columns)
            drawn.append((*column_span(design, j), (output, s)))
        mean = design.rows.indices.size / max(1, self._rows.size)
        touched = mean * sum(end - begin for _, begin, end, _ in drawn)
        large = touched > max(LARGE_STEP_ENTRIES, SHARED_PART * n_coordinates)
        anew = RECOMPUTED_PART * design.rows.indices.size
        if self._long is not None:
            anew = _LONG_PART * self._long.columns.indices.size
            large = touched > anew
        threads = self._threads if large else ONE_THREAD
        edges = even_parts(design.rows.indptr, threads.count).tolist()
        if self._alone and touched > anew:
            threads.run(lambda t: self._renew(self._touch(drawn, edges[t], edges[t + 1])))
            return self._anew()
        parts = threads.run(lambda t: self._move_some(drawn, edges[t], edges[t + 1]))
        places, amounts = parts[0]
        if places is not None:
            if self._long is None:
                return Changes(places, amounts)
            is_long = self._long.is_long[places % self._steps.n_columns]
            return Changes(places[is_long], amounts[is_long])
        for _, more in parts[1:]:
            amounts += more
        return Changes(None, amounts)

    @property
    def _units(self) -> Units:
        return self._steps.bound, self._steps.unit, 2.0**self._steps.share_bits

    def _anew(self) -> Changes:
        """Return the recomputed column gradients, of the long columns if others are left out."""
        residuals = np.ascontiguousarray(self._residual.T)
        if self._long is None:
            amounts = gradients_of(self._design, self._units, residuals, self._threads)
            return Changes(None, amounts, whole=True)
        amounts = self._long.gradients(self._units, residuals, self._threads)
        return Changes(self._long.coordinates(len(residuals)), amounts, whole=True)

    def _renew(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Renew the residuals of some rows; return them before and after, shape (K, n)."""
        steps = self._steps
        old, new = np.empty((2, rows.size, steps.loss.n_outputs))
        scale = steps.vertex_weight / steps.margin_unit
        state = self._margin, self._residual
        renew_residuals(steps.loss, self._targets, rows, scale, *state, old, new)
        return np.ascontiguousarray(old.T), np.ascontiguousarray(new.T)

    def _touch(self, drawn: list[Drawn], first: int, last: int) -> NDArray[np.int32]:
        """Add vertices to the margins of rows `first` to `last`; return the touched rows."""
        every = last - first == self._rows.size
        rows, count = self._rows[first:last], 0
        for column, begin, end, vertex in drawn:
            if not every:
                # Rows of a damaged store that do not ascend lie outside the part.
                part = np.array([first, last], column[0].dtype)
                inner = (begin + np.searchsorted(column[0][begin:end], part)).tolist()
                begin = begin if first == 0 else inner[0]
                end = end if last == self._rows.size else inner[1]
            count = touch_rows(
                column,
                (begin, end),
                (first, last),
                vertex,
                (self._steps.bound, self._steps.margin_unit),
                self._margin,
                self._touched,
                rows,
                count,
            )
            if count < 0:
                refuse_damage()
        rows = rows[:count]
        self._touched[rows] = False
        return rows

    def _move_some(
        self, drawn: list[Drawn], first: int, last: int
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Add vertices to rows `first` to `last`; return the changes and their places.

        Without places, the amounts are those of all gradients.
        """
        design, units, size = self._design, self._units, self._steps.n_columns
        every = last - first == self._rows.size
        rows, indptr = self._touch(drawn, first, last), design.rows.indptr
        n_entries = (indptr[rows + 1] - indptr[rows]).sum() * self._steps.loss.n_outputs
        few = n_entries <= self._steps.n_coordinates // _LISTED
        listing = every and (few or self._long is not None)
        room = n_entries + 1 if listing else 0
        places, changes, amounts = (np.empty(n, dtype=np.int64) for n in (room, room, ENTRIES))
        sums = np.zeros(0 if listing else self._steps.n_coordinates, dtype=np.int64)
        count = 0
        for k, (old, new) in enumerate(zip(*self._renew(rows), strict=True)):
            begin, output = count, slice(k * size, (k + 1) * size)
            *_, count = replace_contributions(
                design.rows,
                size,
                False,
                units,
                sums[output],
                rows,
                old,
                new,
                0 if listing else NOTHING_REPORTED,
                amounts,
                (places, changes, count),
            )
            if count < 0:
                refuse_damage()
            places[begin:count] += k * size
        return (places[:count], changes[:count]) if listing else (None, sums)


@kernel
def touch_rows(column, span, part, vertex, units, margin, touched, rows, count):
    """Add a vertex to the margins of the rows in a span of its column.

    Marks the rows in `touched`, and appends them to `rows`. Returns the new `count`, or -1 for a
    row outside `part`.
    """
    indices, values, constant = column
    output, sign = vertex
    bound, unit = units
    begin, last = span
    term = margin_term(clip(constant, bound), unit)
    for p in range(np.uint64(begin), np.uint64(last)):
        i = np.int64(indices[p])
        # The store may have changed on the disk since it was checked.
        if i < part[0] or i >= part[1]:
            return -1
        if values.size:
            term = margin_term(clip(values[p], bound), unit)
        margin[i, output] += sign * term
        if not touched[i]:
            touched[i] = True
            rows[count] = i
            count += 1
    return count
