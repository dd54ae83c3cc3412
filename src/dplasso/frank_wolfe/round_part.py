"""The rows of a run in rounds: integer margins, exact residuals, and their share of the gradients.

All vertices weigh the same, so a row's margin is ``scale`` times an integer: the sum of sign and
entry over the columns drawn that it holds. A row that holds none of the columns drawn in a round
keeps its margin and its residual; the others are renewed at the round's end, exactly. Residuals
depend on their own row and on what was released, and sums of integers have no order, so the
gradients are the same to the bit however rows are cut into parts.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.frank_wolfe.gradient import contribution_change, margin_term
from dplasso.frank_wolfe.problem import design_of, gradient_unit
from dplasso.losses.contract import residual_vector
from dplasso.matrix.compressed import clip
from dplasso.matrix.design import Column, Design, refuse_damage, scan_column
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts

# Bits of a margin behind the entries' bound: 2^22 steps cannot overflow 62 bits.
_MARGIN_BITS = 40
# Entries of a row whose changes are computed together.
_ENTRIES = 256
# Parts list the gradients that they change, up to one in so many.
_LISTED = 64


class Changes(NamedTuple):
    """What rows change of the column gradients.

    `coordinates`: those that change, ascending; None for all of them.
    `amounts`: by how much.
    `counts`, shape (3,): rows looked at, rows whose residual changed, and their entries; none in a
    run in rounds.
    """

    coordinates: NDArray[np.integer] | None
    amounts: NDArray[np.int64]
    counts: NDArray[np.int64] = np.zeros(3, dtype=np.int64)


@dataclass(frozen=True)
class RoundSteps:
    """The public numbers of a run in rounds.

    `vertex_weight`: the weight that every vertex adds to its coordinate.
    `share_bits`: bits of a record's share of a column gradient.
    """

    loss: Any
    bound: float
    n_columns: int
    n_steps: int
    vertex_weight: float
    share_bits: int

    @property
    def n_coordinates(self) -> int:
        """Coordinates of all outputs; ``k D + j`` is column j of output k."""
        return self.n_columns * int(self.loss.n_outputs)

    @property
    def numbering(self) -> Numbering:
        """The coordinator keeps the gradients in the order of the data."""
        return AS_GIVEN

    @property
    def unit(self) -> float:
        """Fixed-point units per unit of a column gradient."""
        return gradient_unit(self.bound, self.loss.residual_bound, self.share_bits)

    @property
    def margin_unit(self) -> float:
        """Fixed-point units of a margin per unit of an entry."""
        return float(2.0**_MARGIN_BITS / self.bound)

    def part(self, X: Any, labels: NDArray[Any], threads: Threads) -> "RoundRows":
        """Lay out rows, and return them at zero weights."""
        public: dict[str, Any] = {"bound": self.bound, "n_steps": self.n_steps}
        design = design_of(X, **public, intercept=False, n_threads=threads.count)
        return RoundRows(self, design, labels, threads)


class RoundRows:
    """Rows of one design, in a part for each thread; a `dplasso.frank_wolfe.row_part.Part`."""

    def __init__(
        self,
        steps: RoundSteps,
        design: Design,
        labels: NDArray[Any],
        threads: Threads = ONE_THREAD,
    ) -> None:
        shape, n_threads = (labels.size, steps.loss.n_outputs), threads.count
        self._steps, self._design, self._labels, self._threads = steps, design, labels, threads
        self._margin, self._residual = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        self._touched = np.zeros(labels.size, dtype=np.bool_)
        self._rows = np.arange(labels.size, dtype=np.int32)
        self._edges = even_parts(design.rows.indptr, n_threads)
        self._sums = [self._zeros() for _ in range(n_threads)]
        room = steps.n_coordinates // _LISTED
        self._listed = [np.empty(room, dtype=np.int64) for _ in range(n_threads)]
        self._given_away = False

    def start(self) -> NDArray[np.int64]:
        """Return these rows' part of the column gradients at zero weights."""
        nothing = np.empty(0, dtype=np.int64)
        self._threads.run(lambda t: self._renew(t, self._edges[t + 1] - self._edges[t], nothing))
        total = self._total()
        # It may be the sums themselves.
        self._sums[0] = self._zeros()
        return total

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Add the vertices of a round; what is returned may change with the next call."""
        if self._given_away:
            self._sums[0][:] = 0
        columns = [self._column(j) for j in vertex.tolist()]

        def part(t: int) -> int:
            count = 0
            for column, j, s in zip(columns, vertex.tolist(), sign.tolist(), strict=True):
                count = self._touch(t, column, j // self._steps.n_columns, s, count)
            return self._renew(t, count, self._listed[t])

        counts = self._threads.run(part)
        self._given_away = any(
            count > listed.size for count, listed in zip(counts, self._listed, strict=True)
        )
        if self._given_away:
            return Changes(None, self._total())
        every = [listed[:count] for count, listed in zip(counts, self._listed, strict=True)]
        places = np.unique(np.concatenate(every))
        amounts = np.zeros(places.size, dtype=np.int64)
        for own in self._sums:
            amounts += own[places]
            own[places] = 0
        original, size = self._design.numbering.original, self._steps.n_columns
        if not original.size:
            return Changes(places, amounts)
        coordinates = places - places % size + original[places % size]
        order = np.argsort(coordinates)
        return Changes(coordinates[order], amounts[order])

    def catch_up(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> None:
        """Add vertices that the other parts have added: their changes are in the sum already."""
        # Residuals follow from the margins, however many rounds these took.
        self.move(vertex, sign)

    def _zeros(self) -> NDArray[np.int64]:
        return np.zeros(self._steps.n_coordinates, dtype=np.int64)

    def _total(self) -> NDArray[np.int64]:
        """Return the sums of all parts in the order of the data; only the first keeps its own."""
        total, *others = self._sums
        for own in others:
            total += own
            own[:] = 0
        internal = self._design.numbering.internal
        if not internal.size:
            return total
        outputs = total.reshape(-1, self._steps.n_columns)
        return outputs[:, internal].ravel()

    def _column(self, coordinate: int) -> tuple[Column, int, int]:
        design, j = self._design, coordinate % self._steps.n_columns
        if not design.has_columns:
            column, length = scan_column(design, j, self._threads)
            return column, 0, length
        columns = design.columns
        c = design.numbering.internal[j] if design.columns_internal else j
        whole = columns.indices, columns.values, columns.constant
        return whole, int(columns.indptr[c]), int(columns.indptr[c + 1])

    def _touch(
        self, t: int, found: tuple[Column, int, int], output: int, sign: int, count: int
    ) -> int:
        """Add a vertex to the margins of one thread's rows; return how many are touched by now."""
        (indices, values, constant), begin, end = found
        first, last = self._edges[t : t + 2].tolist()
        if self._threads.count > 1:
            # Rows that do not ascend are found to lie outside a part.
            edges = np.searchsorted(indices[begin:end], np.array([first, last], indices.dtype))
            inner = (begin + edges).tolist()
            begin = begin if t == 0 else inner[0]
            end = end if t == self._threads.count - 1 else inner[1]
        count = touch_rows(
            (indices, values, constant),
            (begin, end),
            (first, last),
            (output, sign),
            (self._design.bound, self._steps.margin_unit),
            self._margin,
            self._touched,
            self._rows[first:last],
            count,
        )
        return count if count >= 0 else refuse_damage()

    def _renew(self, t: int, count: int, listed: NDArray[np.int64]) -> int:
        """Renew the touched rows of one thread; return how many gradients they change, or more."""
        steps, rows = self._steps, self._design.rows
        first, last = self._edges[t : t + 2].tolist()
        noted: int = renew_rows(
            steps.loss,
            self._labels,
            self._rows[first:last],
            count,
            self._margin,
            steps.vertex_weight / steps.margin_unit,
            self._residual,
            self._touched,
            (rows.indptr, rows.indices, rows.values, rows.constant),
            (self._design.bound, steps.unit, 2.0**steps.share_bits),
            self._sums[t],
            listed,
        )
        return noted if noted >= 0 else refuse_damage()


