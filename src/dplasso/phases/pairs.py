"""Which pairs of columns enter a fit: one noisy gradient of all pairs decides.

It is taken at the margins of a model of the single columns. The gradient of a pair is a table of
two columns. Its rows and columns have their means subtracted, because they belong to the single
columns. What is left is compared with the noise and with what sampling explains. All constants were
chosen on drawn tables (docs/tables.md).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from dplasso.gradient_descent.margins import LinearModel
from dplasso.gradient_descent.schedule import Stage
from dplasso.phases.course import Course, Descent, bounds, course_phase
from dplasso.phases.phase import Fit, Phase, deviation_of
from dplasso.phases.released import Released
from dplasso.phases.releases import Descended, Paired

# Share of the budget for the gradient of the pairs, and part of the rest for single columns alone.
PAIRS_SHARE, _BEFORE = 0.1, 0.5
# Pairs are looked at if N mu is at least this times the root of their number (and per output).
_SIGNAL = 500.0
# A pair enters if noise alone would show as much with less than this probability, and in fewer than
# this many of all pairs. Its entries are halved unless it would in fewer than the last number.
_CHANCE, _MANY, _FEW = 0.1, 3.0, 0.3
# A relative energy that halves the entries of a column once.
_HALVED = 9.0

Blocks = Sequence[tuple[int, int, int]]
"""The first column of each pair of columns, and the numbers of codes of both."""


def columns_of(blocks: Blocks) -> NDArray[np.int64]:
    """Return the columns of all pairs."""
    spans = [np.arange(first, first + left * right) for first, left, right in blocks]
    return np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)


def stages_with(
    blocks: Blocks, stage: Stage, signal: float, n_outputs: int
) -> tuple[Stage, Stage | None]:
    """Return the runs before and after the choice of pairs; None where pairs do not pay."""
    if signal < _SIGNAL * math.sqrt(len(blocks)) * n_outputs:
        return stage, None
    parts = _BEFORE, 1.0 - _BEFORE
    # The paths and the squared noises of both runs then add up to those of one run.
    first, last = (replace(stage, share=s, kappa=stage.kappa * math.sqrt(s)) for s in parts)
    return first, last


def pairs(descent: Descent, blocks: Blocks) -> Phase:
    """Release a gradient of all pairs, and choose those that enter the next gradients."""
    paired = columns_of(blocks)

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Paired:
        descended, scaling = released.last(Descended), descent.scaling(fit, released)
        assert descended is not None, "single columns come before pairs"
        columns = np.union1d(descended.columns, paired)
        own = np.searchsorted(columns, descended.columns)
        model = LinearModel(descended.weights, descended.intercept, scaling._replace(kept=own))
        loss = course.loss
        moved, places = fit.budget.moved_by(loss), np.searchsorted(columns, paired)
        deviation = deviation_of(moved, mu)
        rows = fit.records.gradients(loss, fit.threads, columns)
        beside = partial(rows.gradient_beside, model, places)
        gradient = fit.noisy(beside, moved, mu, course.n_records, loss.residual_bound)
        gradient = gradient.reshape(-1, loss.n_outputs)
        sampled = course.weight * loss.residual_bound**2 / len(blocks)
        halved = _chosen(gradient, blocks, deviation, sampled)
        if halved:
            # The next gradients are of more columns.
            fit.layouts.pop("descent", None)
        entered = columns_of([block for place, block in enumerate(blocks) if place in halved])
        energies = np.zeros(columns[-1] + 1, dtype=np.float32)
        energies[descended.columns] = released.energies if released.energies.size else 0.0
        for place, exponent in halved.items():
            energies[columns_of([blocks[place]])] = exponent * _HALVED
        entered = np.union1d(descended.columns, entered)
        return Paired(entered, energies[entered])

    return course_phase(
        descent,
        "pairs",
        float(paired.size * descent.loss.n_outputs),
        lambda course, *_: course.pairs or None,
        make,
        words="a noisy gradient in all pairs of columns, which decides which pairs enter",
        numbers=bounds(descent.loss),
    )


def _chosen(
    gradient: NDArray[np.float64], blocks: Blocks, deviation: float, sampled: float
) -> dict[int, int]:
    """Return the pairs that enter, and how often their entries are halved.

    `sampled`: a bound on the expected square of a pair's gradient if there is no interaction.
    """
    chosen, begin = {}, 0
    for place, (_, left, right) in enumerate(blocks):
        table = gradient[begin : begin + left * right].reshape(left, right, -1)
        begin += left * right
        for axis in (0, 1):
            table = table - table.mean(axis=axis, keepdims=True)
        freedom = (left - 1) * (right - 1) * table.shape[2]
        square = max(0.0, float(np.sum(table * table)) - sampled)
        by_chance = 1.0
        if square and freedom:
            ratio = square / deviation**2 if deviation else math.inf
            by_chance = float(chdtrc(freedom, ratio))
        if by_chance < min(_CHANCE, _MANY / len(blocks)):
            chosen[place] = int(by_chance * len(blocks) >= _FEW)
    return chosen
