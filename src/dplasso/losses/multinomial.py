"""Multinomial logistic loss of K classes, its residual vector bounded in L2.

The residual of a record of class y with class probabilities p (the softmax of its K margins) is the
vector ``p - e_y``, clipped to L2 norm C. At zero weights its norm is ``sqrt(1 - 1/K)``, so a bound
of that size does not clip the first gradient (docs/multiclass.md). Clipped vectors are not the
gradient of a loss, but they point in its direction. The link below is the exact inverse of the
margins at which their sum is 0.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.losses.contract import register
from dplasso.losses.exponential import exponential


class Multinomial(NamedTuple):
    """The multinomial logistic loss of a target in {0, ..., K - 1}.

    `n_classes`: K.
    `residual_bound`: bound C on the L2 norm of the residual vector, public.
    `weights`, shape (K,): weight of a record of each class, in (0, 1]; empty for 1.
    """

    n_classes: int
    residual_bound: float
    weights: NDArray[np.float64] = np.zeros(0)

    @property
    def n_labels(self) -> int:
        """One label."""
        return 1

    @property
    def n_outputs(self) -> int:
        """A margin for each class."""
        return self.n_classes

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of ``diag(p) - p p^T``."""
        return 0.5

    @property
    def offset(self) -> float:
        """Margins have none."""
        return 0.0

    @property
    def link_terms(self) -> tuple[float, bool]:
        """C of the link, which bounds the norm of all residuals."""
        return self.residual_bound, True

    def class_parts(self, labels: NDArray[np.float64]) -> list[NDArray[np.bool_]]:
        """Return which records are of each class but the first."""
        return [labels == k for k in range(1, self.n_classes)]

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of all classes, shape (N, K): the inverse of the residuals.

        Class probabilities P and softmax p balance, ``sum_j P_j f_j (p - e_j) = 0`` with ``f_j =
        min(1, C / |p - e_j|)``, exactly where ``P_j`` is proportional to ``p_j / f_j``.
        """
        p = softmax(margins)
        squares = (p * p).sum(axis=1, keepdims=True) - 2.0 * p + 1.0
        length = np.sqrt(np.maximum(squares, 0.0))
        return normalized(p * np.maximum(1.0, length / self.residual_bound))


def normalized(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows divided by their sums."""
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def softmax(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the class probabilities of the plain multinomial model, shape (N, K)."""
    return normalized(np.exp(margins - margins.max(axis=1, keepdims=True)))


def norm_bound(n_classes: int, residual_bound: float) -> float:
    """Return the L2 bound for a bound C on entries: C = 1/2 shortens nothing at zero weights."""
    return min(math.sqrt(2.0), 2.0 * residual_bound * residual_norm_at_zero(n_classes))


def residual_norm_at_zero(n_classes: int) -> float:
    """Return the length of every residual vector at zero weights, sqrt(1 - 1/K)."""
    return math.sqrt(1.0 - 1.0 / n_classes)


@njit(cache=True, nogil=True)
def multinomial_residuals(loss, margins, target, residuals):
    """Set `residuals` to the clipped ``p - e_y``; 0 if a margin is NaN.

    Rounding may make the norm exceed C, by less than the slack of unit rows.
    """
    largest = margins[0]
    for k in range(1, margins.size):
        if margins[k] > largest:
            largest = margins[k]
    total = squares = 0.0
    for k in range(margins.size):
        residuals[k] = exponential(margins[k] - largest)
        total += residuals[k]
    for k in range(margins.size):
        residuals[k] = residuals[k] / total - (1.0 if k == target else 0.0)
        squares += residuals[k] * residuals[k]
    norm = np.sqrt(squares)
    if norm > loss.residual_bound:
        shorter = loss.residual_bound / norm
        for k in range(margins.size):
            residuals[k] *= shorter
    elif not norm <= loss.residual_bound:
        residuals[:] = 0.0
    if loss.weights.size:
        for k in range(margins.size):
            residuals[k] *= loss.weights[np.int64(target)]


register(Multinomial, residual_vector=multinomial_residuals)
