"""The public schedule of noisy gradient descent, and the standard error that follows from it.

Nothing here looks at data. Training stops when its own noise has moved the margin of a unit row by
a standard deviation of `KAPPA` (docs/logistic.md).
"""

import math
from dataclasses import dataclass

KAPPA = 0.5
MOMENTUM = 0.8
STEPS = 300
# With h at most so much over N and the curvature of the loss, steps are stable at any momentum.
_STABLE = 2.0
# Part of the iterates, the last, that is averaged: in a flat loss that costs 4 % of the signal over
# the noise, half of them 8 %.
AVERAGED = 0.25


@dataclass(frozen=True)
class Schedule:
    """Steps of noisy gradient descent.

    `step_size`: h, for gradients summed over records.
    `first_averaged`: the first step, from 1, whose iterate is averaged.
    `noise_scale`: standard deviation of the noise in every coordinate of every gradient.
    `sensitivity`: how far a summed gradient can move between neighbours, in L2.
    """

    n_steps: int
    step_size: float
    momentum: float
    first_averaged: int
    noise_scale: float
    sensitivity: float

    @property
    def standard_error(self) -> float:
        """Standard deviation of every released weight by the noise alone."""
        return self.noise_scale * self.step_size * math.sqrt(sum(self._paths()))

    @property
    def reach(self) -> float:
        """What a released weight comes to if every gradient of its column is 1."""
        return self.step_size * sum(map(math.sqrt, self._paths()))

    def _paths(self) -> list[float]:
        """Return the squared weight of each step's noise in the average, over h^2."""
        count = self.n_steps - self.first_averaged + 1
        later, reach, squares = 0.0, 0.0, []
        for step in range(self.n_steps, 0, -1):
            # Iterates from this step on that are averaged feel its noise, and through the momentum
            # so do those of the next.
            later += step >= self.first_averaged
            reach = later / count + self.momentum * reach
            squares.append(reach * reach)
        return squares


def schedule_for(
    n_rows: float,
    mu: float,
    sensitivity: float,
    n_steps: int = STEPS,
    kappa: float = KAPPA,
    momentum: float = MOMENTUM,
    curvature: float = 0.25,
) -> Schedule:
    """Choose the steps from public numbers.

    `n_rows`: N, given as public or counted privately; only limits the step size.
    `mu`: Gaussian differential privacy of all steps together; infinity for no privacy.
    `kappa`: how far noise may move the margin of a unit row.
    """
    noise_scale = sensitivity * math.sqrt(n_steps) / mu
    largest = _STABLE / curvature / max(1.0, n_rows)
    step_size = largest
    if math.isfinite(mu):
        step_size = min(largest, (1.0 - momentum) * kappa * mu / (sensitivity * n_steps))
    first = n_steps - max(1, round(AVERAGED * n_steps)) + 1
    return Schedule(n_steps, step_size, momentum, first, noise_scale, sensitivity)
