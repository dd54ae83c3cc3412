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

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.reports import take_changes
from dplasso.frank_wolfe.round_part import Changes, RoundSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.frank_wolfe.vertex_run import VertexRun
from dplasso.privacy.randomness import RandomStream
from dplasso.selection.contract import granularity, rebuild, select, update_many

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


class Rows(Protocol):
    """The rows of a run: those of this process, or of the workers."""

    def start(self) -> NDArray[np.int64]:
        """Return the column gradients at zero weights; the caller may change them."""

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Add the vertices of a round; return what that changes of the gradients, or all anew."""


class RoundsFrankWolfe(VertexRun):
    """Frank-Wolfe in rounds; a `dplasso.runtime.chunks.Solver`.

    `empty`: the release without vertices.
    `prefix`: steps taken instead of drawn; the selector draws as often as it did for them.
    """

    def __init__(
        self,
        steps: RoundSteps,
        rows: Rows,
        selector: Any,
        stream: RandomStream,
        empty: VertexRelease,
        prefix: Transcript | None = None,
    ) -> None:
        super().__init__(steps.n_steps, steps.n_coordinates, empty, prefix)
        self._rows, self._selector, self._stream = rows, selector, stream
        self._drawn: set[int] = set()
        self._moved = 0
        room = steps.n_coordinates // _REPORTED
        self._room = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        for step in range(first, last + 1):
            if step == 1:
                self._alpha = self._rows.start()
                rebuild(self._selector, self._alpha)
            elif round_end(self.n_steps, step - 1) == step - 1:
                self._move(step - 1)
            self._draw(step)

    def _draw(self, step: int) -> None:
        """Draw a vertex of a column that is not yet drawn, and leave the column out."""
        for _ in range(_MOST_DRAWS + 1):
            drawn = select(self._selector, self._alpha, self._stream)
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
        changed, before = self._room
        most, shift = changed.size, granularity(self._selector)
        coordinates = found.coordinates
        if coordinates is None:
            coordinates, found.amounts[taken.vertex] = changed[:0], 0
        elif coordinates.size > most:
            # A gradient may be listed, and noted, several times.
            changed, before = np.empty((2, coordinates.size), dtype=np.int64)
        told = found.amounts, found.whole, shift
        count = take_changes(self._alpha, coordinates, *told, changed, before)
        # Columns that are left out stay so.
        self._alpha[taken.vertex] = 0
        if count > changed.size:
            rebuild(self._selector, self._alpha)
            return
        # Of several notes of a gradient, the first has it as it was; of columns left out it was 0.
        places, first = np.unique(changed[:count], return_index=True)
        crossed = (before[first] ^ self._alpha[places]) >> shift != 0
        places = places[crossed]
        # How many have crossed a level does not depend on how the changes were told.
        if places.size > most or (shift == 0 and places.size):
            rebuild(self._selector, self._alpha)
        elif places.size:
            update_many(self._selector, self._alpha, places, before[first[crossed]], places.size)
