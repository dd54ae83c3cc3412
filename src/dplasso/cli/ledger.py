"""``dplasso ledger ...``: one budget for all fits on a data set."""

from pathlib import Path
from typing import Annotated

from dplasso.cli import options
from dplasso.cli.commands import Command, command_group
from dplasso.cli.ledger_report import (
    Planned,
    called,
    charge_for,
    down,
    fit_words,
    left_of,
    left_sentence,
    print_report,
    report_of,
)
from dplasso.cli.options import argument, option
from dplasso.cli.output import print_json, print_text

LedgerArgument = Annotated[Path, argument("LEDGER", "The ledger's file.")]
NameArgument = Annotated[str, argument("NAME", "The data set's name.")]
BudgetEpsilon = Annotated[
    float, option("--epsilon", "What all fits on the data set may spend together.", "E")
]
BudgetDelta = Annotated[
    float,
    option("--delta", "Probability with which the promise about all fits together may fail.", "D"),
]
BudgetRows = Annotated[
    int,
    option(
        "--rows-per-person",
        "Whom the budget is for: 1 for each row, M for each person with up to M rows.",
        "M",
    ),
]

app = command_group(
    "ledger",
    "Keep one privacy budget for all fits on a data set: who spent what, and what is left.",
    options.examples(
        "dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits",
        "dplasso ledger plan team.ledger --fits 5",
        "dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits "
        "--model model.npz",
        "dplasso ledger show team.ledger",
    ),
)


@app.command(
    "init",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits",
        note="Without --dataset the first fit that names a data set names it.",
    ),
)
def init(
    ledger: LedgerArgument,
    epsilon: BudgetEpsilon,
    delta: BudgetDelta,
    dataset: options.DatasetName = None,
    neighbors: options.Neighbors = "add-remove",
    rows_per_person: BudgetRows = 1,
) -> None:
    """Create a ledger with the budget of one data set."""
    from dplasso.ledger import create_ledger

    create_ledger(
        ledger,
        epsilon,
        delta,
        dataset=dataset,
        neighbors=neighbors,
        rows_per_person=rows_per_person,
    )


@app.command(
    "add",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger add team.ledger referrals --epsilon 1 --delta 1e-6",
        note="Each data set has a budget of its own: use this for records of other people only.",
    ),
)
def add(
    ledger: LedgerArgument,
    name: NameArgument,
    epsilon: BudgetEpsilon,
    delta: BudgetDelta,
    neighbors: options.Neighbors = "add-remove",
    rows_per_person: BudgetRows = 1,
) -> None:
    """Add the budget of one more data set."""
    from dplasso.ledger import add_dataset

    add_dataset(ledger, name, epsilon, delta, neighbors=neighbors, rows_per_person=rows_per_person)


@app.command("name", cls=Command, epilog=options.examples("dplasso ledger name team.ledger visits"))
def name(ledger: LedgerArgument, name: NameArgument) -> None:
    """Name the data set of a ledger that was created without --dataset."""
    from dplasso.ledger import name_dataset

    name_dataset(ledger, name)


@app.command(
    "spend",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger spend team.ledger --dataset visits --epsilon 0.5 --n-iter 300",
        "dplasso ledger spend team.ledger --dataset visits --epsilon 0.5 --method logistic",
        note="For fits that were made before the ledger, or without it. It cannot be undone.",
    ),
)
def spend(
    ledger: LedgerArgument,
    epsilon: options.Epsilon,
    delta: options.Delta = 1e-6,
    n_iter: options.Steps = None,
    method: options.Method = "lasso",
    dataset: options.DatasetName = None,
    purpose: options.Purpose = None,
    rows_per_person: options.RowsPerPerson = None,
) -> None:
    """Charge a fit that was made elsewhere."""
    from dataclasses import replace

    from dplasso.ledger import finish, pick, read_budgets, reserve
    from dplasso.ledger.creation import check_name

    if purpose is not None:
        check_name(purpose, "purpose")
    budget = pick(read_budgets(ledger), dataset, ledger)
    # Unless told otherwise it covered a row.
    fit = Planned(method, delta, n_iter, 1 if rows_per_person is None else rows_per_person)
    charge = replace(charge_for(budget, epsilon, fit), purpose=purpose)
    finish(reserve(ledger, dataset, charge))
    print_text(left_sentence(left_of(ledger, dataset, fit)), wrap=False)


@app.command(
    "show",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger show team.ledger",
        "dplasso ledger show team.ledger --epsilon 0.5 --n-iter 300",
        "dplasso ledger show team.ledger --json",
        note="For the curator: it names people and machines.",
    ),
)
def show(
    ledger: LedgerArgument,
    dataset: options.DatasetName = None,
    epsilon: Annotated[
        float | None,
        option("--epsilon", "Also say what one more fit of this epsilon would leave.", "E"),
    ] = None,
    delta: options.Delta = 1e-6,
    n_iter: options.Steps = None,
    method: options.Method = "lasso",
    as_json: options.AsJson = False,
) -> None:
    """Say who spent what, what is left, and what one more fit would leave."""
    from dplasso.ledger import pick, read_budgets

    budgets = read_budgets(ledger)
    if dataset is not None:
        budgets = (pick(budgets, dataset, ledger),)
    reports = [report_of(budget, epsilon, Planned(method, delta, n_iter)) for budget in budgets]
    if as_json:
        print_json({"ledger": ledger, "datasets": reports})
        return
    for report in reports:
        print_report(report)


@app.command(
    "plan",
    cls=Command,
    epilog=options.examples(
        "dplasso ledger plan team.ledger",
        "dplasso ledger plan team.ledger --dataset visits --fits 31 --n-iter 50",
        note="A grid search of C candidates on F folds is C x F + 1 fits.",
    ),
)
def plan(
    ledger: LedgerArgument,
    dataset: options.DatasetName = None,
    fits: Annotated[int, option("--fits", "How many equal fits.", "K", min=1)] = 1,
    delta: options.Delta = 1e-6,
    n_iter: options.Steps = None,
    method: options.Method = "lasso",
    rows_per_person: options.RowsPerPerson = None,
    as_json: options.AsJson = False,
) -> None:
    """Say which epsilon to give each of K fits so that they use up what is left."""
    from dplasso.ledger import largest_epsilon, pick, read_budgets

    budget = pick(read_budgets(ledger), dataset, ledger)
    covered = budget.rows_per_person if rows_per_person is None else rows_per_person
    fit = Planned(method, delta, n_iter, covered)
    left = largest_epsilon(budget, **fit.settings, fits=fits)
    if as_json:
        steps = fit.settings["n_iter"]
        settings = {"epsilon": left, "delta": delta, "n_iter": steps, "method": method}
        settings["rows_per_person"] = fit.rows_per_person
        print_json({"dataset": budget.name, "fits": fits, **settings})
    elif left == 0:
        print_text(f"Nothing is left of the budget{called(budget.name)}.", wrap=False)
    else:
        each = "One more fit" if fits == 1 else f"Each of {fits:,} more fits"
        print_text(
            f"{each} with {fit_words(delta, fit.settings['n_iter'], ' and ')} can have epsilon "
            f"{down(left)}{called(budget.name, ' on')}{_covering(fit)}.",
            wrap=False,
        )


def _covering(fit: Planned) -> str:
    rows = fit.rows_per_person or 1
    return "" if rows == 1 else f", with --rows-per-person {rows}"
