"""The vertices drawn so far, for all runs of Frank-Wolfe, and the work of research runs.

Work depends on the data, so only runs without privacy record it. Both algorithms count alike: a
multiply-add of a sparse product is 2 operations per entry, a residual is 4, and comparing, scaling
or shifting a coordinate is 1 each (7 D in lines 7 to 13 of Algorithm 1).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.transcript import Transcript
from dplasso.runtime.compilation import kernel

OPERATIONS_PER_GRADIENT = 4
OPERATIONS_PER_COORDINATE = 7


@dataclass(frozen=True)
class Work:
    """Work per step, int64 arrays of shape (T,).

    `tries`, `moves`, `pops`, `variates`: of the selection (`dplasso.selection.selector`).
    `touched`: entries whose contribution was replaced or recomputed. `operations`: without
    selection.
    """

    tries: NDArray[np.int64]
    moves: NDArray[np.int64]
    pops: NDArray[np.int64]
    variates: NDArray[np.int64]
    touched: NDArray[np.int64]
    operations: NDArray[np.int64]


@kernel
def record_work(row, counters, operation_counts):
    """Move the counts since the last step into a row of the table."""
    for column in range(counters.size):
        row[column] = counters[column]
        counters[column] = 0
    for column in range(operation_counts.size):
        row[counters.size + column] = operation_counts[column]
        operation_counts[column] = 0


class VertexRun:
    """The vertices of a run; those of `prefix` are taken instead of drawn."""

    # Steps of a prefix are taken too, which restores the state of the rows.
    done: ClassVar[int] = 0

    def __init__(self, n_steps: int, n_coordinates: int, prefix: Transcript | None = None) -> None:
        self.n_steps, self.n_coordinates = n_steps, n_coordinates
        self._n_prefix = 0 if prefix is None else len(prefix)
        if self._n_prefix > n_steps:
            raise ValueError(f"a prefix of {self._n_prefix} steps is given to a run of {n_steps}")
        self._vertex = np.zeros(n_steps, dtype=np.int64)
        self._sign = np.zeros(n_steps, dtype=np.int8)
        if prefix is not None:
            self._vertex[: self._n_prefix] = prefix.vertex
            self._sign[: self._n_prefix] = prefix.sign

    def take(self, step: int, j: int, sign: int) -> tuple[int, int]:
        """Note the vertex drawn at a step, unless the prefix has one; return the one to take."""
        if step > self._n_prefix:
            self._vertex[step - 1], self._sign[step - 1] = j, sign
        return int(self._vertex[step - 1]), int(self._sign[step - 1])

    def transcript(self, done: int | None = None) -> Transcript:
        """Return the first `done` vertices, by default all, as a view."""
        return Transcript(self._vertex[:done], self._sign[:done])
