"""The Typer application: its commands, their order and the help in front of them."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from dplasso.cli import audit, budget, convert, data, demo, fit, ledger, models, output, paper, tune
from dplasso.cli.commands import SETTINGS, GuardedGroup, add_command

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


COMMANDS: tuple[Callable[..., None], ...] = (
    *(fit.fit, tune.tune, models.predict, models.evaluate, models.show, models.report),
    *(budget.plan, budget.budget, audit.audit, demo.demo, paper.paper, convert.convert),
)
for command in COMMANDS:
    add_command(app, command.__name__, command)
for group in (data.app, data.schemas, ledger.app):
    app.add_typer(group)
