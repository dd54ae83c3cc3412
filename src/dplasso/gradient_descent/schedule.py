"""The public schedule of noisy gradient descent, and the standard error that follows from it.

Nothing here looks at data. Training stops when its own noise has moved the margin of a unit row by
a standard deviation of `KAPPA` (docs/logistic.md).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.budget import LARGEST_RATIO

# The constant entry of every row; larger ones cost accuracy.
CONSTANT = 0.1
# Weights beyond so many standard errors are significant.
SIGNIFICANT = 3.0
# Share of the budget of setting margins right after the last gradient, and the gradients of it,
# each of a slope and a constant for every output.
CALIBRATION_SHARE, CALIBRATION_STEPS = 0.05, 60
KAPPA = 0.5
# It goes up to so many times as far where the records tell much of each column: what they do not
# tell is little then. Of more columns than this most hardly ever occur, and a part of them counts.
_FURTHER, _MANY_COLUMNS, _PART_OF_MANY = 1.4, 3000, 0.1
# So few steps lose next to nothing where the noise ends training; more, with more momentum, where
# steps of that length would not be stable.
FEWEST_STEPS, MOST_STEPS = 50, 400
# A short list of k weights is reached by cuts: each stage runs on the columns that the one before
# kept. A stage that only ranks the columns stops early (small kappa): on a long path the strong
# columns are fitted and stop growing while the noise of all the others grows on. As (columns kept
# after it over k, share of mu^2, kappa); the last keeps what it has.
_CUTS = ((30, 0.4, 0.10), (5, 0.2, 0.10), (1, 0.2, 0.15), (0, 0.2, KAPPA))
_CUT_STEPS = 80
# Steps that the velocity remembers, 1 / (1 - beta), over T: more of them would cost accuracy. So
# would as many where the noise is small: T is chosen for fewer then, by this over mu, down to
# the last.
_MEMORY, _MEMORY_BY_MU, _LEAST_MEMORY = 0.15, 0.04, 0.05
# Of the longest step at which gradient descent with momentum is stable.
_STABLE = 0.9
# Part of the iterates, the last, that is averaged.
AVERAGED = 0.25


@dataclass(frozen=True)
class Stage:
    """A run of gradient descent on some of the columns.

    `n_steps`: gradients; the most of them where the run `is_adaptive`.
    `share`: of the part of mu^2 that the count leaves.
    `kappa`: how far noise may move the margin of a unit row, in standard deviations.
    `grows`: whether it goes further where the records tell much of each column, see `further`.
    """

    n_steps: int
    share: float
    kappa: float
    n_columns: int
    is_adaptive: bool = False
    grows: bool = False


@dataclass(frozen=True)
class Schedule:
    """Steps of noisy gradient descent.

    `step_size`: h, for gradients summed over records.
    `first_averaged`: the first step, from 1, whose iterate is averaged.
    `noise_scale`: standard deviation of the noise in every coordinate, were it that of every step.
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
        return self.step_size * float(np.linalg.norm(self._paths * self.noise_scales))

    @cached_property
    def noise_scales(self) -> NDArray[np.float64]:
        """Standard deviation of the noise in every coordinate of each gradient, shape (T,).

        A gradient has a part of mu^2 as large as its part of the released weights: of what moves
        them as far in a flat loss, that moves them least by noise. Parts are rounded to powers of
        two, so that few deviations differ.
        """
        parts = np.exp2(np.round(np.log2(self._paths / self._paths.max())))
        parts = np.maximum(parts, LARGEST_RATIO**-2)
        scales: NDArray[np.float64] = self.noise_scale * np.sqrt(parts.mean() / parts)
        return scales

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

    @cached_property
    def _paths(self) -> NDArray[np.float64]:
        return paths(self.n_steps, self.momentum, self.first_averaged)


