"""The Typer application: its commands, their order and the help in front of them."""

from importlib.metadata import version
from typing import Annotated

import typer

from dplasso.cli import output
from dplasso.cli.commands import SETTINGS, GuardedGroup, add_command, add_group

app = typer.Typer(
    name="dplasso",
    cls=GuardedGroup,
    help=(
        "Differentially private linear models for sparse, high-dimensional data."
        "\n\nA model is trained under (epsilon, delta)-differential privacy by either of two "
        "methods: the LASSO by Frank-Wolfe, or noisy gradient descent."
    ),
    epilog=(
        "Start here:  dplasso demo   "
        "Then:  dplasso fit train.svm.gz --epsilon 1 --test test.svm.gz --model model.npz"
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        output.text(f"dplasso {version('dplasso')}")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option(
        "--version",
        help="Print the version and exit.",
        metavar="",
        callback=_print_version,
        is_eager=True,
    ),
]


@app.callback()
def _options(_version: _Version = False) -> None:
    """Hold the options that stand before the command's name."""


for home in (
    *("fit.fit", "tune.tune", "models.predict", "models.evaluate", "models.show", "models.report"),
    *("budget.plan", "budget.budget", "audit.audit", "demo.demo", "paper.paper", "convert.convert"),
):
    add_command(app, home)
add_group(
    app,
    "data",
    "Data sets and stores: list and fetch them, and see what is in them.",
    ("data.info", "data.list_sets", "data.fetch"),
)
add_group(
    app,
    "schema",
    "What the columns of a table are: draft a schema to edit.",
    ("data.draft",),
)
add_group(
    app,
    "ledger",
    """Keep one privacy budget for all fits on a data set: who spent what, and what is left.

    Examples
    --------
    dplasso ledger init team.ledger --epsilon 3 --delta 1e-5 --dataset visits
    dplasso ledger plan team.ledger --fits 5
    dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits --model model.npz
    dplasso ledger show team.ledger
    """,
    ("ledger.init", "ledger.add", "ledger.name", "ledger.spend", "ledger.show", "ledger.plan"),
)
