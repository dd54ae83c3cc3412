"""Composition: the cost of several fits on one data set, in integers.

A charge is a rho of zCDP and a part of delta for inexact draws (arXiv 1605.02065, section 8).
Epsilons are never added. Fits and costs may be chosen adaptively if limits of both sums were fixed
beforehand: a privacy filter (arXiv 2203.05481). A budget fixes them when it is created:
`Budget.draw_delta_limit`, and the `capacity` of epsilon at the rest of delta. One exception, before
anything was released: the rho of a first fit is converted at all of delta that its draws leave.
"""

import math
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NoReturn

from dplasso.errors import BudgetError, LedgerError
from dplasso.ledger.entries import SCORE, SEARCH, UNITS, Budget, Charge, charge_of, counted
from dplasso.privacy.accounting import EPSILON_OF_RHO, epsilon_of_rho, root_rho
from dplasso.privacy.budget import RATIO_RHO, Draws, build_budget
from dplasso.privacy.parameters import RELATIONS
from dplasso.privacy.wording import rounded_down

# This fraction of a budget's delta is for the inexactness of draws.
_DRAW_PART = 10
# Relative precision of a budget's capacity; finer than the margin of a calibration.
_CAPACITY_TOLERANCE = 2.0**-45
# Below this a budget counts as empty.
_SMALLEST_RHO = 1e-29
# The most noisy numbers of one gradient.
_COORDINATES = 2.0**24
# Steps, each 4 times longer, from the solved epsilon down to one that is surely affordable.
_STEPS_DOWN = 20


def epsilon_total(rho: int, draw_delta: int, delta: float) -> float:
    """Return the epsilon of sums of units at `delta`; infinite if draws use up all of that."""
    if rho == 0 and draw_delta == 0:
        return 0.0
    left = _rest(delta, draw_delta)
    if left <= 0:
        return math.inf
    return epsilon_of_rho(_rounded_up(Fraction(rho, UNITS)), left)


def capacity(epsilon: float, delta: float, draw_delta: int) -> int:
    """Return the largest rho within (epsilon, delta), in units, by less than 1e-13 too small."""
    left = _rest(delta, draw_delta)
    return 0 if left <= 0 else _capacity(epsilon, left)


@lru_cache(maxsize=4096)
def _capacity(epsilon: float, delta: float) -> int:
    low = root_rho(epsilon, delta) ** 2
    while epsilon_of_rho(low, delta) > epsilon:
        low /= 2.0
        if low < _SMALLEST_RHO:
            return 0
    high = 2.0 * low
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    from scipy.optimize import brentq

    root = brentq(
        lambda rho: epsilon_of_rho(rho, delta) - epsilon,
        low,
        high,
        xtol=_CAPACITY_TOLERANCE / 4 * low,
        rtol=_CAPACITY_TOLERANCE / 4,
    )
    # Only a value that the accountant accepts is granted.
    low = root
    while epsilon_of_rho(low, delta) > epsilon:
        low *= 1.0 - _CAPACITY_TOLERANCE
    return math.floor(Fraction(low) * UNITS)


def draws_part(delta: float) -> int:
    """Return what is set aside of a budget's delta for draws, in units of 10^-30."""
    return math.floor(Fraction(delta / _DRAW_PART) * UNITS)


def rho_limit(budget: Budget, draw_delta: int = 0, count: int = 0) -> int:
    """Return the largest sum of rho in units that charges may reach, with `count` more fits."""
    draws = budget.draw_delta + draw_delta
    limit = 0
    if draws <= budget.draw_delta_limit:
        limit = capacity(budget.epsilon, budget.delta, budget.draw_delta_limit)
    if count == 1 and not budget.entries:
        limit = max(limit, capacity(budget.epsilon, budget.delta, draws))
    return limit


def whole_rho(budget: Budget) -> int:
    """Return all the zCDP that the budget has room for, and at least what is spent."""
    return max(rho_limit(budget), budget.rho)


def share_of(budget: Budget, charge: Charge) -> float:
    """Return which part of a budget a charge is; shares add up, epsilons do not."""
    whole = whole_rho(budget)
    return counted(charge, budget.rows_per_person)[0] / whole if whole else 0.0


def affords(budget: Budget, charge: Charge, count: int = 1) -> bool:
    """Return whether a budget has room for `count` fits of a charge; integers are compared."""
    rho, draws = counted(charge, budget.rows_per_person)
    allowed = rho_limit(budget, count * draws, count)
    return allowed > 0 and budget.rho + count * rho <= allowed


def fits_left(budget: Budget, charge: Charge) -> int:
    """Return how many more fits of the same cost a budget has room for."""
    rho, draws = counted(charge, budget.rows_per_person)
    if rho <= 0:
        return 0
    low, high = 0, max(0, rho_limit(budget, draws, 1) - budget.rho) // rho
    while low < high:
        count = (low + high + 1) // 2
        low, high = (count, high) if affords(budget, charge, count) else (low, count - 1)
    return low


