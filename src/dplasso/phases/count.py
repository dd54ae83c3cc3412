"""Counting the records or each class of them, and which levels of bins enter by the count."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.squared import Squared
from dplasso.losses.targets import PART_BITS, count_classes, sum_squares
from dplasso.phases.phase import Fit, Phase, at_once, deviation_of
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Counted, Entered, Release, Spread
from dplasso.privacy.accounting import LARGEST_SCALE
from dplasso.privacy.budget import Budget, Draws
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.privacy.wording import number_of_classes

# Share of the budget for counting the records.
COUNT_SHARE = 0.01
# Share of the budget for the spread of a regression's targets.
SPREAD_SHARE = 0.02
# The name of the phase.
COUNT = "count"
# The squares of targets, less 1/2, move as residuals of this bound do.
_SQUARE = Squared(0.5)
# The mean square is taken half a standard deviation of its noise too large, and is at least that.
_BEYOND = 0.5


def count(
    task: Any,
    loss: Any = None,
    n_records: int | None = None,
    *,
    share: float = COUNT_SHARE,
) -> Phase:
    """Return the phase that counts the records: with `loss` by class, otherwise all alike.

    `n_records`: N, where it is public. `share`: of the budget.
    """
    words = "" if n_records is not None else "a noisy count of the records"
    if loss is not None:
        words = "noisy counts at both ends of the interval of the targets"
        if task.classes.size:
            words = f"noisy counts of the {number_of_classes(task.classes.size)} classes"

    def moved(budget: Budget) -> float:
        if loss is None and n_records is not None:
            return 0.0
        return budget.moved_counts(by_class=loss is not None)

    def counted(fit: Fit, released: Released, mu: float) -> Counted:  # noqa: ARG001
        records = fit.records
        if loss is None and records.weighted and math.isinf(mu):
            # Without privacy, weights stand for repeated rows. A private fit takes the number of
            # rows, because the sum of the weights is not public under replace-one.
            weights = np.concatenate(records.of_targets(lambda own: own.weights))
            return Counted(np.array([weights.sum()]), 0.0)
        sensitivity = moved(fit.budget)
        # If people are replaced, everybody has at least one row, even one of weight 0.
        weighing = fit.budget.neighbors == "add-remove"
        rows = records.of_targets(lambda own: own.count_rows(weighing=weighing))
        exact, part_bits, public = [n_records or sum(rows)], 0, n_records
        if loss is not None:
            if not (public or fit.budget.moved_by_features(1.0)):
                public = int(release(np.array(exact, dtype=np.int64), 0.0, None)[0])
            of_each = records.of_targets(partial(count_classes, loss))
            exact, part_bits = np.sum(of_each, axis=0).tolist(), PART_BITS
        noisy = noisy_counts(exact, sensitivity, mu, fit.stream, part_bits)
        if public is not None and not records.weighted:
            # The sum is public, so all counts are shifted alike to match it.
            noisy = np.maximum(1.0, noisy - (noisy.sum() - public) / noisy.size)
        exactly = math.isinf(mu) or not sensitivity
        return Counted(noisy, 0.0 if exactly else sensitivity / mu)

    return Phase(
        COUNT,
        Draws(gaussian=float(max(2, task.classes.size))),
        share=lambda budget, _: share if moved(budget) > 0.0 else 0.0,
        begin=at_once(counted),
        words=words,
        numbers=lambda budget: {
            "share": share,
            "sensitivity": moved(budget),
            "counts": float(1 if loss is None else max(2, task.classes.size)),
        },
    )


def noisy_counts(
    counts: list[int], sensitivity: float, mu: float, stream: RandomStream, part_bits: int = 0
) -> NDArray[np.float64]:
    """Return noisy counts of at least 1; exact ones where `sensitivity` is 0 or `mu` infinite.

    `counts`: in units of ``2**-part_bits`` records. `sensitivity`: in records, in L2.
    """
    exact = np.array(counts, dtype=np.int64)
    if sensitivity == 0 or math.isinf(mu):
        return release(exact, sensitivity * 2.0**part_bits, None) / 2.0**part_bits
    # In units of 2^-32, or coarser ones if the noise needs more than 64-bit words.
    scale, bits = sensitivity / mu * 2.0**32, 32
    while scale > LARGEST_SCALE:
        scale, bits = scale / 2.0, bits - 1
    # In coarser units than the parts, the counts are dropped: rounded, they could move by one unit.
    exact = exact << bits - part_bits if bits >= part_bits else np.zeros_like(exact)
    noise = Gaussian(scale, word_buffers(stream, 1)[0])
    return np.maximum(1.0, release(exact, sensitivity * 2.0**bits, noise) / 2.0**bits)


def spread() -> Phase:
    """Return the phase that finds how far the targets of a regression spread, see `Spread`."""

    def make(fit: Fit, released: Released, mu: float) -> Release:
        counted, moved = counted_of(released), fit.budget.moved_by(_SQUARE)
        bound = _SQUARE.residual_bound

        def squares(unit: float) -> NDArray[np.int64]:
            return np.array([sum(fit.records.of_targets(partial(sum_squares, unit)))])

        square = 0.5 + float(fit.noisy(squares, moved, mu, counted.total, bound)[0]) / counted.total
        if counted.counts.size > 1:
            mean = _SQUARE.starting_offset(counted.counts, 0.0)
            start = _SQUARE.starting_offset(counted.counts, counted.deviation)
            square += start * start - 2.0 * mean * start
        noise = _BEYOND * deviation_of(moved, mu) / counted.total
        return Spread(math.sqrt(min(1.0, max(0.0, square) + noise)))

    return Phase(
        "spread",
        Draws(gaussian=1.0),
        share=lambda *_: SPREAD_SHARE,
        begin=at_once(make),
        words="a noisy sum of the squares of the targets, as numbers from -1 to 1",
        numbers=lambda budget: {"sensitivity": budget.moved_by(_SQUARE)},
    )


def counted_of(released: Released) -> Counted:
    """Return the counts that every plan begins with."""
    counted = released.last(Counted)
    assert counted is not None, "records are counted first"
    return counted


# A level of `_BINS` bins enters if N mu is at least this for each column that it adds, and four
# times as much for twice as many bins. Chosen on UCI Adult and on made-up tables (docs/tables.md).
_SIGNAL, _BINS = 2.5, 16

Spans = Sequence[tuple[int, int, int]]
"""Levels that may be too fine: number of bins, first column, and the column after the last."""


def entering(spans: Spans, n_features: int, n_outputs: int, signal: float) -> NDArray[np.int64]:
    """Return all columns but those of levels that are too fine; `signal` is N mu."""
    taken = np.ones(n_features, np.bool_)
    for level in {bins for bins, _, _ in spans}:
        own = [(first, last) for bins, first, last in spans if bins == level]
        added = n_outputs * level * len(own)
        if signal < _SIGNAL * (level / _BINS) ** 2 * added:
            for first, last in own:
                taken[first:last] = False
    return np.flatnonzero(taken).astype(np.int64)


def levels(
    spans: Spans, n_features: int, n_outputs: int, later: NDArray[np.int64] = NO_COLUMNS
) -> Phase:
    """Return the phase that leaves out too fine levels and `later` columns, by releases alone."""

    def make(fit: Fit, released: Released, mu: float) -> Release | None:  # noqa: ARG001
        budget = fit.budget
        mu_left = budget.mu_of(1.0 - released.spent) / budget.moved(1.0)
        columns = entering(spans, n_features, n_outputs, counted_of(released).total * mu_left)
        columns = np.setdiff1d(columns, later, assume_unique=True)
        return None if columns.size == n_features else Entered(columns)

    return Phase("levels", Draws(), lambda *_: 0.0, at_once(make))
