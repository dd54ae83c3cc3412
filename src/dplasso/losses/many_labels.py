"""Logistic loss of many labels at once, each of which a record has or has not.

A record has a margin and a residual for each of L labels, ``clip(sigma(v_l) - y_l, -c, c)``: those
of L logistic losses with a bounded residual (`dplasso.losses.logistic`). Together they are no
longer, in L2, than ``C = c sqrt(L)``, and at zero weights every record's are that long: so one
release for all labels needs sqrt(L) times the noise of one label's.
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
        """What the link is made with: c, which bounds each residual."""
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
    """Set `residuals` to those of a record, `target` to have a number for each label.

    Their length exceeds C by a few roundings at most, less than the slack that unit rows leave.
    """
    bound = loss.residual_bound / np.sqrt(np.float64(margins.size))
    for k in range(margins.size):
        residuals[k] = clip(sigma(margins[k]) - target[k], bound)


register(ManyLogistic, residual_vector=label_residuals)
