"""``dplasso ledger ...``: one budget for all fits on a data set."""

from dataclasses import replace
from pathlib import Path

from dplasso.cli.commands import add_command, command_group
from dplasso.cli.ledger_report import (
    Planned,
    called,
    down,
    fit_words,
    left_of,
    left_sentence,
    print_report,
    report_of,
)
from dplasso.cli.options import examples
from dplasso.cli.output import print_json, print_text

INIT = "dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits"

app = command_group(
    "ledger",
    "Keep one privacy budget for all fits on a data set: who spent what, and what is left.",
    examples(
        INIT,
        "dplasso ledger plan team.ledger --fits 5",
        "dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits "
        "--model model.npz",
        "dplasso ledger show team.ledger",
    ),
)


def init(
    ledger_file: Path,
    epsilon: float,
    delta: float,
    dataset: str | None = None,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> None:
    """Create a ledger with the budget of one data set.

    Options
    -------
    epsilon : E
        What all fits on the data set may spend together.
    delta : D
        Probability with which the promise about all fits together may fail.
    rows_per_person : M
        Whom the budget is for: 1 for each row, M for each person with up to M rows.
    """
    from dplasso.ledger import create_ledger

    whom = {"neighbors": neighbors, "rows_per_person": rows_per_person}
    create_ledger(ledger_file, epsilon, delta, dataset=dataset, **whom)  # type: ignore[arg-type]


def add(
    ledger_file: Path,
    name: str,
    epsilon: float,
    delta: float,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> None:
    """Add the budget of one more data set.

    Arguments
    ---------
    name : NAME
        The data set's name.

    Options
    -------
    epsilon : E
        What all fits on the data set may spend together.
    delta : D
        Probability with which the promise about all fits together may fail.
    rows_per_person : M
        Whom the budget is for: 1 for each row, M for each person with up to M rows.
    """
    from dplasso.ledger import add_dataset

    whom = {"neighbors": neighbors, "rows_per_person": rows_per_person}
    add_dataset(ledger_file, name, epsilon, delta, **whom)  # type: ignore[arg-type]


def name(ledger_file: Path, name: str) -> None:
    """Name the data set of a ledger that was created without --dataset.

    Arguments
    ---------
    name : NAME
        The data set's name.
    """
    from dplasso.ledger import name_dataset

    name_dataset(ledger_file, name)


def spend(
    ledger_file: Path,
    epsilon: float,
    delta: float = 1e-6,
    n_iter: int | None = None,
    method: str = "lasso",
    dataset: str | None = None,
    purpose: str | None = None,
    rows_per_person: int | None = None,
) -> None:
    """Charge a fit that was made elsewhere."""
    from dplasso.ledger import finish, pick, read_budgets, reserve
    from dplasso.ledger.creation import check_name

    if purpose is not None:
        check_name(purpose, "purpose")
    budget = pick(read_budgets(ledger_file), dataset, ledger_file)
    # Unless told otherwise it covered a row.
    fit = Planned(method, delta, n_iter, 1 if rows_per_person is None else rows_per_person)
    charge = replace(fit.charge(budget, epsilon), purpose=purpose)
    finish(reserve(ledger_file, dataset, charge))
    print_text(left_sentence(left_of(ledger_file, dataset, fit)), wrap=False)


def show(
    ledger_file: Path,
    dataset: str | None = None,
    epsilon: float | None = None,
    delta: float = 1e-6,
    n_iter: int | None = None,
    method: str = "lasso",
    as_json: bool = False,
) -> None:
    """Say who spent what, what is left, and what one more fit would leave.

    Options
    -------
    epsilon : E
        Also say what one more fit of this epsilon would leave.
    """
    from dplasso.ledger import pick, read_budgets

    budgets = read_budgets(ledger_file)
    if dataset is not None:
        budgets = (pick(budgets, dataset, ledger_file),)
    reports = [report_of(budget, epsilon, Planned(method, delta, n_iter)) for budget in budgets]
    if as_json:
        print_json({"ledger": ledger_file, "datasets": reports})
        return
    for report in reports:
        print_report(report)


def plan(
    ledger_file: Path,
    dataset: str | None = None,
    fits: int = 1,
    delta: float = 1e-6,
    n_iter: int | None = None,
    method: str = "lasso",
    rows_per_person: int | None = None,
    as_json: bool = False,
) -> None:
    """Say which epsilon to give each of K fits so that they use up what is left.

    Options
    -------
    fits : K >= 1
        How many equal fits.
    """
    from dplasso.ledger import largest_epsilon, pick, read_budgets

    budget = pick(read_budgets(ledger_file), dataset, ledger_file)
    rows = budget.rows_per_person if rows_per_person is None else rows_per_person
    fit = Planned(method, delta, n_iter, rows)
    steps, left = fit.settings["n_iter"], largest_epsilon(budget, **fit.settings, fits=fits)
    if as_json:
        settings = {"epsilon": left, "delta": delta, "n_iter": steps, "method": method}
        planned = {"dataset": budget.name, "fits": fits, **settings, "rows_per_person": rows}
        print_json(planned)
        return
    told = f"Nothing is left of the budget{called(budget.name)}."
    if left:
        each = "One more fit" if fits == 1 else f"Each of {fits:,} more fits"
        covering = f", with --rows-per-person {rows}" if rows > 1 else ""
        told = (
            f"{each} with {fit_words(delta, steps, ' and ')} can have epsilon "
            f"{down(left)}{called(budget.name, ' on')}{covering}."
        )
    print_text(told, wrap=False)


SPEND = "dplasso ledger spend team.ledger --dataset visits --epsilon 0.5"
SHOW = "dplasso ledger show team.ledger"
PLAN = "dplasso ledger plan team.ledger"
for command, lines, note in (
    (init, [INIT], "Without --dataset the first fit that names a data set names it."),
    (
        add,
        ["dplasso ledger add team.ledger referrals --epsilon 1 --delta 1e-6"],
        "Each data set has a budget of its own: use this for records of other people only.",
    ),
    (name, ["dplasso ledger name team.ledger visits"], ""),
    (
        spend,
        [f"{SPEND} --n-iter 300", f"{SPEND} --method logistic"],
        "For fits that were made before the ledger, or without it. It cannot be undone.",
    ),
    (
        show,
        [SHOW, f"{SHOW} --epsilon 0.5 --n-iter 300", f"{SHOW} --json"],
        "For the curator: it names people and machines.",
    ),
    (
        plan,
        [PLAN, f"{PLAN} --dataset visits --fits 31 --n-iter 50"],
        "A grid search of C candidates on F folds is C x F + 1 fits.",
    ),
):
    add_command(app, command.__name__, command, examples(*lines, note=note))
