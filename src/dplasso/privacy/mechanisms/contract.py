"""What every mechanism has to say (docs/architecture.md)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, Self

from dplasso.privacy.parameters import check_neighbors

MOST_EARLIER = 2**20
"""Draws that a release before a fit has at most."""

EXACT = "epsilon is infinite: every step was chosen exactly, without noise"


@dataclass(frozen=True)
class SelectionRule:
    """The distribution that a selection structure has to draw from.

    `mechanism`: signed exponential mechanism; the paper's true-sign variant; plain argmax.
    `exponent`: log-weight per fixed-point unit of alpha; infinity for the argmax.
    `laplace`: scale of the paper's Laplace noise in fixed-point units; 0 unless
    ``mechanism="paper"``.
    `spread`: by what factor weights may differ that a structure does not tell apart at once; it
    decides how a draw is made, not what is drawn from.
    """

    mechanism: str
    exponent: float
    laplace: float
    spread: float = 2.0


class Words(NamedTuple):
    """What a statement says of a private mechanism.

    `steps`: takes the statement; says how its steps are private.
    `clips_entries`: whether entries of the data are clipped to `feature_bound`.
    `count_sets`: what the number of records, where it is given, sets besides the steps.
    """

    steps: Callable[[Any], str]
    clips_entries: bool = True
    count_sets: str = ""


class Cost(Protocol):
    """What a ledger asks of a mechanism, or of a search (see `Promise`)."""

    @property
    def name(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def neighbors(self) -> str: ...
    @property
    def rows_per_person(self) -> int: ...
    @property
    def eps0_accounted(self) -> float | None: ...
    @property
    def rho(self) -> float | Fraction: ...
    @property
    def sampling_delta(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Promise:
    """How a fit is private, and what that costs; made of public parameters alone.

    These are asked of every mechanism, and most have in common:

    `epsilon`, `delta`: the guarantee asked for.
    `neighbors`, "add-remove" or "replace-one": the neighbour relation.
    `feature_bound`, `residual_bound`: bounds B on the magnitude of an entry and C on that of a
    residual.
    `rows_per_person`: rows of one person, at most, that may change between neighbours.
    `before`: Gaussian differential privacy of what was released of the same records before, for
    which the fit leaves room (`after`); 0 for nothing.
    `sensitivity`: how far one coordinate of the summed gradient, or with Gaussian noise the whole
    of it in L2, can move between neighbours.
    `leak`: why no fit with it is private; empty if fits are.
    `accountant`: how a private fit's costs are added up.
    `stated`: entries of the statement that only this mechanism has.

    Each says besides:

    `name` ("exponential", "gaussian", "exponential and gaussian", "paper", "none"): the paper's
    published step is not differentially private; "none" draws nothing.
    `n_iter`: number of steps T.
    `count_sensitivity`: how far the counts that a fit begins with can move, in L2; None if it
    counts nothing. `by_class`: whether a fit by gradients alone counts the records of each class.
    `eps0`: bounded-range parameter of a step, natural logarithm units; infinite if not private, 0
    where steps have no common one.
    `eps0_accounted`: what a ledger takes a step for, with the part that rounding may use up; None
    where the cost is `rho`.
    `epsilon_spent`: what the accountant reports, with what rounding may use up; at most `epsilon`,
    infinite if not private.
    `rho`: the zCDP of the whole fit, without what was released before; infinite if not private.
    `sampling_delta`: the part of `delta` set aside for the inexactness of the draws.
    `ratio_error`: what rounding of Gaussian noise can add to a log-ratio of probabilities.
    `release_kind`: the kind of release that a fit begins with (`dplasso.model.release`).
    `event()`: the whole fit, with what was released before, as an event of ``dp-accounting``;
    raises if it has none.
    `epsilon_of_rows(count)`: the epsilon for somebody with `count` times as many rows as are
    covered; infinite where the inexactness of the draws, which counts for more then, uses delta up.
    `rule(unit)`, of vertices: what a structure draws from, with so many fixed-point units per unit
    of alpha.
    """

    epsilon: float
    delta: float
    neighbors: str
    feature_bound: float
    residual_bound: float
    rows_per_person: int
    before: float = 0.0

    by_class = False

    @property
    def sensitivity(self) -> float:
        return sensitivity(
            self.feature_bound, self.neighbors, self.residual_bound, self.rows_per_person
        )

    @property
    def accountant(self) -> str:
        return ""

    @property
    def leak(self) -> str:
        return "" if math.isfinite(self.epsilon) else EXACT

    @property
    def stated(self) -> dict[str, Any]:
        return {}

    def after(self, mu: float) -> Self:  # noqa: ARG002
        """Return the mechanism that spends its epsilon together with a mu-GDP release before it."""
        if self.leak:
            return self
        raise ValueError(
            "edges that were released from the same records go with fits that choose their own "
            "settings; leave n_iter or l1_radius out"
        )


def left_of(budget: float, before: float, what: str) -> float:
    """Return what an earlier release leaves of a squared mu or a rho, a little less than exactly.

    The part withheld covers what rounding of the earlier release's noise adds to a log-ratio: of at
    most `MOST_EARLIER` draws in units of 2^-32 that is below 2^-39 of its squared mu, which adds
    less than 2^-31 of that to rho at every Renyi order.
    """
    left = (budget - before) * (1.0 - 2.0**-30)
    if left < budget / 4.0:
        raise ValueError(
            f"{what} is too little: the edges of bins that were released from the same records "
            "have used most of it up"
        )
    return left


@dataclass(frozen=True, kw_only=True)
class VertexSteps(Promise):
    """T steps that each draw a vertex."""

    n_iter: int

    count_sensitivity = None
    ratio_error = 0.0
    release_kind = "vertices"


def sensitivity(
    feature_bound: float, neighbors: str, residual_bound: float = 1.0, rows_per_person: int = 1
) -> float:
    """Return how far a summed gradient can move: m B C, replaced by another person's rows 2 m B C.

    One record's share of it is its residual, at most C in size, times its row: of one coordinate
    ``q_i x_ij`` with ``|x_ij| <= B``; of the whole in L2, for rows of norm at most B. Adding or
    removing it moves the sum by at most B C, replacing it by at most 2 B C.
    """
    moved = feature_bound * residual_bound * rows_per_person
    return moved if check_neighbors(neighbors) == "add-remove" else 2.0 * moved
