"""Multinomial logistic loss of K classes, every entry of its residual vector within [-C, C].

A record of class y has the margin ``m = v_y - log sum_{k != y} exp(v_k)`` of its class over all
others, and its loss is the clipped logistic loss of that margin (`dplasso.losses.logistic`): convex
and falling in m, which is concave in v, so convex. With p the softmax of v, its gradient is

    min(1 - p_y, C)  times  -1 at y, and at k != y the softmax of the other classes,

so every entry is at most C in size. For K = 2 this is the clipped logistic loss. The privacy cost
of a vertex is therefore the same for every K (docs/multiclass.md).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.balance import class_shares
from dplasso.losses.contract import register
from dplasso.losses.exponential import exponential
from dplasso.losses.multinomial import normalized, softmax

# How far one residual moves, at most, when all margins move by 1: p (1 - p) times the range 2.
STEEPEST = 0.5
# The link is inverted by so many rounds; each brings the shares about twice as close.
_ROUNDS = 100


class ClippedMultinomial(NamedTuple):
    """The multinomial logistic loss of a target in {0, ..., K - 1}, clipped entry by entry.

    `residual_bound`: C in [1/2, 1], public.
    `offset`, shape (K,): added to the margins; public or released.
    `weights`, shape (K,): weight of a record of each class, in (0, 1]; empty for 1.
    """

    residual_bound: float
    offset: NDArray[np.float64]
    weights: NDArray[np.float64] = np.zeros(0)

    @property
    def n_labels(self) -> int:
        """One label."""
        return 1

    @property
    def n_outputs(self) -> int:
        """A margin for each class."""
        return self.offset.size

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of ``diag(p) - p p^T``."""
        return 0.5

    @property
    def link_terms(self) -> tuple[float, bool]:
        """C of the link, which bounds each residual."""
        return self.residual_bound, False

    def class_parts(self, labels: NDArray[np.float64]) -> list[NDArray[np.bool_]]:
        """Return which records are of each class but the first."""
        return [labels == k for k in range(1, self.n_outputs)]

    def starting_offset(self, counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
        """Return the K margins that minimise the loss without columns; see `class_shares`."""
        weighted = counts * self.weights if self.weights.size else counts
        p = shares = class_shares(weighted, deviation)
        for _ in range(_ROUNDS):
            p = shares / np.maximum(1.0, (1.0 - p) / self.residual_bound)
            p = p / p.sum()
        return np.log(p)

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of all classes, shape (N, K): the inverse of the residuals.

        Class probabilities P and softmax p balance, ``sum_y P_y q(y) = 0`` with q(y) the residual
        of a record of class y, exactly where ``P_y`` is proportional to ``p_y max(1, (1 - p_y) /
        C)``.
        """
        p = softmax(margins + self.offset)
        return normalized(p * np.maximum(1.0, (1.0 - p) / self.residual_bound))


@njit(cache=True, nogil=True)
def clipped_residuals(loss, margins, target, residuals):
    """Set `residuals` to the residuals of a record; 0 if a margin is NaN."""
    largest = margins[0] + loss.offset[0]
    for k in range(1, margins.size):
        largest = max(largest, margins[k] + loss.offset[k])
    total = others = 0.0
    for k in range(margins.size):
        part = exponential(margins[k] + loss.offset[k] - largest)
        residuals[k] = part
        total += part
        if k != target:
            others += part
    pull = others / total
    if not pull > 0.0:
        residuals[:] = 0.0
        return
    pull = min(pull, loss.residual_bound)
    if loss.weights.size:
        pull *= loss.weights[np.int64(target)]
    for k in range(margins.size):
        # No share of the others exceeds all of them, rounded or not.
        residuals[k] = -pull if k == target else min(residuals[k] / others * pull, pull)


register(ClippedMultinomial, residual_vector=clipped_residuals)
