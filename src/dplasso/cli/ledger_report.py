"""What a ledger has spent and left, in words and as JSON."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.markup import escape

from dplasso import ledger as ledgers
from dplasso.cli import output
from dplasso.privacy.parameters import RELATIONS
from dplasso.privacy.wording import percent, rounded_up
from dplasso.privacy.wording import rounded_down as down

# Fields of entries, charges and budgets that the JSON documents hold.
_ENTRY = (
    *("number", "state", "release", "user", "host", "process", "program"),
    *("reserved_at", "ended_at"),
)
_CHARGE = (
    *("kind", "epsilon", "delta", "n_iter", "eps0", "neighbors", "rows_per_person", "purpose"),
    "prior",
)
_MANY = {"fit": "fits", "search": "searches", "score": "scores"}
# Groups of fits on the same rows that are listed.
_GROUPS = 10
_BUDGET = ("epsilon", "delta", "neighbors", "rows_per_person")
# Budgets and costs are never rounded down.
up = partial(rounded_up, digits=6)


def left_after(ledger: Path, dataset: str | None, release: str = "") -> dict[str, Any]:
    """Return a data set's budget, what is spent after a charge, and what is left for another such.

    `release` is the digest of what was paid for.
    """
    budget = ledgers.Ledger(ledger, dataset).budget()
    # A fit of few steps may release what an earlier one did.
    same = [entry for entry in budget.entries if entry.release == release]
    charge = (same or budget.entries)[-1].charge
    return {
        "dataset": budget.name,
        **{name: getattr(budget, name) for name in _BUDGET},
        **_spent(budget),
        "epsilon_left": ledgers.epsilon_left(budget, charge),
        "kind": charge.kind,
        "fits_left": ledgers.fits_left(budget, charge),
    }


def left_sentence(report: dict[str, Any]) -> str:
    """Return the result of `left_after` in words."""
    share = report["share_spent"]
    spent, left = percent(share), percent(share, left=True)
    rest, count = "nothing is left", report["fits_left"]
    if count:
        kind = report["kind"] if count == 1 else _MANY[report["kind"]]
        rest = f"{left} is left, enough for {count:,} more such {kind}"
    elif report["epsilon_left"]:
        epsilon = down(report["epsilon_left"])
        rest = f"{left} is left, enough for a fit of epsilon {epsilon}"
        rest += f" but no other such {report['kind']}"
    return (
        f"charged{called(report['dataset'], ' to')}: {spent} of the budget (epsilon "
        f"{up(report['epsilon'])} at delta {up(report['delta'])}, for "
        f"{_protected(report)}) is spent, {rest}"
    )


def _protected(budget: dict[str, Any]) -> str:
    return RELATIONS[budget["neighbors"]].protected(budget["rows_per_person"])


def report_of(budget: ledgers.Budget, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON document of one data set; `settings` are those of one more fit."""
    same, whole = same_rows(budget.entries), ledgers.whole_rho(budget)
    entries = [
        {
            **{name: getattr(entry, name) for name in _ENTRY},
            **{name: getattr(entry.charge, name) for name in _CHARGE},
            "rho": entry.charge.rho / ledgers.UNITS,
            "draw_delta": entry.charge.draw_delta / ledgers.UNITS,
            # Shares add up, epsilons do not.
            "share": ledgers.share_of(budget, entry.charge) if whole else None,
            "rows_as_in": same[entry.number],
        }
        for entry in budget.entries
    ]
    return {
        "dataset": budget.name,
        **{name: getattr(budget, name) for name in _BUDGET},
        "totals": [
            {"rows_per_person": rows, "epsilon": ledgers.epsilon_total(*spent, budget.delta)}
            for rows, spent in ledgers.totals(budget).items()
        ],
        **_spent(budget),
        "epsilon_left": ledgers.largest_epsilon(budget, **settings),
        "rho_spent": budget.rho / ledgers.UNITS,
        "rho_left": max(0, whole - budget.rho) / ledgers.UNITS,
        "draw_delta_spent": budget.draw_delta / ledgers.UNITS,
        "another_fit": {name: settings[name] for name in ("delta", "n_iter")},
        "entries": entries,
    }


