"""Noisy gradient descent as a solver that takes its steps in chunks."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.forward_selection import ForwardSelection
from dplasso.gradient_descent.schedule import Schedule
from dplasso.gradient_descent.steps import update
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, SCALES
from dplasso.privacy.accounting import LARGEST_SCALE
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.runtime.threads import ONE_THREAD, Threads

# Number of coordinates per random stream. A stream belongs to its coordinates and not to a thread,
# so the result is bit-identical for any number of threads.
BLOCK = 2**15


def gradient_unit(residual_bound: float, noise_scale: float, bits: int = 32) -> float:
    """Return S, the fixed-point units per unit of gradient, for a contribution of `bits` bits.

    ``|q z S| <= 2^32``, so sums over fewer than 2^31 records fit into 64 bits. S is smaller if the
    noise would otherwise exceed the largest scale of its generator.
    """
    unit = 2.0**bits / residual_bound
    if noise_scale * unit > LARGEST_SCALE:
        unit *= 2.0 ** -math.ceil(math.log2(noise_scale * unit / LARGEST_SCALE))
    return unit


def noise_of(schedule: Schedule, unit: float, words: RandomStream) -> list[Gaussian | None]:
    """Return the noise of each gradient, in units; None without privacy."""
    if not schedule.noise_scale:
        return [None] * schedule.n_steps
    scales = schedule.noise_scales.tolist()
    made = {scale: Gaussian(scale * unit, words) for scale in set(scales)}
    return [made[scale] for scale in scales]


class NoisyGradientDescent:
    """T steps of full-batch gradient descent with Gaussian noise, taken by `advance`.

    `part`: a `GradientPart` or similar, in units of `unit`.
    `scale_exponents`: of each column, as in `UnitRows`; the steps of its weights shrink likewise.
    `selection`: of the columns that have weights; without one, all have.

    The `state` is a function of noisy gradients, so composition covers it.
    """

    def __init__(
        self,
        part: Any,
        n_columns: int,
        n_outputs: int,
        unit: float,
        schedule: Schedule,
        stream: RandomStream,
        *,
        threads: Threads = ONE_THREAD,
        start: NDArray[np.float64] | None = None,
        intercept: bool = False,
        scale_exponents: NDArray[np.int8] = NO_SCALE_EXPONENTS,
        selection: ForwardSelection | None = None,
    ) -> None:
        n_coordinates = n_columns + intercept
        size = n_coordinates * n_outputs
        self.n_outputs, self._n_columns = n_outputs, n_columns
        self.n_steps, self.schedule = schedule.n_steps, schedule
        self.weights = np.zeros(size) if start is None else start.astype(np.float64)
        self.velocity, self.averaged = np.zeros(size), np.zeros(size)
        self._part, self._unit = part, unit
        width = max(1, BLOCK // n_outputs)
        self._blocks = [
            (begin, min(begin + width, n_coordinates)) for begin in range(0, n_coordinates, width)
        ]
        # A single block cannot be divided among threads.
        self._threads = threads if len(self._blocks) > 1 else ONE_THREAD
        self._steps = np.full(n_coordinates, schedule.step_size)
        self._steps[: scale_exponents.size] *= SCALES[scale_exponents]
        self.selection = selection
        if selection is not None:
            self._steps[n_columns:] *= selection.constant_steps
            self._own_steps = self._steps[:n_columns].copy()
            self.weights[: n_columns * n_outputs] = 0.0
        buffers = word_buffers(stream, len(self._blocks))
        self._noise = [noise_of(schedule, unit, words) for words in buffers]

    @property
    def state(self) -> dict[str, NDArray[np.float64]]:
        """What the run continues from, by name."""
        state = {"weights": self.weights, "velocity": self.velocity, "averaged": self.averaged}
        if self.selection is not None:
            own = self.selection
            state |= {"entered": own.entered, "sums": own.sums}
            state |= {"estimates": own.estimates, "numbers": own.numbers}
        return state

    def advance(self, first: int, last: int) -> None:
        """Take steps `first` to `last`, counted from 1."""
        for step in range(first, last + 1):
            if self.selection is not None:
                # Other columns keep the weight 0.
                self._steps[: self._n_columns] = self._own_steps * self.selection.entered
            sums = self._part.sums(self.weights)
            self._threads.run(partial(self._update, step, sums))
            if self.selection is not None:
                gradient = sums.reshape(-1, self.n_outputs)[: self._n_columns] / self._unit
                scale = float(self.schedule.noise_scales[step - 1])
                self.selection.add(step, gradient, scale)

    def _update(self, step: int, sums: NDArray[np.int64], t: int) -> None:
        """Update the weights of the blocks of thread t by their noisy gradients."""
        schedule = self.schedule
        for number in range(t, len(self._blocks), self._threads.count):
            begin, end = self._blocks[number]
            span = slice(begin * self.n_outputs, end * self.n_outputs)
            totals = sums[span]
            release(totals, schedule.sensitivity * self._unit, self._noise[number][step - 1])
            averaged = self.averaged[span] if step >= schedule.first_averaged else None
            state = self.velocity[span], self.weights[span], averaged
            update(totals, self._unit, schedule.momentum, self._steps[begin:end], *state)

    def average(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the averages of the last iterates: weights, shape (D, K), and constants."""
        count = self.n_steps - self.schedule.first_averaged + 1
        average = (self.averaged / count).reshape(-1, self.n_outputs)
        return average[: self._n_columns], average[self._n_columns :]