def largest_epsilon(
    budget: Budget,
    *,
    delta: float,
    n_iter: int,
    fits: int = 1,
    mechanism: str = "exponential",
    rows_per_person: int | None = None,
    draws: Draws | None = None,
) -> float:
    """Return the epsilon of each of some equal fits that use up the rest of a budget; 0 for none.

    It is accurate to 12 digits and never too large. By default a fit has the draws of `n_iter`
    steps of `mechanism`.
    """
    epsilon_of = EPSILON_OF_RHO[mechanism]
    covered = rows_per_person or budget.rows_per_person
    times = max(1, -(-budget.rows_per_person // covered)) ** 2
    steps = Draws(
        gaussian=n_iter * _COORDINATES if "gaussian" in mechanism else 0.0,
        vertices=n_iter if "exponential" in mechanism else 0,
    )
    build = partial(
        build_budget,
        draws or steps,
        n_iter=n_iter,
        delta=delta,
        neighbors=budget.neighbors,
        rows_per_person=covered,
    )
    # The draws' part of delta grows with eps0, so a first solution bounds it from above.
    sampling = ratio = rho = 0.0
    needed = 0
    for _ in range(2):
        part = (rho_limit(budget, fits * needed, fits) - budget.rho) // (fits * times)
        rho = float(Fraction(part, UNITS)) - RATIO_RHO * ratio
        if part <= 0 or rho <= 0:
            return 0.0
        epsilon = epsilon_of(rho, delta - sampling) + ratio
        if epsilon <= 0:
            return 0.0
        built = build(epsilon=epsilon)
        # With vertices, epsilon follows from a zCDP that includes the rounding.
        sampling, ratio = built.sampling_delta, 0.0 if built.draws.vertices else built.ratio_error
        needed = counted(charge_of(built), budget.rows_per_person)[1]
    epsilon = epsilon_of(rho, delta - sampling) + ratio
    step = 2.0**-44
    for _ in range(_STEPS_DOWN):
        if affords(budget, charge_of(build(epsilon=epsilon)), fits):
            return epsilon
        epsilon *= 1.0 - step
        step *= 4.0
    return 0.0


def epsilon_left(budget: Budget, charge: Charge) -> float:
    """Return the largest epsilon of another fit or score like that of a charge."""
    return largest_epsilon(
        budget,
        delta=charge.delta,
        n_iter=charge.n_iter,
        mechanism=charge.mechanism if charge.kind == "fit" else "gaussian",
        rows_per_person=charge.rows_per_person or 1,
    )


def _rest(delta: float, draw_delta: int) -> float:
    """Return what the draws leave of delta, rounded down."""
    return -_rounded_up(Fraction(draw_delta, UNITS) - Fraction(delta))


def _rounded_up(exact: Fraction) -> float:
    value = float(exact)
    return math.nextafter(value, math.inf) if value < exact else value


def refuse_relation(budget: Budget, charge: Charge, path: Any) -> None:
    """Refuse a charge for another neighbour relation: the two do not add up."""
    if charge.neighbors != budget.neighbors:
        raise LedgerError(
            f"{_named(budget, path)} is kept for `neighbors={budget.neighbors!r}` and the fit has "
            f"`neighbors={charge.neighbors!r}`; the two promises do not add up"
        )


def refuse_overspending(budget: Budget, charge: Charge, path: Any) -> NoReturn:
    """Raise BudgetError for a charge that the budget has no room for."""
    rows, covered = budget.rows_per_person, charge.rows_per_person or 1
    whom, whom_covered = map(RELATIONS[budget.neighbors].protected, (rows, covered))
    whole = f"epsilon {budget.epsilon:g} at delta {budget.delta:g} in all for {whom}"
    if charge.kind == SEARCH and covered < rows:
        raise BudgetError(
            f"{_named(budget, path)} is for {whom}, and what a search for "
            f"{whom_covered} costs them cannot be computed; give "
            f"`rows_per_person={rows}` and `groups`"
        )
    if charge.kind == SEARCH:
        raise BudgetError(
            f"{_named(budget, path)} cannot pay for this search: epsilon {charge.epsilon:g} (delta "
            f"{charge.delta:g}, about {charge.n_iter} tries) costs a ledger more than is left of "
            f"{whole}; fewer tries and a smaller epsilon cost less"
        )
    remains = "nothing is left"
    if (epsilon := epsilon_left(budget, charge)) > 0:
        remains = f"at most epsilon {rounded_down(epsilon)} is left"
    steps = "" if charge.kind == SCORE else f", {charge.n_iter} steps"
    raise BudgetError(
        f"{_named(budget, path)} cannot pay for this {charge.kind}: it asks for epsilon "
        f"{charge.epsilon:g} (delta {charge.delta:g}{steps}) and {remains} for such a "
        f"{charge.kind}, of {whole}"
        + (
            f"; it covers {whom_covered} and so counts {(-(-rows // covered)) ** 2} times: "
            f"`rows_per_person={rows}` would count once"
            if covered < rows
            else ""
        )
    )


def _named(budget: Budget, path: Any) -> str:
    name = "" if budget.name is None else f" of {budget.name!r}"
    return f"the budget{name} in {path}"
