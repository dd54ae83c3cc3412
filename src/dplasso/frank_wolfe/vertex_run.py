"""What all runs of Frank-Wolfe share: the vertices drawn so far, and a prefix that is not drawn."""

from typing import ClassVar

import numpy as np

from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.frank_wolfe.work import Work


class VertexRun:
    """The vertices of a run of `n_steps`, the first of which may be given.

    Raises ValueError if the prefix has more steps than the run.
    """

    # A prefix is taken step by step too, which brings the rows to where they were.
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
        """Return the first `done` vertices, by default all; a view that later steps leave alone."""
        return Transcript(self._vertex, self._sign).first(done)

    @property
    def history(self) -> History | None:
        """Objective and gap, where they were asked for."""
        return None

    @property
    def work(self) -> Work | None:
        """Work per step, where it was asked for."""
        return None
