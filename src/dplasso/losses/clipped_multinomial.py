"""Multinomial logistic loss of K classes, every entry of its residual vector within [-C, C].

A record of class y has the margin ``m = v_y - log sum_{k != y} exp(v_k)`` of its class over all
others, and its loss is the clipped logistic loss of that margin (`dplasso.losses.logistic`): convex
and falling in m, which is concave in v, so convex. With p the softmax of v, its gradient is

    min(1 - p_y, C)  times  -1 at y, and at k != y the softmax of the other classes,

which no entry exceeds in size. At K = 2 it is that loss itself. So the draw of a vertex costs the
same for every K (docs/multiclass.md).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.contract import register_vector
from dplasso.losses.exponential import exponential

# How far one residual moves, at most, when all margins move by 1: p (1 - p) times the range 2.
STEEPEST = 0.5
# The link is inverted by so many rounds; each brings the shares about twice as close.
_ROUNDS = 100


class ClippedMultinomial(NamedTuple):
    """The multinomial logistic loss of a target in {0, ..., K - 1}, clipped entry by entry.

    Attributes
    ----------
    residual_bound : float
        C in [1/2, 1], public.
    offsets : ndarray of float64, shape (K,)
        Added to the margins: public, or released before.
    weights : ndarray of float64, shape (K,)
        What the loss of a record of each class counts, in (0, 1]: residuals stay within C. Empty
        for 1.
    """

    residual_bound: float
    offsets: NDArray[np.float64]
    weights: NDArray[np.float64] = np.zeros(0)

    @property
    def n_outputs(self) -> int:
        """A margin for each class."""
        return self.offsets.size

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of ``diag(p) - p p^T``."""
        return 0.5


@njit(cache=True, nogil=True)
def clipped_residuals(loss, margins, target, residuals):
    """Set `residuals` to those of a record; margins that are no numbers pull with nothing."""
    largest = margins[0] + loss.offsets[0]
    for k in range(1, margins.size):
        largest = max(largest, margins[k] + loss.offsets[k])
    total = others = 0.0
    for k in range(margins.size):
        part = exponential(margins[k] + loss.offsets[k] - largest)
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


register_vector(ClippedMultinomial, clipped_residuals)


def clipped_multinomial_probabilities(
    margins: NDArray[np.float64], residual_bound: float
) -> NDArray[np.float64]:
    """Compute the probabilities of all classes, by the inverse link of the clipped residuals.

    Class probabilities P and softmax p balance, ``sum_y P_y q(y) = 0`` with q(y) the residual of a
    record of class y, exactly where ``P_y`` is proportional to ``p_y max(1, (1 - p_y) / C)``.

    `margins`, shape (N, K): margins, offsets included.
    `residual_bound`: C; 1 gives the plain softmax.

    Returns shape (N, K).
    """
    p: Any = np.exp(margins - margins.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p *= np.maximum(1.0, (1.0 - p) / residual_bound)
    probabilities: NDArray[np.float64] = p / p.sum(axis=1, keepdims=True)
    return probabilities


def balanced_margins(shares: NDArray[np.float64], residual_bound: float) -> NDArray[np.float64]:
    """Return the margins at which the mean residual of classes with these shares is zero.

    `shares`, shape (K,): of the records; positive, with the sum 1.
    `residual_bound`: C.

    Returns shape (K,): with the probabilities `shares` by the link above.
    """
    p = shares
    for _ in range(_ROUNDS):
        p = shares / np.maximum(1.0, (1.0 - p) / residual_bound)
        p = p / p.sum()
    margins: NDArray[np.float64] = np.log(p)
    return margins