@njit(cache=True, nogil=True)
def touch_rows(column, span, part, vertex, units, margin, touched, rows, count):
    """Add a vertex to the margins of the rows in a span of its column.

    `part`: first and last (exclusive) row that may stand there.
    `vertex`: output and sign.
    `units`: bound of the entries, and units of a margin per unit of an entry.
    `touched`, `rows`: marks of the rows touched in this round, and their list, `count` long.

    Returns how long the list is then; -1 at a row outside the part.
    """
    indices, values, constant = column
    output, sign = vertex
    bound, unit = units
    begin, last = span
    term = margin_term(clip(constant, bound), unit)
    for p in range(np.uint64(begin), np.uint64(last)):
        i = np.int64(indices[p])
        # Indices from a store on disk have not been looked at before.
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


@njit(cache=True, nogil=True)
def renew_rows(
    loss, labels, rows, count, margin, scale, residual, touched, matrix, units, sums, listed
):
    """Give touched rows the residuals of their margins; add up what that changes.

    `rows`: the touched rows, of which the first `count` are taken; their marks are cleared.
    `scale`: from integer margins to margins.
    `matrix`: pointers, indices, values and constant of the rows.
    `units`: bound of the entries, units of the gradients, and the limit of a share.
    `sums`: changes of the column gradients.
    `listed`: filled with the gradients that change, while there is room for more.

    Returns how many gradients change, some counted twice, or a number that there is no room for; -1
    at a column outside the matrix.
    """
    indptr, indices, values, constant = matrix
    bound, unit, limit = units
    n_outputs = margin.shape[1]
    size = sums.size // n_outputs
    margins, new = np.empty(n_outputs), np.empty(n_outputs)
    amounts = np.empty(_ENTRIES, dtype=np.int64)
    noted, listing = 0, True
    for m in range(count):
        i = rows[m]
        touched[i] = False
        for k in range(n_outputs):
            margins[k] = np.float64(margin[i, k]) * scale
        residual_vector(loss, margins, labels[i], new)
        for k in range(n_outputs):
            if new[k] == residual[i, k]:
                continue
            before, after = residual[i, k] * unit, new[k] * unit
            residual[i, k] = new[k]
            if not values.size:
                amounts[:] = contribution_change(before, after, clip(constant, bound), limit)
            begin = k * size
            offset = np.uint64(begin)
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            while first < last:
                some = min(last - first, np.uint64(amounts.size))
                # Apart from the scattered additions, changes are computed several at a time.
                if values.size:
                    for p in range(some):
                        value = clip(values[first + p], bound)
                        amounts[p] = contribution_change(before, after, value, limit)
                for p in range(some):
                    c = np.uint64(indices[first + p])
                    if c >= np.uint64(size):
                        return -1
                    was = sums[offset + c]
                    sums[offset + c] = was + amounts[p]
                    # What has changed and changed back is listed once more.
                    if listing and was == 0:
                        if noted < listed.size:
                            listed[noted] = offset + c
                        noted += 1
                first += some
                listing = noted <= listed.size
    return noted
