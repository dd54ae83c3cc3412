"""Multi-label logistic loss: a sample may have any subset of L labels.

A record has a margin and a residual for each label, ``clip(sigma(v_l) - y_l, -c, c)``, as L
logistic losses with bounded residuals have (`dplasso.losses.logistic`). The L2 norm of all
residuals is at most ``C = c sqrt(L)``, and exactly that at zero weights. So one release for all
labels needs sqrt(L) times the noise of a release for one label.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.contract import register
from dplasso.losses.logistic import Logistic, sigma
from dplasso.matrix.compressed import clip


class ManyLogistic(NamedTuple):
    """The logistic losses of L targets in {0, 1}.

    `n_labels`: L.
    `residual_bound`: bound C on the L2 norm of a record's residuals, public.
    """

    n_labels: int
    residual_bound: float

    @property
    def n_outputs(self) -> int:
        """A margin for each label."""
        return self.n_labels

    @property
    def curvature(self) -> float:
        """That of the logistic loss at 0: no label's margin bends another's loss."""
        return 0.25

    @property
    def link_terms(self) -> tuple[float, bool]:
        """C of the link: c, which bounds each residual."""
        return min(1.0, max(0.5, self.residual_bound / math.sqrt(self.n_labels))), False

    @property
    def offset(self) -> float:
        """Margins have none."""
        return 0.0

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each label, shape (N, L): the inverse of its residuals."""
        return Logistic(self.link_terms[0]).link(margins.ravel())[:, 1].reshape(margins.shape)


@njit(cache=True, nogil=True)
def label_residuals(loss, margins, target, residuals):
    """Set `residuals` to the residuals of a record; `target` has a number for each label.

    Rounding may make their norm exceed C, by less than the slack of unit rows.
    """
    bound = loss.residual_bound / np.sqrt(np.float64(margins.size))
    for k in range(margins.size):
        residuals[k] = clip(sigma(margins[k]) - target[k], bound)


register(ManyLogistic, residual_vector=label_residuals)
