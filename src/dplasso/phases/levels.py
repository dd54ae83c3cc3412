"""Which levels of bins enter a fit: from the schema, the noisy count and the budget alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dplasso.phases.contract import Fit, OneRelease
from dplasso.phases.count import counted_of
from dplasso.phases.released import Released
from dplasso.phases.releases import Entered, Release
from dplasso.privacy.budget import Draws

# A level of `_BINS` bins enters where all records pull with so many standard deviations of the
# noise for each column that it adds. Twice as many bins differ by a quarter of the energy, which
# takes four times as much to find. Chosen on a split of UCI Adult's training rows and on made-up
# tables (docs/tables.md).
_TOLD, _BINS = 2.5, 16

Spans = Sequence[tuple[int, int, int]]
"""Of each level that may be too fine its bins, its first column and the one after its last."""


def entering(spans: Spans, n_features: int, n_outputs: int, told: float) -> NDArray[np.int64]:
    """Return the columns that enter: all but those of levels that are too fine.

    `told`: how many standard deviations of all the noise the records pull with at most: N mu.
    """
    taken = np.ones(n_features, np.bool_)
    for level in {bins for bins, _, _ in spans}:
        own = [(first, last) for bins, first, last in spans if bins == level]
        added = n_outputs * level * len(own)
        if told < _TOLD * (level / _BINS) ** 2 * added:
            for first, last in own:
                taken[first:last] = False
    return np.flatnonzero(taken).astype(np.int64)


def levels(spans: Spans, n_features: int, n_outputs: int) -> OneRelease:
    """Leave out the levels that are too fine: of what was released, for nothing."""

    def make(fit: Fit, released: Released, mu: float) -> Release | None:  # noqa: ARG001
        budget = fit.budget
        pull = budget.mu_of(1.0 - released.spent) / budget.moved(1.0)
        columns = entering(spans, n_features, n_outputs, counted_of(released).total * pull)
        return None if columns.size == n_features else Entered(columns)

    return OneRelease("levels", Draws(), lambda *_: 0.0, make)
