"""What the ledger's commands say: what is spent, what is left, and which fits have paid."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dplasso.cli import output

if TYPE_CHECKING:
    from dplasso.ledger import Budget, Charge, Entry
    from dplasso.model import Model
    from dplasso.privacy.statement import PrivacyStatement


# What a person is told of a budget after a charge.
_LEFT = [
    "dataset",
    "epsilon",
    "delta",
    "rows_per_person",
    "epsilon_spent",
    "epsilon_left",
    "share_spent",
]
# What is told of an entry as it is, and of its charge; and of a budget.
_ENTRY = [
    "number",
    "state",
    "release",
    "user",
    "host",
    "process",
    "program",
    "reserved_at",
    "ended_at",
]
_CHARGE = ["epsilon", "delta", "n_iter", "eps0", "neighbors", "rows_per_person", "purpose"]
_STATES = {"reserved": "running or died"}
_BUDGET = ["epsilon", "delta", "neighbors", "rows_per_person"]


@dataclass(frozen=True)
class Planned:
    """A fit that is yet to be made.

    Without a number of steps it takes its method's own, and covers whom the budget does unless told
    otherwise.
    """

    method: str = "lasso"
    delta: float = 1e-6
    n_iter: int | None = None
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        from dplasso.privacy.parameters import check_rows_per_person

        if self.rows_per_person is not None:
            check_rows_per_person(self.rows_per_person)

    def covering(self, rows_per_person: int) -> "Planned":
        """Return the fit, which covers so many rows of a person unless told otherwise."""
        return self if self.rows_per_person else replace(self, rows_per_person=rows_per_person)

    @property
    def settings(self) -> dict[str, Any]:
        """What `dplasso.ledger.largest_epsilon` asks of it."""
        planned = self._mechanism(1.0, "add-remove", 1)
        told = {"delta": self.delta, "rows_per_person": self.rows_per_person}
        return told | {"n_iter": planned.n_iter, "mechanism": planned.name}

    def charge(self, budget: "Budget", epsilon: float) -> "Charge":
        """Return what it costs in a budget."""
        from dplasso.ledger import charge_of

        rows = self.rows_per_person or budget.rows_per_person
        return charge_of(self._mechanism(epsilon, budget.neighbors, rows))

    def _mechanism(self, epsilon: float, neighbors: str, rows_per_person: int) -> Any:
        from dplasso.fit.cost import mechanism_for

        return mechanism_for(
            self.method,
            epsilon=epsilon,
            delta=self.delta,
            n_iter=self.n_iter,
            neighbors=neighbors,
            rows_per_person=rows_per_person,
            **({"plain_sum": False} if self.method == "lasso" and self.n_iter else {}),
        )


def left_in(ledger: Path, dataset: str | None, model: "Model") -> dict[str, Any]:
    """Return a data set's budget, what is spent of it, and what is left for another such fit."""
    from dplasso.model.release import digest_of

    return left_after(ledger, dataset, model.statement, digest_of(model.release))


def left_after(
    ledger: Path, dataset: str | None, statement: "PrivacyStatement", release: str = ""
) -> dict[str, Any]:
    """Return the same after a charge for what the statement is of."""
    method = "logistic" if statement.mechanism == "gaussian" else "lasso"
    steps = statement.steps if statement.mechanism in ("gaussian", "exponential") else None
    fit = Planned(method, statement.delta, steps, statement.rows_per_person)
    return left_of(ledger, dataset, fit, release)


def left_of(ledger: Path, dataset: str | None, fit: Planned, release: str = "") -> dict[str, Any]:
    """Return the same after the charge of the fit that released `release`, or after the last."""
    from dplasso.ledger import fits_left, pick, read_budgets

    budget = pick(read_budgets(ledger), dataset, ledger)
    report = report_of(budget, None, fit)
    # A fit of few steps may release what an earlier one did.
    made = next(
        (one for one in reversed(budget.entries) if one.release == release), budget.entries[-1]
    )
    return {key: report[key] for key in _LEFT} | {"fits_left": fits_left(budget, made.charge)}


