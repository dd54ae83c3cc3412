"""A run in rounds: every column is drawn at most once, and several by the same gradients.

A column drawn once is left out of later draws, so the next best ones are still to be had from the
gradients at hand; refreshing them after every few draws costs a part of refreshing them after each
and, measured, no accuracy; rounds of more than four did cost some on long rows. Which steps refresh
is public: the mechanism and its sensitivity are those of steps one by one.

The gradient of a drawn column is zero, where no column is less likely, and a draw that hits one is
made again. That is the exponential mechanism over the others, which depends on the data only
through their gradients: which columns are left out has been released. At most half of all columns
may be drawn, so a draw hits one with probability at most 1/2.

The coordinator alone has the gradients, in the order of the data, the selection structure and the
random stream. Rows hear of a round when all of it is drawn, at the beginning of the next step: a
checkpoint, which is written between steps, has a vertex before any worker does. Nobody takes the
last round: its vertices are all that is wanted of it.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.reports import take_changes
from dplasso.frank_wolfe.round_part import Changes, RoundSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.frank_wolfe.vertex_run import VertexRun
from dplasso.privacy.randomness import RandomStream
from dplasso.selection.contract import (
    OnDemand,
    granularity,
    reads_few,
    rebuild,
    select,
    update_many,
)

# Of few draws, a try costs less than a change that crosses a level: weights may differ so much.
SPREAD = 16.0
# Columns drawn together, and the fewest rounds of a run of as many columns.
LARGEST_ROUND, ROUNDS = 4, 8
# So many draws in a row hit drawn columns with probability 2^-128, or where without privacy all
# other gradients are zero; then such a column is taken once more.
_MOST_DRAWS = 128
# From one in so many gradients on, the selector is not told of changes, but indexes all; so does
# one that would have to be told of every change.
_REPORTED = 16


def round_end(n_steps: int, step: int) -> int:
    """Return the first step, from `step` on, after which gradients are refreshed."""
    size = min(LARGEST_ROUND, max(1, n_steps // ROUNDS))
    return min(-(-step // size) * size, n_steps)


def _level(gradients: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """Return what tells levels apart, those of a gradient's magnitude; at 0, the gradient."""
    return (gradients ^ (gradients >> 63)) >> shift if shift else gradients


class Rows(Protocol):
    """The rows of a run: those of this process, or of the workers."""

    def start(self, level: int = 0) -> NDArray[np.int64]:
        """Return the column gradients at zero weights; the caller may change them.

        Rows may leave out, here and in rounds, gradients that stay within ``2^level`` of 0: they
        stand as 0, and `gradient` has them.
        """

    def gradient(self, coordinate: int) -> int | None:
        """Return a column gradient that was left out; None for one that was not."""

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Add the vertices of a round; return what that changes of the gradients, or all anew."""


class RoundsFrankWolfe(VertexRun):
    """Frank-Wolfe in rounds.

    `prefix`: steps taken instead of drawn; the selector draws as often as it did for them.
    """

    def __init__(
        self,
        steps: RoundSteps,
        rows: Rows,
        selector: Any,
        stream: RandomStream,
        prefix: Transcript | None = None,
    ) -> None:
        super().__init__(steps.n_steps, steps.n_coordinates, prefix)
        self._rows, self._selector, self._stream = rows, selector, stream
        self._drawn: set[int] = set()
        self._moved = 0

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        for step in range(first, last + 1):
            if step == 1:
                few = reads_few(self._selector)
                self._alpha = self._rows.start(granularity(self._selector) if few else 0)
                self._read = OnDemand(self._alpha, self._left_out) if few else self._alpha
                rebuild(self._selector, self._alpha)
            elif round_end(self.n_steps, step - 1) == step - 1:
                self._move(step - 1)
            self._draw(step)

    def _draw(self, step: int) -> None:
        """Draw a vertex of a column that is not yet drawn, and leave the column out."""
        for _ in range(_MOST_DRAWS + 1):
            drawn = select(self._selector, self._read, self._stream)
            if drawn[0] not in self._drawn:
                break
        j, _ = self.take(step, *drawn)
        self._drawn.add(j)
        place, before = np.array([j]), self._alpha[j : j + 1].copy()
        self._alpha[j] = 0
        if before[0]:
            update_many(self._selector, self._alpha, place, before, 1)

    def _move(self, done: int) -> None:
        """Have the rows add the round that ends with step `done`."""
        taken = self.transcript(done)
        found = self._rows.move(taken.vertex[self._moved :], taken.sign[self._moved :])
        self._moved = done
        # A gradient may be listed, and noted, several times.
        changed, before = np.empty((2, found.amounts.size), dtype=np.int64)
        coordinates, shift = found.coordinates, granularity(self._selector)
        if coordinates is None:
            coordinates, found.amounts[taken.vertex] = changed[:0], 0
        terms = found.amounts, found.whole, shift
        count = take_changes(self._alpha, coordinates, *terms, changed, before)
        # Columns that are left out stay so.
        self._alpha[taken.vertex] = 0
        # Of several notes of a gradient, the first has it as it was; of columns left out it was 0.
        places, before = changed[:count], before[:count]
        if not found.whole:
            places, first = np.unique(places, return_index=True)
            before = before[first]
        crossed = _level(self._alpha[places], shift) != _level(before, shift)
        places, before = places[crossed], before[crossed]
        # How many have crossed a level does not depend on how the changes were told.
        if places.size > self.n_coordinates // _REPORTED or (shift == 0 and places.size):
            rebuild(self._selector, self._alpha)
        elif places.size:
            update_many(self._selector, self._alpha, places, before, places.size)

    def _left_out(self, coordinate: int) -> int | None:
        """Return the gradient of a column that rows have left out and that is not drawn."""
        return None if coordinate in self._drawn else self._rows.gradient(coordinate)
