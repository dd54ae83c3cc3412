"""The schedule of noisy gradient descent, and the standard error that follows from it.

It depends on public and released numbers only. Training stops when the accumulated noise moves the
margin of a unit row by `KAPPA` standard deviations (docs/logistic.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.budget import LARGEST_RATIO

# The constant entry of every row; larger ones cost accuracy.
CONSTANT = 0.1
# Weights of more than this many standard errors are significant.
SIGNIFICANT = 3.0
# Calibration after the last gradient: its share of the budget and its number of gradients.
CALIBRATION_SHARE, CALIBRATION_STEPS = 0.05, 60
KAPPA = 0.5
# Kappa grows by up to the first factor if the signal is large for the number of columns. In data
# with more columns than the second number most are rare, so only this fraction of them counts.
_FURTHER, _MANY_COLUMNS, _PART_OF_MANY = 1.4, 3000, 0.1
# The fewest steps are almost as accurate if the noise ends training. More steps, with more
# momentum, are needed if steps of that length would not be stable.
FEWEST_STEPS, MOST_STEPS = 50, 400
# Cuts lead to a short list of k weights: each stage runs on the columns that the previous stage
# kept. A stage that only ranks columns stops early (small kappa), because on a long path strong
# columns are fitted and stop growing while the noise of all others still grows. Each row is
# (columns kept over k, share of mu^2, kappa); the last stage keeps all its columns.
_CUTS = ((30, 0.4, 0.10), (5, 0.2, 0.10), (1, 0.2, 0.15), (0, 0.2, KAPPA))
# Gradients of a stage that ranks, of one in which columns enter, and of the last one.
RANKING_STEPS, SELECTING_STEPS, REFIT_STEPS = 24, 160, 80
# Columns of a table, at most the first number, have much in common, so forward selection has all of
# them and half of the budget. Of more columns, it chooses among those of two cuts, and lists of at
# most the second number: for longer ones, noise costs more than what columns have in common.
TABLE_COLUMNS, _MOST_SELECTED = 300, 10
# With directions of public rows the noise does not grow on a long path. So a
# list of at least this many weights needs one cut, after a run with this share of the budget.
FEWEST_AT_ONCE, _BEFORE_CUT = 50, 0.5
# Largest memory of the velocity, 1 / (1 - beta), over T, because a longer memory costs accuracy. If
# the noise is small, T is chosen for the second number over mu, and at least the third.
_MEMORY, _MEMORY_BY_MU, _LEAST_MEMORY = 0.15, 0.04, 0.05
# Fraction of the longest step at which gradient descent with momentum is stable.
_STABLE = 0.9
# The last fraction of the iterates is averaged.
AVERAGED = 0.25


@dataclass(frozen=True)
class Stage:
    """A run of gradient descent on some of the columns.

    `n_steps`: number of gradients, or its maximum if the run `is_adaptive`. `share`: of mu^2.
    `kappa`: standard deviation that the noise gives the margin of a unit row at the end.
    `grows`: whether kappa grows with the signal, see `further`.
    `most`: how many columns enter one after the other, see `ForwardSelection`; 0 for all at once.
    """

    n_steps: int
    share: float
    kappa: float
    n_columns: int
    is_adaptive: bool = False
    grows: bool = False
    most: int = 0


@dataclass(frozen=True)
class Schedule:
    """Steps of noisy gradient descent.

    `step_size`: h, for gradients summed over records. `first_averaged`: the first averaged step.
    `noise_scale`: standard deviation per coordinate if all steps had the same.
    """

    n_steps: int
    step_size: float
    momentum: float
    first_averaged: int
    noise_scale: float
    sensitivity: float

    @property
    def standard_error(self) -> float:
        """Standard deviation of every released weight due to the noise."""
        return self.step_size * float(np.linalg.norm(self.paths * self.noise_scales))

    @cached_property
    def noise_scales(self) -> NDArray[np.float64]:
        """Standard deviation of the noise of each gradient, shape (T,).

        The share of mu^2 of a gradient is proportional to its effect on the released weights, which
        minimises their noise for a flat loss. Shares are rounded to powers of two.
        """
        parts = np.exp2(np.round(np.log2(self.paths / self.paths.max())))
        parts = np.maximum(parts, LARGEST_RATIO**-2)
        scales: NDArray[np.float64] = self.noise_scale * np.sqrt(parts.mean() / parts)
        return scales

    def reach(self, bend: float = 0.0) -> float:
        """Return the released weight of a column whose gradient is ``1 - bend * weight``."""
        weight, velocity, total = 0.0, 0.0, 0.0
        for step in range(1, self.n_steps + 1):
            velocity = self.momentum * velocity + 1.0 - bend * weight
            weight += self.step_size * velocity
            total += weight * (step >= self.first_averaged)
        return total / (self.n_steps - self.first_averaged + 1)

    @cached_property
    def paths(self) -> NDArray[np.float64]:
        """The effect of each gradient on the averaged iterate of a flat loss, over h."""
        count = self.n_steps - self.first_averaged + 1
        later, reach, effects = 0.0, 0.0, np.empty(self.n_steps)
        for step in range(self.n_steps, 0, -1):
            # A gradient moves all later iterates, and through the momentum the later steps.
            later += step >= self.first_averaged
            reach = later / count + self.momentum * reach
            effects[step - 1] = reach
        return effects


def further(signal: float, n_columns: int) -> float:
    """Return the factor by which a run exceeds `KAPPA`, from public and released numbers.

    `signal`: N mu. `n_columns`: D, or K D with K outputs.
    """
    columns = min(n_columns, max(_MANY_COLUMNS, _PART_OF_MANY * n_columns))
    return min(_FURTHER, math.sqrt(max(1.0, signal / columns)))


def steps_that_pay(bent: float, fewest: int, most: int, mu: float = 0.0) -> int:
    """Return the number of stable steps that covers a path of length `bent` over curvature."""
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
    """Choose the steps from public and released numbers, with as little momentum as possible.

    `eigenvalue`: a bound on the largest eigenvalue of the Gram matrix of the unit rows: N, or one
    from released energies.
    `mu`: Gaussian differential privacy of all steps together; infinity for no privacy.
    `n_steps`: T; by default as many as `steps_that_pay`.
    `kappa`: standard deviation that the noise may give the margin of a unit row.
    """
    # For a flat loss the averaged iterate covers `path` when its noise reaches kappa. Steps are
    # stable up to h = 2 (1 + beta) / bend. With M = 1 / (1 - beta) and s the mean number of the
    # averaged iterates, such steps cover 2 (2 M - 1) (s + 1 - M) / bend.
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
    noise_scale = sensitivity * math.sqrt(n_steps) / mu
    longest = Schedule(n_steps, largest, momentum, first, noise_scale, sensitivity)
    return replace(longest, step_size=min(largest, path / float(longest.paths.sum())))


def plan_stages(
    max_weights: int | None, n_features: int, kappa: float = KAPPA
) -> tuple[Stage, ...]:
    """Divide gradients and budget among the stages; a cut that keeps all columns is left out."""
    if max_weights is None or max_weights >= n_features:
        return (Stage(MOST_STEPS, 1.0, kappa, n_features, is_adaptive=True, grows=True),)
    is_table = n_features <= TABLE_COLUMNS
    cuts = [cut for cut in _CUTS[2 * is_table :] if cut[0] * max_weights < n_features]
    total = sum(share for _, share, _ in cuts)
    columns = [n_features, *(kept * max_weights for kept, _, _ in cuts[:-1])]
    selects = is_table or max_weights <= _MOST_SELECTED
    stages = []
    for (kept, share, part), size in zip(cuts, columns, strict=True):
        ranks = kept > 1 or (kept == 1 and not selects)
        length = SELECTING_STEPS if kept else REFIT_STEPS
        stage = Stage(
            RANKING_STEPS if ranks else length,
            share / total,
            part * (kappa / KAPPA) if ranks else kappa,
            size,
            grows=not ranks,
            most=max_weights if kept and not ranks else 0,
        )
        stages.append(stage)
    return tuple(stages)


def with_directions(stages: Sequence[Stage | None]) -> Sequence[Stage | None]:
    """Return the stages if the first uses directions of public rows: one cut if it pays."""
    first, last = stages[0], stages[-1]
    if first is None or last is None or len(stages) == 1 or last.n_columns < FEWEST_AT_ONCE:
        return stages
    dense = plan_stages(None, first.n_columns, last.kappa)[0]
    others = [None] * (len(stages) - 2)
    ends = replace(dense, share=_BEFORE_CUT), replace(last, share=1.0 - _BEFORE_CUT)
    return ends[0], *others, ends[1]