def left_sentence(report: dict[str, Any]) -> str:
    """Word what `left_in` returns."""
    spent, left = _shares(report["share_spent"])
    rest, more = "nothing is left", report["fits_left"]
    if more:
        fits = "1 more such fit" if more == 1 else f"{more:,} more such fits"
        rest = f"{left} is left, enough for {fits}"
    elif report["epsilon_left"]:
        epsilon = down(report["epsilon_left"])
        rest = f"{left} is left, enough for a fit of epsilon {epsilon} but no other such fit"
    return (
        f"charged{called(report['dataset'], ' to')}: {spent} of the budget (epsilon "
        f"{up(report['epsilon'])} at delta {up(report['delta'])}, for "
        f"{_protected(report['rows_per_person'])}) is spent, {rest}"
    )


def _protected(rows_per_person: int) -> str:
    from dplasso.ledger.refusal import protected

    return protected(rows_per_person)


def _shares(spent: float) -> tuple[str, str]:
    """Word what is spent and what is left; they add up to 100 %, and nothing is left unsaid."""
    tenths = min(1000, math.ceil(1000 * spent - 1e-9))
    return f"{tenths / 10:.1f} %", f"{(1000 - tenths) / 10:.1f} %"


def report_of(budget: "Budget", epsilon: float | None, fit: Planned) -> dict[str, Any]:
    """Put together all that is said about one data set, as JSON says it."""
    from dplasso.ledger import UNITS, counted, epsilon_total, totals

    state, same = _state_of(budget, fit), _rows_as_in(budget.entries)
    whole = _whole(budget)
    entries = [
        {
            **{name: getattr(entry, name) for name in _ENTRY},
            **{name: getattr(entry.charge, name) for name in _CHARGE},
            "rho": entry.charge.rho / UNITS,
            "draw_delta": entry.charge.draw_delta / UNITS,
            # Of the budget as it is now; epsilons do not add up, these do.
            "share": counted(entry.charge, budget.rows_per_person)[0] / whole if whole else None,
            "rows_as_in": same[entry.number],
        }
        for entry in budget.entries
    ]
    report: dict[str, Any] = {
        "dataset": budget.name,
        **{name: getattr(budget, name) for name in _BUDGET},
        "totals": [
            {"rows_per_person": rows, "epsilon": epsilon_total(*spent, budget.delta)}
            for rows, spent in totals(budget).items()
        ],
        **state,
        "rho_spent": budget.rho / UNITS,
        "rho_left": max(0, whole - budget.rho) / UNITS,
        "draw_delta_spent": budget.draw_delta / UNITS,
        "another_fit": {"method": fit.method, "delta": fit.delta, "n_iter": fit.settings["n_iter"]},
        "entries": entries,
    }
    if epsilon is not None:
        report["another_fit"] |= _after(budget, epsilon, fit)
    return report


def _whole(budget: "Budget") -> int:
    """Return all the zCDP that the budget has room for, and at least what is spent."""
    from dplasso.ledger import rho_limit

    return max(rho_limit(budget), budget.rho)


def _state_of(budget: "Budget", fit: Planned) -> dict[str, float]:
    """Say what is spent of a budget, and which epsilon one more fit can have."""
    from dplasso.ledger import epsilon_total, largest_epsilon

    whole = _whole(budget)
    return {
        "epsilon_spent": epsilon_total(budget.rho, budget.draw_delta, budget.delta),
        "share_spent": budget.rho / whole if whole else 1.0,
        "epsilon_left": largest_epsilon(budget, **fit.settings),
    }


def _rows_as_in(entries: "Sequence[Entry]") -> dict[int, int | None]:
    """Say of each entry which is the first on the same rows; None where that is not known."""
    data = {entry.number: entry.charge.fingerprint or "" for entry in entries}
    # Fingerprints under one key compare; those of dplasso 0.2.0 had none.
    key = next((one.partition(":")[0] for one in reversed(data.values()) if ":" in one), None)
    first: dict[str, int] = {}
    return {
        number: first.setdefault(one, number) if one.startswith(f"{key}:") else None
        for number, one in data.items()
    }


def _after(budget: "Budget", epsilon: float, fit: Planned) -> dict[str, Any]:
    """Say what one more fit would leave."""
    from dplasso.ledger import Entry, affords

    charge = fit.charge(budget, epsilon)
    answer: dict[str, Any] = {"epsilon": epsilon, "allowed": affords(budget, charge)}
    if answer["allowed"]:
        entry = Entry(0, "planned", charge, "", "", "", 0, "", None)
        after = replace(budget, entries=(*budget.entries, entry))
        answer |= {f"{name}_after": value for name, value in _state_of(after, fit).items()}
    return answer