def _spent(budget: ledgers.Budget) -> dict[str, float]:
    whole = ledgers.whole_rho(budget)
    return {
        "epsilon_spent": ledgers.epsilon_total(budget.rho, budget.draw_delta, budget.delta),
        "share_spent": budget.rho / whole if whole else 1.0,
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the document of one data set."""
    another, entries = report["another_fit"], report["entries"]
    output.text(
        f"{report['dataset'] or '(a data set without a name)'}: epsilon {up(report['epsilon'])} "
        f"at delta {up(report['delta'])}, {report['neighbors']}, for "
        f"{_protected(report)}",
        "bold",
        wrap=False,
    )
    if entries:
        _print_entries(entries)
    fits = _counted(entries)
    share = report["share_spent"]
    spent, left = percent(share), percent(share, left=True)
    rest = "Nothing is left."
    if report["epsilon_left"]:
        less = "; at the budget's delta the epsilon is smaller"
        words = fit_words(another["delta"], another["n_iter"])
        words += less if another["delta"] < report["delta"] else ""
        epsilon = down(report["epsilon_left"])
        rest = f"Left: {left}, which one fit of epsilon {epsilon} uses up ({words})."
    output.text(f"Spent: {spent} by {fits}. {rest}", wrap=False)
    if len(report["totals"]) > 1:
        totals = ", ".join(
            f"{up(total['epsilon'])} for {_protected(report | total)}" for total in report["totals"]
        )
        output.text(f"At delta {up(report['delta'])} that is epsilon {totals}.", wrap=False)
    output.text()


def _counted(entries: list[dict[str, Any]]) -> str:
    numbers = Counter(entry["kind"] for entry in entries)
    counts = [f"{n:,} {kind if n == 1 else _MANY[kind]}" for kind, n in numbers.items()]
    return " and ".join(filter(None, [", ".join(counts[:-1]), *counts[-1:]])) or "0 fits"


def _print_entries(entries: list[dict[str, Any]]) -> None:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">entry": lambda entry: f"{entry['kind']} {entry['number']}",
        "reserved (UTC)": lambda entry: entry["reserved_at"][:16].replace("T", " "),
        ">epsilon": lambda entry: up(entry["epsilon"]),
        ">delta": lambda entry: up(entry["delta"]),
        ">steps": lambda entry: "" if entry["kind"] == "score" else f"{entry['n_iter']:,}",
        ">share": lambda entry: "" if entry["share"] is None else percent(entry["share"]),
        "state": lambda entry: entry["state"].replace("reserved", "running or died"),
    }
    if any(entry["rows_per_person"] != 1 for entry in entries):
        columns[">rows of a person"] = lambda entry: f"{entry['rows_per_person'] or 'unknown'}"
    output.listing(columns, entries)
    notes: dict[str, Callable[[dict[str, Any]], str]] = {
        ">entry": columns[">entry"],
        "by": lambda entry: escape(f"{entry['user']}@{entry['host']}"),
        "purpose": lambda entry: escape(entry["purpose"] or ""),
        "model (SHA-256)": lambda entry: (entry["release"] or "")[:12],
    }
    output.listing(notes, entries)
    for entry in entries:
        if entry["prior"]:
            output.text(f"Entry {entry['number']:,} starts from {entry['prior']}.")
    groups: dict[int, list[int]] = {}
    for entry in entries:
        if entry["rows_as_in"]:
            groups.setdefault(entry["rows_as_in"], []).append(entry["number"])
    if len(groups) > 1:
        same = [", ".join(map(str, group)) for group in groups.values() if len(group) > 1]
        shown = "; fits ".join(same[:_GROUPS]) + "; ..." * (len(same) > _GROUPS)
        alike = f" Same rows: fits {shown}." if same else ""
        output.text(
            "Do not release: these fits used different rows. They may be folds of one data set, or "
            f"two data sets under one name.{alike}"
        )


def called(name: str | None, word: str) -> str:
    """Return the name of a data set after a word; nothing if it has none."""
    return "" if name is None else f"{word} {name!r}"


def fit_words(delta: float, n_iter: int, between: str = ", ") -> str:
    """Return delta and steps of a fit in words."""
    return f"delta {up(delta)}{between}{n_iter:,} steps"


def same_rows(entries: Sequence[ledgers.Entry]) -> dict[int, int | None]:
    """Return the first entry on the same rows for each entry; None where that is unknown."""
    prints = {entry.number: entry.charge.fingerprint or "" for entry in entries}
    # Fingerprints under one key compare; those of dplasso 0.2.0 had none.
    keyed = [text for text in prints.values() if ":" in text]
    key = keyed[-1].partition(":")[0] if keyed else None
    first: dict[str, int] = {}
    return {
        number: first.setdefault(text, number) if text.startswith(f"{key}:") else None
        for number, text in prints.items()
    }
