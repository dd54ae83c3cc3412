"""Why a charge is refused: what was asked and what is left, in one sentence."""

from typing import Any, NoReturn

from dplasso.errors import BudgetError, LedgerError
from dplasso.ledger.composition import largest_epsilon
from dplasso.ledger.entries import SCORE, SEARCH, Budget, Charge
from dplasso.privacy.wording import rounded_down


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
    if charge.kind == SEARCH and covered < rows:
        raise BudgetError(
            f"{_named(budget, path)} is for {protected(rows)}, and of a search for "
            f"{protected(covered)} nobody can say what it costs them; give rows_per_person={rows} "
            "and groups"
        )
    if charge.kind == SEARCH:
        raise BudgetError(
            f"{_named(budget, path)} cannot pay for this search: epsilon {charge.epsilon:g} (delta "
            f"{charge.delta:g}, about {charge.n_iter} tries) costs a ledger more than is left of "
            f"{whole}; fewer tries, a smaller epsilon and law='poisson' cost less"
        )
    epsilon = largest_epsilon(
        budget,
        delta=charge.delta,
        n_iter=charge.n_iter,
        mechanism="gaussian" if charge.kind == SCORE else charge.mechanism,
        rows_per_person=covered,
    )
    remains = "nothing is left"
    if epsilon > 0:
        remains = f"at most epsilon {rounded_down(epsilon)} is left"
    steps = "" if charge.kind == SCORE else f", {charge.n_iter} steps"
    raise BudgetError(
        f"{_named(budget, path)} cannot pay for this {charge.kind}: it asks for epsilon "
        f"{charge.epsilon:g} (delta {charge.delta:g}{steps}) and {remains} for such a "
        f"{charge.kind}, of {whole}"
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


def _named(budget: Budget, path: Any) -> str:
    name = "" if budget.name is None else f" of {budget.name!r}"
    return f"the budget{name} in {path}"
