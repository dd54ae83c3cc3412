"""``dplasso ledger ...``: one budget for all fits on a data set."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dplasso import ledger as ledgers
from dplasso.cli import output
from dplasso.cli.ledger_report import (
    called,
    fit_words,
    left_after,
    left_sentence,
    print_report,
    report_of,
    up,
)
from dplasso.privacy.budget import Budget
from dplasso.privacy.wording import rounded_down as down

# The delta of a fit by default.
DELTA = 1e-6


@dataclass(frozen=True)
class Planned:
    """A fit.

    Options
    -------
    delta : D
        Delta of the fit. Default: 1e-6, or the delta of the budget if that is smaller.
    """

    method: str = "logistic"
    delta: float | None = None
    n_iter: int | None = None
    rows_per_person: int | None = None

    def cost(
        self, epsilon: float, neighbors: str, delta: float, rows_per_person: int, **more: Any
    ) -> Budget:
        """Return the cost of the fit; the last two numbers are its defaults, `more` parameters."""
        from dplasso.estimators.cost import estimator_of
        from dplasso.estimators.fitting import method_of

        settings = more if self.n_iter is None else {"n_iter": self.n_iter} | more
        settings |= {"epsilon": epsilon, "neighbors": neighbors}
        settings["delta"] = delta if self.delta is None else self.delta
        settings["rows_per_person"] = self.rows_per_person or rows_per_person
        return method_of(estimator_of(self.method, None, **settings)).cost()

    def settings(self, budget: ledgers.Budget) -> dict[str, Any]:
        """Return the arguments of `dplasso.ledger.largest_epsilon`, with defaults of a budget."""
        delta = min(DELTA, budget.delta)
        cost = self.cost(1.0, "add-remove", delta, budget.rows_per_person)
        stated = {"delta": cost.delta, "n_iter": cost.n_iter, "mechanism": cost.name}
        return stated | {"rows_per_person": cost.rows_per_person, "draws": cost.draws}


@dataclass(frozen=True)
class Limits:
    """The budget of a data set.

    Options
    -------
    epsilon : E
        What all fits on the data set may spend together.
    delta : D
        Probability with which the promise about all fits together may fail.
    rows_per_person : M
        Whom the budget is for: 1 for each row, M for each person with up to M rows.
    """

    epsilon: float
    delta: float
    neighbors: str = "add-remove"
    rows_per_person: int = 1


def init(ledger_file: Path, limits: Limits, dataset: str | None = None) -> None:
    """Create a ledger with the budget of one data set.

    Examples
    --------
    dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits

    Without --dataset the first fit that names a data set names it.
    """
    ledgers.create_ledger(ledger_file, dataset=dataset, **asdict(limits))


def add(ledger_file: Path, name: str, limits: Limits) -> None:
    """Add the budget of one more data set.

    Examples
    --------
    dplasso ledger add team.ledger referrals --epsilon 1 --delta 1e-6

    Each data set has a budget of its own: use this for records of other people only.
    """
    ledgers.add_dataset(ledger_file, name, **asdict(limits))


def name(ledger_file: Path, name: str) -> None:
    """Name the data set of a ledger that was created without --dataset.

    Examples
    --------
    dplasso ledger name team.ledger visits
    """
    ledgers.name_dataset(ledger_file, name)


def spend(
    ledger_file: Path,
    epsilon: float,
    fit: Planned,
    dataset: str | None = None,
    purpose: str | None = None,
) -> None:
    """Charge a fit or a score that was made elsewhere.

    Examples
    --------
    dplasso ledger spend team.ledger --dataset visits --epsilon 0.5
    dplasso ledger spend team.ledger --epsilon 0.5 --method frank-wolfe --n-iter 300

    For fits and scores that were made before the ledger, or without it. A search costs more than a
    fit of its epsilon (docs/ledger.md). It cannot be undone.
    """
    from dplasso.estimators.cost import DEAREST

    ledger = ledgers.Ledger(ledger_file, dataset, purpose)
    # A fit that was made elsewhere had the default delta and covered a row, unless options differ.
    defaults = epsilon, ledger.budget().neighbors, DELTA, 1
    charge = ledger.charge(fit.cost(*defaults))
    if fit.method in DEAREST:
        other = ledger.charge(fit.cost(*defaults, **DEAREST[fit.method]))
        rho, draws = max(charge.rho, other.rho), max(charge.draw_delta, other.draw_delta)
        charge = replace(charge, rho=rho, draw_delta=draws)
    ledgers.finish(ledgers.reserve(ledger_file, dataset, charge))
    output.text(left_sentence(left_after(ledger_file, dataset)), wrap=False)


def show(ledger_file: Path, dataset: str | None = None) -> output.Result:
    """Show who spent what, and what is left.

    Examples
    --------
    dplasso ledger show team.ledger
    dplasso ledger show team.ledger --json

    For the curator: it names people and machines.
    """
    budgets = ledgers.read_budgets(ledger_file)
    if dataset is not None:
        budgets = (ledgers.pick(budgets, dataset, ledger_file),)
    reports = [report_of(budget, Planned().settings(budget)) for budget in budgets]
    document: dict[str, Any] = {"ledger": ledger_file, "datasets": reports}
    total = ledgers.total_of(budgets) if len(budgets) > 1 else None
    if total is not None:
        document["person_in_all"] = dict(zip(("epsilon", "delta"), total, strict=True))

    def print_all() -> None:
        for report in reports:
            print_report(report)
        if total is not None:
            epsilon, delta = map(up, total)
            rows = max(budget.rows_per_person for budget in budgets)
            each = f", with up to {rows:,} rows in each," * (rows > 1)
            spent = f"has spent epsilon {epsilon} at delta {delta}"
            output.text(f"A person in all of these data sets{each} {spent}.", wrap=False)

    return output.Result(document, print_all)


def plan(
    ledger_file: Path, fit: Planned, dataset: str | None = None, fits: int = 1
) -> output.Result:
    """Compute the epsilon of each of K fits that use up what is left.

    Options
    -------
    fits : K >= 1
        How many equal fits.

    Examples
    --------
    dplasso ledger plan team.ledger
    dplasso ledger plan team.ledger --dataset visits --fits 31 --method lasso

    A grid search of C candidates on F folds is C x F + 1 fits.
    """
    budget = ledgers.Ledger(ledger_file, dataset).budget()
    settings = fit.settings(budget)
    delta, steps, rows = settings["delta"], settings["n_iter"], settings["rows_per_person"]
    left = ledgers.largest_epsilon(budget, **settings, fits=fits)
    sentence = f"Nothing is left of the budget{called(budget.name, ' of')}."
    if left:
        each = "One more fit" if fits == 1 else f"Each of {fits:,} more fits"
        covering = f", with --rows-per-person {rows}" if rows > 1 else ""
        sentence = (
            f"{each} with {fit_words(delta, steps, ' and ')} can have epsilon "
            f"{down(left)}{called(budget.name, ' on')}{covering}."
        )
    planned = {"dataset": budget.name, "fits": fits, "epsilon": left, "delta": delta}
    planned |= {"n_iter": steps, "method": fit.method, "rows_per_person": rows}
    return output.Result(planned, partial(output.text, sentence, wrap=False))
