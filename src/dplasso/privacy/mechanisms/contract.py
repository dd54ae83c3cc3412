"""What every mechanism of Frank-Wolfe's steps has to say (docs/architecture.md)."""

from dataclasses import dataclass
from typing import Any, Protocol

from dplasso.privacy.parameters import check_feature_bound, check_neighbors


@dataclass(frozen=True)
class SelectionRule:
    """The distribution that a selection structure has to draw from.

    `mechanism`: signed exponential mechanism; the paper's true-sign variant; plain argmax.
    `exponent`: log-weight per fixed-point unit of alpha; infinity for the argmax.
    `laplace`: scale of the paper's Laplace noise in fixed-point units; 0 unless
    ``mechanism="paper"``.
    """

    mechanism: str
    exponent: float
    laplace: float


class Mechanism(Protocol):
    """How vertices are drawn, and what that costs; made of public parameters alone.

    Attributes
    ----------
    name : {"exponential", "paper", "none"}
        The paper's published step is not differentially private; "none" is the exact argmax.
    epsilon, delta : float
        The guarantee asked for.
    n_iter : int
        Number of steps T.
    neighbors : {"add-remove", "replace-one"}
        The neighbour relation.
    feature_bound, residual_bound : float
        Bounds B on the magnitude of an entry and C on that of a residual.
    rows_per_person : int
        Rows of one person, at most, that may change between neighbours.
    sensitivity : float
        How far one coordinate of the summed gradient can move between neighbours.
    eps0 : float
        Bounded-range parameter of a step, natural logarithm units; infinite if not private.
    epsilon_spent : float
        What the accountant reports, at most `epsilon`; infinite if not private.
    rho : float
        The zCDP of the whole run; infinite if not private.
    sampling_delta : float
        The part of `delta` set aside for the inexactness of T draws.
    """

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
    def feature_bound(self) -> float: ...
    @property
    def residual_bound(self) -> float: ...
    @property
    def rows_per_person(self) -> int: ...
    @property
    def sensitivity(self) -> float: ...
    @property
    def eps0(self) -> float: ...
    @property
    def epsilon_spent(self) -> float: ...
    @property
    def rho(self) -> float: ...
    @property
    def sampling_delta(self) -> float: ...

    def event(self) -> Any:
        """Return the whole run as an event of ``dp-accounting``; raise if it has none."""

    def epsilon_of_rows(self, count: int) -> float:
        """Return the epsilon for somebody with `count` times as many rows as are covered."""

    def rule(self, unit: float) -> SelectionRule:
        """Return what a structure draws from, with `unit` fixed-point units per unit of alpha."""


def sensitivity(
    feature_bound: float, neighbors: str, residual_bound: float = 1.0, rows_per_person: int = 1
) -> float:
    """Return how far one coordinate of the summed gradient can move between neighbours.

    One record's contribution to ``alpha_j`` is ``q_i x_ij`` with ``|q_i| <= C`` and
    ``|x_ij| <= B``: adding or removing it moves the sum by at most B C, replacing it by at most
    2 B C.

    `feature_bound`: bound B on the magnitude of an entry.
    `neighbors`: the neighbour relation.
    `residual_bound`: bound C on the magnitude of a residual.
    `rows_per_person`: rows m that may change together.

    Returns: m B C or 2 m B C, in units of the summed gradient.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range.
    """
    moved = check_feature_bound(feature_bound) * residual_bound * rows_per_person
    return moved if check_neighbors(neighbors) == "add-remove" else 2.0 * moved