def print_report(report: dict[str, Any]) -> None:
    """Print one data set for a person."""
    another, entries = report["another_fit"], report["entries"]
    output.text(
        f"{report['dataset'] or '(a data set without a name)'}: epsilon {up(report['epsilon'])} "
        f"at delta {up(report['delta'])}, {report['neighbors']}, for "
        f"{_protected(report['rows_per_person'])}",
        "bold",
        wrap=False,
    )
    if entries:
        _print_entries(entries)
    fits = "1 fit" if len(entries) == 1 else f"{len(entries):,} fits"
    spent, left = _shares(report["share_spent"])
    rest = "Nothing is left."
    if report["epsilon_left"]:
        less = "; at the budget's delta that epsilon is less"
        words = fit_words(another["delta"], another["n_iter"])
        words += less if another["delta"] < report["delta"] else ""
        epsilon = down(report["epsilon_left"])
        rest = f"Left: {left}, which one fit of epsilon {epsilon} uses up ({words})."
    output.text(f"Spent: {spent} by {fits}. {rest}", wrap=False)
    if len(report["totals"]) > 1:
        everybody = ", ".join(
            f"{up(one['epsilon'])} for {_protected(one['rows_per_person'])}"
            for one in report["totals"]
        )
        output.text(f"At delta {up(report['delta'])} that is epsilon {everybody}.", wrap=False)
    if "epsilon" in another:
        output.text(_after_sentence(another), wrap=False)
    output.text()


def _after_sentence(another: dict[str, Any]) -> str:
    fit = f"fit of epsilon {up(another['epsilon'])}"
    if not another["allowed"]:
        return f"A {fit} would be refused."
    spent, left = _shares(another["share_spent_after"])
    return f"After a {fit}: {spent} spent, {left} left."


def _print_entries(entries: list[dict[str, Any]]) -> None:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">fit": lambda entry: str(entry["number"]),
        "reserved (UTC)": lambda entry: entry["reserved_at"][:19].replace("T", " "),
        "by": lambda entry: escape(f"{entry['user']}@{entry['host']}"),
        ">epsilon": lambda entry: up(entry["epsilon"]),
        ">delta": lambda entry: up(entry["delta"]),
        ">steps": lambda entry: f"{entry['n_iter']:,}",
        ">share": lambda entry: f"{entry['share']:.1%}" if entry["share"] is not None else "",
        "state": lambda entry: _STATES.get(entry["state"], entry["state"]),
    }
    # Whom each covers is said where that is not always a row.
    if any(entry["rows_per_person"] != 1 for entry in entries):
        columns[">rows of a person"] = lambda entry: f"{entry['rows_per_person'] or 'unknown'}"
    rows = [[cell(entry) for cell in columns.values()] for entry in entries]
    output.table(list(columns), rows)
    notes = [
        (str(entry["number"]), escape(entry["purpose"] or ""), (entry["release"] or "")[:12])
        for entry in entries
    ]
    if any(any(note[1:]) for note in notes):
        output.table([">fit", "purpose", "model (SHA-256)"], notes)
    rows_of = {entry["rows_as_in"] for entry in entries} - {None}
    if len(rows_of) > 1:
        alike = ", ".join(
            f"{entry['number']} as {entry['rows_as_in']}"
            for entry in entries
            if entry["rows_as_in"]
        )
        output.text(
            "Not for release: fits on different rows, folds of one data set or two under one name? "
            f"Rows of fit {alike}."
        )


def called(name: str | None, word: str = " of") -> str:
    """Word which data set is meant, if it has a name."""
    return "" if name is None else f"{word} {name!r}"


def fit_words(delta: float, n_iter: int, between: str = ", ") -> str:
    """Word what a fit's epsilon depends on."""
    return f"delta {up(delta)}{between}{n_iter:,} steps"


def up(value: float) -> str:
    """Write what is promised or spent, never as less than it is."""
    from dplasso.privacy.wording import rounded_up

    return rounded_up(value, 6)


def down(epsilon: float) -> str:
    """Write what can be asked for, never as more than it is."""
    from dplasso.ledger.refusal import rounded_down

    return rounded_down(epsilon)
