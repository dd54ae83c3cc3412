"""Why a charge is refused: what was asked and what is left, in one sentence."""

from decimal import ROUND_DOWN, Context
from typing import Any, NoReturn

from dplasso.errors import BudgetError, LedgerError
from dplasso.ledger.composition import largest_epsilon
from dplasso.ledger.entries import Budget, Charge

_DIGITS = 6


def refuse_relation(budget: Budget, charge: Charge, path: Any) -> None:
    """Refuse a charge for another neighbour relation: the two do not add up."""
    if charge.neighbors != budget.neighbors:
        raise LedgerError(
            f"{_named(budget, path)} is kept for neighbors={budget.neighbors!r} and the fit has "
            f"neighbors={charge.neighbors!r}; the two promises do not add up"
        )


def refuse_overspending(budget: Budget, charge: Charge, path: Any) -> NoReturn:
    """Raise BudgetError for a charge that the budget has no room for."""
    rows, covered = budget.rows_per_person, charge.rows_per_person or 1
    whole = f"epsilon {budget.epsilon:g} at delta {budget.delta:g} in all for {protected(rows)}"
    if charge.mechanism == "search" and covered < rows:
        raise BudgetError(
            f"{_named(budget, path)} is for {protected(rows)}, and of a search for "
            f"{protected(covered)} nobody can say what it costs them; give rows_per_person={rows} "
            "and groups"
        )
    if charge.mechanism == "search":
        raise BudgetError(
            f"{_named(budget, path)} cannot pay for this search: epsilon {charge.epsilon:g} (delta "
            f"{charge.delta:g}, about {charge.n_iter} tries) costs a ledger more than is left of "
            f"{whole}; fewer tries, a smaller epsilon and law='poisson' cost less"
        )
    epsilon = largest_epsilon(
        budget,
        delta=charge.delta,
        n_iter=charge.n_iter,
        mechanism=charge.mechanism,
        rows_per_person=covered,
    )
    remains = "nothing is left"
    if epsilon > 0:
        remains = f"at most epsilon {rounded_down(epsilon)} is left"
    raise BudgetError(
        f"{_named(budget, path)} cannot pay for this fit: it asks for epsilon {charge.epsilon:g} "
        f"(delta {charge.delta:g}, {charge.n_iter} steps) and {remains} for such a fit, of {whole}"
        + (
            f"; it covers {protected(covered)} and so counts {(-(-rows // covered)) ** 2} times: "
            f"rows_per_person={rows} would count once"
            if covered < rows
            else ""
        )
    )


def protected(rows_per_person: int) -> str:
    """Word whom a budget or a charge covers."""
    if rows_per_person == 1:
        return "each row"
    return f"each person with up to {rows_per_person:,} rows"


def rounded_down(value: float) -> str:
    """Return six digits of an epsilon, never more than it: one that can be asked for too."""
    shorter = Context(prec=_DIGITS, rounding=ROUND_DOWN).create_decimal(value)
    return f"{float(shorter):.{_DIGITS}g}"


def _named(budget: Budget, path: Any) -> str:
    name = "" if budget.name is None else f" of {budget.name!r}"
    return f"the budget{name} in {path}"
