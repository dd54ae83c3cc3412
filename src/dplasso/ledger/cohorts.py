"""Cohorts: data sets that are declared to be of disjoint people.

Each data set keeps its own budget, and a declaration changes none: it says what the budgets mean
for a person. Whose records are in one data set of a cohort group has the total of that data set. If
the declaration is wrong, somebody who is in several has the sum: records that change together in
several data sets compose as if they were charged to one, in zCDP. So does everybody who is in
several data sets that nothing is declared about.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from shlex import join

from dplasso.errors import LedgerError
from dplasso.ledger.budgets import check_name, check_named, pick
from dplasso.ledger.composition import epsilon_total
from dplasso.ledger.database import LedgerPath, transaction
from dplasso.ledger.entries import Budget, Declaration
from dplasso.ledger.rows import insert_declaration, read_all


@dataclass(frozen=True)
class People:
    """What was spent for somebody who may be in several data sets, at the largest delta of these.

    `declared`: the largest epsilon of a person, if what is declared holds.
    `in_all`: the epsilon of somebody who is in all of them, whatever is declared.
    """

    delta: float
    declared: float
    in_all: float


def declare_disjoint(
    path: LedgerPath, datasets: Sequence[str], *, withdraw: bool = False
) -> Declaration:
    """Declare in a ledger that nobody is in two of these data sets; nothing checks it.

    No limit changes. To add a data set to a group, name the whole group with it. `withdraw`: take
    back what was declared about exactly these data sets instead. Returns what now stands in the
    ledger.
    """
    names = [check_name(name) for name in datasets]
    if len(set(names)) < len(names) or len(names) < 2:
        raise LedgerError(
            "a declaration about people names two or more data sets, each once; it names "
            + (", ".join(map(repr, names)) or "none")
        )
    with transaction(path) as db:
        budgets, told = read_all(db, path)
        check_named([pick(budgets.values(), name, path) for name in names], path)
        keys = [key for key, budget in budgets.items() if budget.name in names]
        order = [budget.name for budget in budgets.values() if budget.name is not None]
        _check(path, in_force(told), {*names}, order, withdraw=withdraw)
        insert_declaration(db, keys, disjoint=not withdraw)
        return read_all(db, path)[1][-1]


def _check(
    path: LedgerPath,
    groups: Sequence[Declaration],
    names: Collection[str],
    order: Sequence[str],
    *,
    withdraw: bool,
) -> None:
    """Refuse a declaration that says nothing new, or cuts through a group."""
    touched = [group for group in groups if not set(group.datasets).isdisjoint(names)]
    same = [group for group in touched if set(group.datasets) == set(names)]
    if withdraw and not same:
        about = f"; declared: nobody is in two of {listed(touched[0].datasets)}" if touched else ""
        raise LedgerError(f"{path} holds no declaration about exactly these data sets{about}")
    if same and not withdraw:
        raise LedgerError(
            f"this was declared already, by {same[0].user}@{same[0].host} on "
            f"{same[0].declared_at[:10]}"
        )
    wanted = {*names}.union(*(group.datasets for group in touched))
    if not withdraw and wanted != set(names):
        whole = join(name for name in order if name in wanted)
        raise LedgerError(
            "the ledger already has a declaration that nobody is in two of "
            f"{listed(touched[0].datasets)}, and this one leaves some of them out. If nobody is "
            "in two of them all, declare that: "
            f"dplasso ledger disjoint {path} {whole}"
        )


def in_force(declarations: Iterable[Declaration]) -> tuple[Declaration, ...]:
    """Return the declarations that hold: groups without a common data set, the oldest first."""
    held: list[Declaration] = []
    for one in declarations:
        held = [other for other in held if set(other.datasets).isdisjoint(one.datasets)]
        held += [one] if one.disjoint else []
    return tuple(held)


def read_cohorts(path: LedgerPath) -> tuple[tuple[Budget, ...], tuple[Declaration, ...]]:
    """Return a ledger's budgets, in their order, and the declarations that hold."""
    with transaction(path, write=False) as db:
        budgets, told = read_all(db, path)
    return tuple(budgets.values()), in_force(told)


def people_of(budgets: Sequence[Budget], groups: Sequence[Declaration]) -> People | None:
    """Return what was spent for who may be in several data sets; None if relations differ."""
    if len({budget.neighbors for budget in budgets}) > 1:
        return None
    delta = max(budget.delta for budget in budgets)
    parts = [[one for one in budgets if one.name in group.datasets] for group in groups]
    grouped = {name for group in groups for name in group.datasets}
    parts += [[one] for one in budgets if one.name not in grouped]
    # Of a group that nobody is in twice the most that anybody has; at the worst, everything.
    most = [
        (max(one.rho for one in part), max(one.draw_delta for one in part))
        for part in parts
        if part
    ]
    every = [(one.rho, one.draw_delta) for one in budgets]
    declared, in_all = (
        epsilon_total(sum(rho for rho, _ in costs), sum(draws for _, draws in costs), delta)
        for costs in (most, every)
    )
    return People(delta, declared, in_all)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Word data sets, the last of them where they are many."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{len(names) - most:,} others, {', '.join(names[-most:])}"
