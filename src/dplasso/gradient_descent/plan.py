"""What a fit of the gradient family does, from public numbers: its runs, and their budget."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.schedule import KAPPA, MOST_STEPS

# The constant entry of every row; larger ones cost accuracy.
CONSTANT = 0.1
# Weights beyond so many standard errors are significant.
SIGNIFICANT = 3.0
# A public start is taken whole where records times mu are no more than this, and beyond as much
# less of it. Where few columns are corrected, what is wrong in the others stays.
LEARNT, LEARNT_OF_FEW = 56.0, 10.0
# A short list of k weights is reached by cuts: each stage runs on the columns that the one before
# kept. A stage that only ranks the columns stops early (small kappa): on a long path the strong
# columns are fitted and stop growing while the noise of all the others grows on. As (columns kept
# after it over k, share of mu^2, kappa); the last keeps what it has.
_CUTS = ((30, 0.4, 0.10), (5, 0.2, 0.10), (1, 0.2, 0.15), (0, 0.2, KAPPA))
_CUT_STEPS = 80


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
class RunPlan:
    """The public parameters of a fit.

    `stages`: the runs; the first on all columns.
    `significant`: whether only significant weights are kept in the end.
    `norm_bound`: what longer rows are scaled down to and all divided by; None makes unit rows.
    `n_records`: N, if it is public.
    `calibration`: share of what the count leaves that calibrates the margins; 0 leaves them.
    `start`: the same of finding slope and constants of a public start.
    `learnt`: records times mu up to which a start is taken whole, see `blend.part_taken`.
    """

    stages: tuple[Stage, ...]
    significant: bool
    fit_intercept: bool
    norm_bound: float | None
    n_records: float | None
    calibration: float = 0.0
    start: float = 0.0
    learnt: float = LEARNT

    @property
    def ends(self) -> list[int]:
        """Gradients done at the end of each stage."""
        return list(accumulate(stage.n_steps for stage in self.stages))


def plan_stages(
    n_steps: int | None, max_weights: int | None, n_features: int, kappa: float = KAPPA
) -> tuple[Stage, ...]:
    """Divide gradients and budget among the runs.

    Cuts that would keep all columns are left out, and their budget goes to the others.

    `n_steps`: gradients in all; None for as many as pay of a dense run, 80 of each of the others.
    `kappa`: of a dense run; those of cuts are in proportion.
    """
    if max_weights is None or max_weights >= n_features:
        most, adaptive = n_steps or MOST_STEPS, n_steps is None
        return (Stage(most, 1.0, kappa, n_features, adaptive, grows=True),)
    cuts = [cut for cut in _CUTS if cut[0] * max_weights < n_features]
    if n_steps is not None:
        cuts = cuts[-n_steps:]
    each, rest = (_CUT_STEPS, 0) if n_steps is None else divmod(n_steps, len(cuts))
    total, lengths = sum(share for _, share, _ in cuts), [each] * len(cuts)
    lengths[-1] += rest
    columns = [n_features, *(kept * max_weights for kept, _, _ in cuts[:-1])]
    return tuple(
        Stage(length, share / total, part * (kappa / KAPPA), size, grows=not kept)
        for length, (kept, share, part), size in zip(lengths, cuts, columns, strict=True)
    )


def largest(weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the places of the largest magnitudes, ascending; the first wins a tie."""
    order = np.argsort(-np.abs(weights), kind="stable")
    return np.sort(order[:count]).astype(np.int64)
