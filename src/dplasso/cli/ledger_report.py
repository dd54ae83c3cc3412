"""What the ledger's commands say: what is spent, what is left, and which fits have paid."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dplasso.cli.output import print_table, print_text

if TYPE_CHECKING:
    from dplasso.ledger import Budget, Charge, Entry
    from dplasso.model import Model
    from dplasso.privacy.statement import PrivacyStatement


@dataclass(frozen=True)
class Planned:
    """A fit that is yet to be made.

    Without a number of steps it takes its method's own, and covers whom the budget does unless told
    otherwise.
    """

    method: str
    delta: float
    n_iter: int | None = None
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        from dplasso.fit.cost import METHODS
        from dplasso.privacy.parameters import check_rows_per_person

        if self.rows_per_person is not None:
            check_rows_per_person(self.rows_per_person)
        if self.method not in METHODS:
            raise ValueError(f"method must be lasso, logistic or linear, got {self.method!r}")

    @property
    def settings(self) -> dict[str, Any]:
        """What `dplasso.ledger.largest_epsilon` asks of it."""
        planned = self.mechanism(1.0, "add-remove", 1)
        return {
            "delta": self.delta,
            "n_iter": planned.n_iter,
            "mechanism": planned.name,
            "rows_per_person": self.rows_per_person,
        }

    def mechanism(self, epsilon: float, neighbors: str, rows_per_person: int) -> Any:
        """Return its private step."""
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
    kept = ("dataset", "epsilon", "delta", "rows_per_person", "epsilon_spent", "epsilon_left")
    left = {key: report[key] for key in (*kept, "share_spent")}
    return left | {"fits_left": fits_left(budget, made.charge)}


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
    from math import ceil

    tenths = min(1000, ceil(1000 * spent - 1e-9))
    return f"{tenths / 10:.1f} %", f"{(1000 - tenths) / 10:.1f} %"


def charge_for(budget: "Budget", epsilon: float, fit: Planned) -> "Charge":
    """Return what a fit costs in this budget."""
    from dplasso.ledger import charge_of

    rows = fit.rows_per_person or budget.rows_per_person
    return charge_of(fit.mechanism(epsilon, budget.neighbors, rows))


def report_of(budget: "Budget", epsilon: float | None, fit: Planned) -> dict[str, Any]:
    """Put together all that is said about one data set, as JSON says it."""
    from dplasso.ledger import (
        UNITS,
        counted,
        epsilon_total,
        largest_epsilon,
        rho_limit,
        totals,
    )

    whole = max(rho_limit(budget), budget.rho)
    same = _rows_as_in(budget.entries)
    entries = [
        {
            "number": entry.number,
            "state": entry.state,
            "epsilon": entry.charge.epsilon,
            "delta": entry.charge.delta,
            "n_iter": entry.charge.n_iter,
            "eps0": entry.charge.eps0,
            "neighbors": entry.charge.neighbors,
            "rows_per_person": entry.charge.rows_per_person,
            "rho": entry.charge.rho / UNITS,
            "draw_delta": entry.charge.draw_delta / UNITS,
            # Of the budget as it is now; epsilons do not add up, these do.
            "share": counted(entry.charge, budget.rows_per_person)[0] / whole if whole else None,
            "purpose": entry.charge.purpose,
            "release": entry.release,
            "rows_as_in": same[entry.number],
            "user": entry.user,
            "host": entry.host,
            "process": entry.process,
            "program": entry.program,
            "reserved_at": entry.reserved_at,
            "ended_at": entry.ended_at,
        }
        for entry in budget.entries
    ]
    report: dict[str, Any] = {
        "dataset": budget.name,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbors": budget.neighbors,
        "rows_per_person": budget.rows_per_person,
        "totals": [
            {"rows_per_person": rows, "epsilon": epsilon_total(*spent, budget.delta)}
            for rows, spent in totals(budget).items()
        ],
        "epsilon_spent": epsilon_total(budget.rho, budget.draw_delta, budget.delta),
        "share_spent": budget.rho / whole if whole else 1.0,
        "rho_spent": budget.rho / UNITS,
        "rho_left": max(0, whole - budget.rho) / UNITS,
        "draw_delta_spent": budget.draw_delta / UNITS,
        "epsilon_left": largest_epsilon(budget, **fit.settings),
        "another_fit": {"method": fit.method, "delta": fit.delta, "n_iter": fit.settings["n_iter"]},
        "entries": entries,
    }
    if epsilon is not None:
        report["another_fit"] |= _after(budget, epsilon, fit)
    return report


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
    from dataclasses import replace

    from dplasso.ledger import Entry, affords, epsilon_total, largest_epsilon, rho_limit

    charge = charge_for(budget, epsilon, fit)
    answer: dict[str, Any] = {"epsilon": epsilon, "allowed": affords(budget, charge)}
    if answer["allowed"]:
        entry = Entry(0, "planned", charge, "", "", "", 0, "", None)
        after = replace(budget, entries=(*budget.entries, entry))
        answer["epsilon_spent_after"] = epsilon_total(after.rho, after.draw_delta, after.delta)
        whole = max(rho_limit(after), after.rho)
        answer["share_spent_after"] = after.rho / whole if whole else 1.0
        answer["epsilon_left_after"] = largest_epsilon(after, **fit.settings)
    return answer


def print_report(report: dict[str, Any]) -> None:
    """Print one data set for a person."""
    another, entries = report["another_fit"], report["entries"]
    print_text(
        f"{report['dataset'] or '(a data set without a name)'}: epsilon {up(report['epsilon'])} "
        f"at delta {up(report['delta'])}, {report['neighbors']}, for "
        f"{_protected(report['rows_per_person'])}",
        "bold",
        wrap=False,
    )
    if entries:
        _print_entries(entries)
    epsilon, fits = (
        report["epsilon_left"],
        "1 fit" if len(entries) == 1 else f"{len(entries):,} fits",
    )
    spent, left = _shares(report["share_spent"])
    less = "; at the budget's delta that epsilon is less" * (another["delta"] < report["delta"])
    print_text(
        f"Spent: {spent} by {fits}. "
        + (
            f"Left: {left}, which one fit of epsilon {down(epsilon)} uses up "
            f"({fit_words(another['delta'], another['n_iter'])}{less})."
            if epsilon
            else "Nothing is left."
        ),
        wrap=False,
    )
    if len(report["totals"]) > 1:
        all_told = ", ".join(
            f"{up(one['epsilon'])} for {_protected(one['rows_per_person'])}"
            for one in report["totals"]
        )
        print_text(f"At delta {up(report['delta'])} that is epsilon {all_told}.", wrap=False)
    if "epsilon" in another:
        print_text(_after_sentence(another), wrap=False)
    print_text()


def _after_sentence(another: dict[str, Any]) -> str:
    fit = f"fit of epsilon {up(another['epsilon'])}"
    if not another["allowed"]:
        return f"A {fit} would be refused."
    spent, left = _shares(another["share_spent_after"])
    return f"After a {fit}: {spent} spent, {left} left."


def _print_entries(entries: list[dict[str, Any]]) -> None:
    headings = [">fit", "reserved (UTC)", "by", ">epsilon", ">delta", ">steps", ">share", "state"]
    # Whom each covers is said where that is not always a row.
    several = any(entry["rows_per_person"] != 1 for entry in entries)
    headings += [">rows of a person"] * several
    rows = [
        (
            str(entry["number"]),
            entry["reserved_at"][:19].replace("T", " "),
            escape(f"{entry['user']}@{entry['host']}"),
            up(entry["epsilon"]),
            up(entry["delta"]),
            f"{entry['n_iter']:,}",
            f"{entry['share']:.1%}" if entry["share"] is not None else "",
            "running or died" if entry["state"] == "reserved" else entry["state"],
            *([f"{entry['rows_per_person'] or 'unknown'}"] * several),
        )
        for entry in entries
    ]
    print_table(headings, rows)
    notes = [
        (str(entry["number"]), escape(entry["purpose"] or ""), (entry["release"] or "")[:12])
        for entry in entries
    ]
    if any(any(note[1:]) for note in notes):
        print_table([">fit", "purpose", "model (SHA-256)"], notes)
    rows_of = {entry["rows_as_in"] for entry in entries} - {None}
    if len(rows_of) > 1:
        alike = ", ".join(
            f"{entry['number']} as {entry['rows_as_in']}"
            for entry in entries
            if entry["rows_as_in"]
        )
        print_text(
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