def paths(n_steps: int, momentum: float, first_averaged: int) -> NDArray[np.float64]:
    """Return how far each gradient moves the average of the iterates in a flat loss, over h."""
    count = n_steps - first_averaged + 1
    later, reach, found = 0.0, 0.0, np.empty(n_steps)
    for step in range(n_steps, 0, -1):
        # Iterates from this step on that are averaged feel it, and through the momentum so do
        # those of the next.
        later += step >= first_averaged
        reach = later / count + momentum * reach
        found[step - 1] = reach
    return found


def further(told: float, n_columns: int) -> float:
    """Return how many times as far as `KAPPA` a run goes, from public and released numbers.

    `told`: how many standard deviations of all the noise N records pull with at most: N mu.
    `n_columns`: D; K times as many of K outputs.
    """
    columns = min(n_columns, max(_MANY_COLUMNS, _PART_OF_MANY * n_columns))
    return min(_FURTHER, math.sqrt(max(1.0, told / columns)))


def steps_that_pay(bent: float, fewest: int, most: int, mu: float = 0.0) -> int:
    """Return how many stable steps go as far as the noise lets them, within limits.

    `bent`: how far that is in a flat loss, times how much the loss bends.
    `mu`: Gaussian differential privacy of all steps together.
    """
    # As in `schedule_for`, with M = memory T and s = (1 - AVERAGED / 2) T.
    needed = bent / (2.0 * _STABLE)
    memory = max(_LEAST_MEMORY, min(_MEMORY, _MEMORY_BY_MU / mu)) if mu else _MEMORY
    root = math.sqrt(1.0 + 8.0 * memory * needed / (1.0 - AVERAGED / 2.0 - memory))
    return math.ceil(max(fewest, min(float(most), (1.0 + root) / (4.0 * memory))))


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

    The momentum is as small as stable steps allow.
    """
    # In a flat loss the average goes as far as `path`, and its noise as far as kappa. Steps are
    # stable up to h = 2 (1 + beta) / bend. With M = 1 / (1 - beta) and iterates averaged whose mean
    # number is s, such steps go as far as 2 (2 M - 1) (s + 1 - M) / bend.
    bend, path = curvature * max(1.0, eigenvalue), kappa * mu / sensitivity
    needed = path * bend / (2.0 * _STABLE)
    if n_steps is None:
        n_steps = steps_that_pay(path * bend, FEWEST_STEPS, MOST_STEPS, mu)
    first = n_steps - max(1, round(AVERAGED * n_steps)) + 1
    ahead = (first + n_steps) / 2.0 + 1.0
    square = (2.0 * ahead - 1.0) ** 2 - 8.0 * needed
    remembered = (2.0 * ahead + 1.0 - math.sqrt(square)) / 4.0 if square > 0.0 else math.inf
    remembered = max(1.0, min(remembered, _MEMORY * n_steps))
    momentum = 1.0 - 1.0 / remembered
    largest = 2.0 * _STABLE * (1.0 + momentum) / bend
    step_size = min(largest, path / float(paths(n_steps, momentum, first).sum()))
    noise_scale = sensitivity * math.sqrt(n_steps) / mu
    return Schedule(n_steps, step_size, momentum, first, noise_scale, sensitivity)


def plan_stages(
    max_weights: int | None, n_features: int, kappa: float = KAPPA
) -> tuple[Stage, ...]:
    """Divide gradients and budget among the runs.

    Cuts that would keep all columns are left out, and their budget goes to the others.

    `kappa`: of a dense run; those of cuts are in proportion.
    """
    if max_weights is None or max_weights >= n_features:
        return (Stage(MOST_STEPS, 1.0, kappa, n_features, is_adaptive=True, grows=True),)
    cuts = [cut for cut in _CUTS if cut[0] * max_weights < n_features]
    total = sum(share for _, share, _ in cuts)
    columns = [n_features, *(kept * max_weights for kept, _, _ in cuts[:-1])]
    return tuple(
        Stage(_CUT_STEPS, share / total, part * (kappa / KAPPA), size, grows=not kept)
        for (kept, share, part), size in zip(cuts, columns, strict=True)
    )
