"""A run in rounds: every column is drawn at most once, and up to four with the same gradients.

Gradients are refreshed once per round. Rounds of more than four columns cost accuracy on long rows.
The mechanism and its sensitivity are those of single steps.

A drawn column gets gradient 0, at which no column is less likely, and a draw that hits one is
repeated. This is the exponential mechanism over the other columns, because the set of drawn columns
is released. At most half of all columns may be drawn, so a draw hits one with probability at most
1/2.

The coordinator holds the gradients, the selection structure and the random stream. Rows add a round
at the beginning of the next step, so a checkpoint contains a vertex before any worker does. The
last round is not added, because only its vertices are needed.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.reports import take_changes
from dplasso.frank_wolfe.round_part import Changes, RoundSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.frank_wolfe.vertex_run import VertexRun
from dplasso.privacy.randomness import RandomStream
from dplasso.selection.selector import OnDemand, rebuild, select, update_many

# Weights within a level may differ this much: with few draws, a rejected try costs less than a
# change that crosses a level.
SPREAD = 16.0
# The most columns of a round, and the fewest rounds of a run.
LARGEST_ROUND, ROUNDS = 4, 8
# So many draws in a row hit drawn columns with probability 2^-128, or if all other gradients are
# zero without privacy. Then a drawn column is taken again.
_MOST_DRAWS = 128
# If more than one in so many gradients changes its level, the selector is rebuilt. So is a selector
# that needs every change.
_REPORTED = 16


def round_end(n_steps: int, step: int) -> int:
    """Return the first step, from `step` on, after which gradients are refreshed."""
    size = min(LARGEST_ROUND, max(1, n_steps // ROUNDS))
    return min(-(-step // size) * size, n_steps)


def _level(gradients: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """Return the level of each gradient's magnitude; with shift 0 the gradient itself."""
    return (gradients ^ (gradients >> 63)) >> shift if shift else gradients


class Rows(Protocol):
    """The rows of a run, in this process or on workers."""

    def start(self, level: int = 0) -> NDArray[np.int64]:
        """Return the column gradients at zero weights; the caller may change them.

        Here and in rounds, gradients that stay within ``2^level`` may be left out as 0.
        """

    def gradient(self, coordinate: int) -> int | None:
        """Return a column gradient that was left out; None for another one."""

    def move(self, vertex: NDArray[np.int64], sign: NDArray[np.int8]) -> Changes:
        """Add the vertices of a round; return the changes of the gradients, or all of them."""


class RoundsFrankWolfe(VertexRun):
    """Frank-Wolfe in rounds; steps of `prefix` are taken, and drawn as often as before."""

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
        """Take steps `first` to `last`, counted from 1."""
        for step in range(first, last + 1):
            if step == 1:
                few = getattr(self._selector, "reads_few", False)
                self._alpha = self._rows.start(self._selector.shift if few else 0)
                self._read = OnDemand(self._alpha, self._left_out) if few else self._alpha
                rebuild(self._selector, self._alpha)
            elif round_end(self.n_steps, step - 1) == step - 1:
                self._move(step - 1)
            self._draw(step)

    def _draw(self, step: int) -> None:
        """Draw a vertex of a column that has not been drawn, and set its gradient to 0."""
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
        """Let the rows add the round that ends with step `done`."""
        taken = self.transcript(done)
        changes = self._rows.move(taken.vertex[self._moved :], taken.sign[self._moved :])
        self._moved = done
        # A gradient may have several changes, and so several notes.
        changed, before = np.empty((2, changes.amounts.size), dtype=np.int64)
        coordinates, shift = changes.coordinates, self._selector.shift
        if coordinates is None:
            coordinates, changes.amounts[taken.vertex] = changed[:0], 0
        terms = changes.amounts, changes.whole, shift
        count = take_changes(self._alpha, coordinates, *terms, changed, before)
        # Drawn columns keep gradient 0.
        self._alpha[taken.vertex] = 0
        # The first note of a gradient has its value before the round; that of a drawn column is 0.
        places, before = changed[:count], before[:count]
        if not changes.whole:
            places, first = np.unique(places, return_index=True)
            before = before[first]
        crossed = _level(self._alpha[places], shift) != _level(before, shift)
        places, before = places[crossed], before[crossed]
        # The number of crossed levels does not depend on how rows report changes.
        if places.size > self.n_coordinates // _REPORTED or (shift == 0 and places.size):
            rebuild(self._selector, self._alpha)
        elif places.size:
            update_many(self._selector, self._alpha, places, before, places.size)

    def _left_out(self, coordinate: int) -> int | None:
        """Return the gradient that rows left out of a column that is not drawn."""
        return None if coordinate in self._drawn else self._rows.gradient(coordinate)
