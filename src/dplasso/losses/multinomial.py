"""Multinomial logistic losses of K classes: residuals bounded in L2, or each entry in [-C, C].

`Multinomial`: the residual of a record of class y with class probabilities p (the softmax of its K
margins) is ``p - e_y``, clipped to L2 norm C. At zero weights its norm is ``sqrt(1 - 1/K)``, so a
bound of that size does not clip the first gradient (docs/multiclass.md). Clipped vectors are not
the gradient of a loss, but they point in its direction.

`ClippedMultinomial`: a record of class y has the margin ``m = v_y - log sum_{k != y} exp(v_k)``,
and its loss is the clipped logistic loss of that margin, which is convex. With p the softmax of v,
its gradient is

    min(1 - p_y, C)  times  -1 at y, and at k != y the softmax of the other classes,

so every entry is at most C in size, and the privacy cost of a vertex is the same for every K.

Both are ``a (p - e_y)`` with a in [0, 1]. The distance of two such vectors of one p is convex in
both a, so largest where each is 0 or 1. There it is the length of one of them or ``|e_y - e_z|``,
at most sqrt(2).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.losses.exponential import exponential
from dplasso.losses.loss import class_shares, register
from dplasso.runtime.compilation import kernel

# Iterations that invert the link; each about halves the error.
_ROUNDS = 100


class Multinomial(NamedTuple):
    """The multinomial logistic loss of a target in {0, ..., K - 1}.

    `residual_bound`: bound C on the L2 norm of the residual vector, public.
    `weights`, shape (K,): weight of a record of each class, in (0, 1]; empty for 1.
    """

    n_classes: int
    residual_bound: float
    weights: NDArray[np.float64] = np.zeros(0)

    @property
    def label_distance(self) -> float:
        return min(math.sqrt(2.0), 2.0 * self.residual_bound)

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def link_terms(self) -> tuple[float, bool]:
        return self.residual_bound, True

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
    return min(math.sqrt(2.0), 2.0 * residual_bound * math.sqrt(1.0 - 1.0 / n_classes))


@kernel
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


register(
    Multinomial,
    {"n_labels": 1, "curvature": 0.5, "offset": 0.0},
    residual_vector=multinomial_residuals,
)


class ClippedMultinomial(NamedTuple):
    """The multinomial logistic loss of a target in {0, ..., K - 1}, clipped by entry.

    `residual_bound`: C in [1/2, 1], public. `offset`, shape (K,): added to the margins.
    `weights`, shape (K,): weight of a record of each class, in (0, 1]; empty for 1.
    """

    residual_bound: float
    offset: NDArray[np.float64]
    weights: NDArray[np.float64] = np.zeros(0)

    @property
    def n_outputs(self) -> int:
        return self.offset.size

    @property
    def link_terms(self) -> tuple[float, bool]:
        return self.residual_bound, False

    def class_parts(self, labels: NDArray[np.float64]) -> list[NDArray[np.bool_]]:
        return [labels == k for k in range(1, self.n_outputs)]

    def starting_offset(self, counts: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
        weighted = counts * self.weights if self.weights.size else counts
        p = shares = class_shares(weighted, deviation)
        for _ in range(_ROUNDS):
            p = shares / np.maximum(1.0, (1.0 - p) / self.residual_bound)
            p = p / p.sum()
        return np.log(p)

    def link(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of all classes, shape (N, K): the inverse of the residuals.

        Class probabilities P and softmax p balance, ``sum_y P_y q(y) = 0``, exactly if ``P_y`` is
        proportional to ``p_y max(1, (1 - p_y) / C)``.
        """
        p = softmax(margins + self.offset)
        return normalized(p * np.maximum(1.0, (1.0 - p) / self.residual_bound))


@kernel
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
        # The bound holds despite rounding.
        residuals[k] = -pull if k == target else min(residuals[k] / others * pull, pull)


register(ClippedMultinomial, {"n_labels": 1, "curvature": 0.5}, residual_vector=clipped_residuals)
