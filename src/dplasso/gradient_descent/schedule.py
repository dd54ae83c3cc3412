"""The public schedule of noisy gradient descent, and the standard error that follows from it.

Nothing here looks at data. Training stops when its own noise has moved the margin of a unit row by
a standard deviation of `KAPPA` (docs/logistic.md).
"""

import math
from dataclasses import dataclass

KAPPA = 0.5
# It goes up to so many times as far where the records tell much of each column: what they do not
# tell is little then. Of more columns than this most hardly ever occur, and a part of them counts.
_FURTHER, _MANY_COLUMNS, _PART_OF_MANY = 1.4, 3000, 0.1
# So few steps lose next to nothing where the noise ends training; more, with more momentum, where
# steps of that length would not be stable.
FEWEST_STEPS, MOST_STEPS = 100, 400
# Steps that the velocity remembers, 1 / (1 - beta), over T: more of them cost accuracy.
_MEMORY = 0.05
_LARGEST_MEMORY = 0.125
# Of the longest step at which gradient descent with momentum is stable.
_STABLE = 0.7
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

    def reach(self, bend: float = 0.0) -> float:
        """Return what a released weight comes to whose gradient is 1 at zero, and falls with it.

        `bend`: by how much, for a weight of 1: the column's energy times the loss's curvature.
        """
        weight, velocity, total = 0.0, 0.0, 0.0
        for step in range(1, self.n_steps + 1):
            velocity = self.momentum * velocity + 1.0 - bend * weight
            weight += self.step_size * velocity
            total += weight * (step >= self.first_averaged)
        return total / (self.n_steps - self.first_averaged + 1)

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


def further(told: float, n_columns: int) -> float:
    """Return how many times as far as `KAPPA` a run goes, from public and released numbers.

    `told`: how many standard deviations of all the noise N records pull with at most: N mu.
    `n_columns`: D; K times as many of K outputs.
    """
    columns = min(n_columns, max(_MANY_COLUMNS, _PART_OF_MANY * n_columns))
    return min(_FURTHER, math.sqrt(max(1.0, told / columns)))


def steps_that_pay(bent: float, fewest: int, most: int, memory: float = _MEMORY) -> int:
    """Return how many stable steps reach as far as the noise lets them, within limits.

    `bent`: how far that is, path, times by how much the loss bends.
    `memory`: steps that the velocity may remember, over T.
    """
    # With 1 - beta = 1 / (memory T) that is T (2 memory T - 1) >= path bend / (2 _STABLE).
    root = math.sqrt(1.0 + 4.0 * memory * bent / _STABLE)
    return math.ceil(min(most, max(fewest, (1.0 + root) / (4.0 * memory))))


def schedule_for(
    eigenvalue: float,
    mu: float,
    sensitivity: float,
    n_steps: int | None = None,
    kappa: float = KAPPA,
    curvature: float = 0.25,
) -> Schedule:
    """Choose the steps from public and released numbers.

    `eigenvalue`: a bound on the largest eigenvalue of the Gram matrix of the unit rows: N, public
    or counted privately, or what released energies say. It only limits the step size.
    `mu`: Gaussian differential privacy of all steps together; infinity for no privacy.
    `n_steps`: T; None for as many as pay.
    `kappa`: how far noise may move the margin of a unit row.
    `curvature`: of the loss.

    The momentum is as small as stable steps allow: what it still holds in the end was paid for.
    """
    # Steps are stable up to h = 2 (1 + beta) / bend, and noise asks for h = (1 - beta) path / T.
    bend, path = curvature * max(1.0, eigenvalue), kappa * mu / sensitivity
    if n_steps is None:
        n_steps = steps_that_pay(path * bend, FEWEST_STEPS, MOST_STEPS)
    slowest = path * bend / (2.0 * _STABLE * n_steps)
    stable = (slowest - 1.0) / (slowest + 1.0) if math.isfinite(slowest) else 1.0
    most = 1.0 - 1.0 / max(1.0, _LARGEST_MEMORY * n_steps)
    momentum = min(most, max(0.0, stable))
    largest = 2.0 * _STABLE * (1.0 + momentum) / bend
    step_size = min(largest, (1.0 - momentum) * path / n_steps)
    noise_scale = sensitivity * math.sqrt(n_steps) / mu
    first = n_steps - max(1, round(AVERAGED * n_steps)) + 1
    return Schedule(n_steps, step_size, momentum, first, noise_scale, sensitivity)
