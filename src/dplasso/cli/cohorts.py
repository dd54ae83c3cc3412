"""What is said of people who may be in several data sets of a ledger, and what was declared."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dplasso import ledger as ledgers
from dplasso.cli import output
from dplasso.ledger.cohorts import listed
from dplasso.privacy.wording import rounded_up

# What is promised or spent is never written as less than it is.
up = partial(rounded_up, digits=6)

_NO_SUM = "their neighbour relations differ, so there is no total of somebody who is in several"


def told_of(
    budgets: Sequence[ledgers.Budget],
    groups: Sequence[ledgers.Declaration],
    *,
    of: str | None = None,
) -> dict[str, Any]:
    """Put together what is said of people, as JSON says it; `of`: of this data set alone."""
    cohorts = [_cohort(budgets, group) for group in groups if of is None or of in group.datasets]
    several = len(budgets) > 1 and of is None
    return {"cohorts": cohorts, "people": _totals(budgets, groups) if several else None}


def cohort_of(ledger: Path, dataset: str | None) -> dict[str, Any] | None:
    """Return what was declared about a data set's people, or None."""
    budgets, groups = ledgers.read_cohorts(ledger)
    return next(iter(told_of(budgets, groups, of=dataset)["cohorts"]), None) if dataset else None


def _cohort(budgets: Sequence[ledgers.Budget], group: ledgers.Declaration) -> dict[str, Any]:
    members = [one for one in budgets if one.name in group.datasets]
    entries = [entry for member in members for entry in member.entries]
    home = {entry.number: member.name for member in members for entry in member.entries}
    first = same_rows(sorted(entries, key=lambda entry: entry.number))
    pairs = [[other, number] for number, other in first.items() if other is not None]
    return {
        "datasets": [*group.datasets],
        "declared_by": f"{group.user}@{group.host}",
        "declared_at": group.declared_at,
        **_totals(members, [group]),
        # Fits, on two data sets of the group, that had the same rows.
        "same_rows": [pair for pair in pairs if home[pair[0]] != home[pair[1]]],
    }


def _totals(
    budgets: Sequence[ledgers.Budget], groups: Sequence[ledgers.Declaration]
) -> dict[str, float | None]:
    people = ledgers.people_of(budgets, groups)
    return {
        "delta": None if people is None else people.delta,
        "epsilon_declared": None if people is None else people.declared,
        "epsilon_in_all": None if people is None else people.in_all,
    }


def same_rows(entries: Sequence[ledgers.Entry]) -> dict[int, int | None]:
    """Say of each entry which is the first on the same rows; None where that is not known."""
    data = {entry.number: entry.charge.fingerprint or "" for entry in entries}
    # Fingerprints under one key compare; those of dplasso 0.2.0 had none.
    key = next((one.partition(":")[0] for one in reversed(data.values()) if ":" in one), None)
    first: dict[str, int] = {}
    return {
        number: first.setdefault(one, number) if one.startswith(f"{key}:") else None
        for number, one in data.items()
    }


def sentence(cohort: dict[str, Any]) -> str:
    """Word a declaration, and what it means."""
    names, by = listed(cohort["datasets"]), cohort["declared_by"]
    told = (
        f"declared by {by} on {cohort['declared_at'][:10]}, and not checked: nobody is in two of "
        f"{names}"
    )
    if cohort["delta"] is None:
        return f"{told}; {_NO_SUM}"
    return (
        f"{told}; so far that is epsilon {up(cohort['epsilon_declared'])} at most for each person "
        f"(at delta {up(cohort['delta'])}), and {up(cohort['epsilon_in_all'])} for somebody who is "
        "in all of them nevertheless"
    )


def print_cohorts(told: dict[str, Any]) -> None:
    """Print what is said of people for a person."""
    cohorts, people = told["cohorts"], told["people"]
    for cohort in cohorts:
        words = sentence(cohort)
        output.text(f"{words[0].upper()}{words[1:]}.", wrap=False)
        for first, second in cohort["same_rows"]:
            output.text(
                f"Not for release: fits {first} and {second}, of two of these data sets, had the "
                "same rows. Is the declaration right (dplasso ledger disjoint --withdraw)?",
                wrap=False,
            )
    if people is None:
        return
    if people["delta"] is None:
        output.text(f"Over all data sets: {_NO_SUM}.", wrap=False)
        return
    at, worst = f"at delta {up(people['delta'])}", up(people["epsilon_in_all"])
    if not cohorts:
        output.text(
            "Nothing is declared about people in several of these data sets (dplasso ledger "
            f"disjoint). So far somebody who is in all of them has epsilon {worst} {at}.",
            wrap=False,
        )
    elif people != {key: cohorts[0][key] for key in people}:
        output.text(
            f"Over all data sets, {at}: epsilon {up(people['epsilon_declared'])} at most for each "
            f"person if what is declared holds, {worst} for somebody who is in all.",
            wrap=False,
        )
