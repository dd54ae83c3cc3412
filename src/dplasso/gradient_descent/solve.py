"""Noisy gradient descent as a solver that takes its steps in chunks."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.schedule import Schedule
from dplasso.gradient_descent.steps import (
    column_gradient_vectors,
    column_gradients,
    row_gradient_vectors,
    row_gradients,
    update,
)
from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.matrix.unit_rows import UnitRows
from dplasso.privacy.gaussian_noise import LARGEST_SCALE, NoiseTable, noise_table, noisy
from dplasso.privacy.randomness import RandomStream, WordBuffer, word_buffers
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts

# Coordinates that share a stream of noise, all K of a column together. A stream belongs to its
# coordinates, not to a thread: the bits do not depend on the number of threads.
BLOCK = 2**15
# |q z S| <= 2^32 for every record: sums of fewer than 2^31 of them fit 64 bits.
_CONTRIBUTION_BITS = 32


def gradient_unit(residual_bound: float, noise_scale: float) -> float:
    """Return S, the fixed-point units per unit of gradient, from public numbers.

    Fewer than ``2^32 / C`` where the noise is so large that its words would not reach.
    """
    unit = 2.0**_CONTRIBUTION_BITS / residual_bound
    if noise_scale * unit > LARGEST_SCALE:
        unit *= 2.0 ** -math.ceil(math.log2(noise_scale * unit / LARGEST_SCALE))
    return unit


class NoisyGradientDescent:
    """T steps of full-batch gradient descent with Gaussian noise, taken when `advance` is called.

    Parameters
    ----------
    data : UnitRows
        The records.
    loss : Logistic, Squared or Multinomial
        The loss; its `residual_bound` is what the sensitivity rests on. With K outputs, coordinate
        ``j K + k`` is that of column j and output k.
    labels : ndarray of int8, int32 or float64, shape (N,)
        The targets.
    schedule : Schedule
        The steps, public.
    stream : RandomStream
        Keys the noise.
    threads : Threads
        Of the run; the bits do not depend on them.
    start : ndarray of float64, shape (K D,) or (K (D + 1),), optional
        Weights to start from, already released; zero otherwise.
    numbering : Numbering, optional
        Of the columns, where `data` numbers them by itself. Everything that is kept or drawn goes
        by the original numbers, so that a store gives the same bits.

    Attributes
    ----------
    n_steps : int
        T.
    done : int
        Steps taken.
    data, original : UnitRows, ndarray of int64
        The records, and the original numbers of their columns where they are numbered otherwise.
    weights, velocity, averaged : ndarray of float64, shape (K D,) or (K (D + 1),)
        The iterate, the momentum and the sum of the averaged iterates: functions of the noisy
        gradients, so released by composition.
    """

    def __init__(
        self,
        data: UnitRows,
        loss: Any,
        labels: NDArray[Any],
        schedule: Schedule,
        stream: RandomStream,
        *,
        threads: Threads = ONE_THREAD,
        start: NDArray[np.float64] | None = None,
        numbering: Numbering = AS_GIVEN,
    ) -> None:
        self.n_outputs = loss.n_outputs
        size = data.n_coordinates * self.n_outputs
        self.n_steps, self.done = schedule.n_steps, 0
        self.schedule = schedule
        self.weights = np.zeros(size) if start is None else start.astype(np.float64)
        self.velocity, self.averaged = np.zeros(size), np.zeros(size)
        self.data, self._loss, self._labels, self._threads = data, loss, labels, threads
        self._unit = gradient_unit(loss.residual_bound, schedule.noise_scale)
        self._scaled = self._by_columns(np.empty(labels.size * self.n_outputs))
        self.original = numbering.original[: data.n_columns]
        # With numbers of its own, `data` wants the weights in that order, and then gives gradients.
        self._reordered = np.empty(size if self.original.size else 0)
        self._row_edges = even_parts(data.rows.indptr, threads.count)
        self._blocks = range(0, data.n_coordinates, max(1, BLOCK // self.n_outputs))
        self._table: NoiseTable | None = None
        self._buffers: list[WordBuffer] = []
        if schedule.noise_scale:
            self._table = noise_table(schedule.noise_scale * self._unit)
            self._buffers = word_buffers(stream, len(self._blocks))

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1, both included."""
        for step in range(first, last + 1):
            self._step(step)
            self.done = step

    def _step(self, step: int) -> None:
        data, unit = self.data, self._unit
        weights, gradients = self.weights, self._reordered.view(np.int64)
        if self.original.size:
            weights = self._reordered
            self._threads.run(self._reorder)

        def residuals(t: int) -> Any:
            rows = self._row_edges[t], self._row_edges[t + 1]
            given = data, self._loss, self._labels, self._by_columns(weights), unit, *rows
            if self.n_outputs == 1:
                return int(row_gradients(*given, self._scaled))
            totals = np.zeros(self.n_outputs, dtype=np.int64)
            row_gradient_vectors(*given, self._scaled, totals)
            return totals

        constant_total = sum(self._threads.run(residuals))
        schedule = self.schedule
        averaging = step >= schedule.first_averaged

        def sums(begin: int, end: int) -> NDArray[np.int64]:
            totals = np.empty((end - begin) * self.n_outputs, dtype=np.int64)
            add_up = column_gradients if self.n_outputs == 1 else column_gradient_vectors
            last = min(end, data.n_columns)
            add_up(data.columns, self._scaled, begin, last, self._by_columns(totals))
            return totals

        def reordered(t: int) -> None:
            for _, begin, end in self._blocks_of(t):
                places = self.original[begin:end]
                found = self._by_columns(sums(begin, end))
                self._by_columns(gradients)[places] = found[: places.size]

        def columns(t: int) -> None:
            for number, begin, end in self._blocks_of(t):
                span = slice(begin * self.n_outputs, end * self.n_outputs)
                totals = gradients[span] if gradients.size else sums(begin, end)
                if end > data.n_columns:
                    totals[-self.n_outputs :] = constant_total
                if self._table is not None:
                    noisy(self._table, self._buffers[number], totals)
                update(
                    totals,
                    unit,
                    schedule.momentum,
                    schedule.step_size,
                    self.velocity[span],
                    self.weights[span],
                    self.averaged[span],
                    averaging,
                )

        if gradients.size:
            self._threads.run(reordered)
        self._threads.run(columns)

    def _blocks_of(self, t: int) -> Iterator[tuple[int, int, int]]:
        """List a thread's blocks of columns: number, begin and end."""
        for number in range(t, len(self._blocks), self._threads.count):
            begin = self._blocks[number]
            yield number, begin, min(begin + self._blocks.step, self.data.n_coordinates)

    def _by_columns(self, flat: NDArray[Any]) -> NDArray[Any]:
        """View a flat array as one row of K numbers for each column, where there are several."""
        return flat if self.n_outputs == 1 else flat.reshape(-1, self.n_outputs)

    def _reorder(self, t: int) -> None:
        """Put the weights into the order of the data."""
        reordered, weights = self._by_columns(self._reordered), self._by_columns(self.weights)
        for _, begin, end in self._blocks_of(t):
            places = self.original[begin:end]
            reordered[begin : begin + places.size] = weights[places]
            reordered[begin + places.size : end] = weights[begin + places.size : end]

    def average(self) -> NDArray[np.float64]:
        """Return the average of the iterates that count, once all steps are taken."""
        count: float = self.n_steps - self.schedule.first_averaged + 1
        return self.averaged / count
