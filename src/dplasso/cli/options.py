"""Options that several commands share: what is asked of privacy."""

from pathlib import Path
from typing import Annotated

import typer

PRIVACY = "Privacy"
MODEL = "Model"
DATA = "Data"
OUTPUT = "Output"
CHECKPOINT = "Interruptions"

Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon",
        metavar="E",
        show_default=False,
        help="Privacy budget of the whole fit; smaller is more private. inf: no privacy at all.",
        rich_help_panel=PRIVACY,
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        metavar="D",
        help="Probability with which the promise may fail; far below one in the number of people.",
        rich_help_panel=PRIVACY,
    ),
]
Neighbors = Annotated[
    str,
    typer.Option(
        "--neighbors",
        metavar="RELATION",
        help="What one record's difference means: add-remove or replace-one.",
        rich_help_panel=PRIVACY,
    ),
]
FeatureBound = Annotated[
    float,
    typer.Option(
        "--feature-bound",
        metavar="B",
        help="Public bound on |value|; larger values are clipped to it, silently.",
        rich_help_panel=PRIVACY,
    ),
]
Iterations = Annotated[
    int,
    typer.Option(
        "--n-iter",
        metavar="T",
        help="Iterations, and the most non-zero weights the model can have; more iterations "
        "leave less budget for each.",
        rich_help_panel=MODEL,
    ),
]
Ledger = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        show_default=False,
        help="Charge the fit to this budget ledger before it begins (see dplasso ledger).",
        rich_help_panel=PRIVACY,
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        show_default=False,
        help="Whose budget in the ledger; not needed where it keeps only one.",
        rich_help_panel=PRIVACY,
    ),
]
CheckpointPath = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="PATH",
        show_default=False,
        help="Keep the steps taken so far in this file, so that a fit that is killed can go on. "
        "It belongs with the data; release the model instead.",
        rich_help_panel=CHECKPOINT,
    ),
]
CheckpointSeconds = Annotated[
    float,
    typer.Option(
        "--checkpoint-seconds",
        metavar="S",
        min=0,
        help="How often the checkpoint is written.",
        rich_help_panel=CHECKPOINT,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on from --checkpoint, with the same data and options. Costs no budget twice.",
        rich_help_panel=CHECKPOINT,
    ),
]
ReplaceStore = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace an existing store, once the new one is complete.",
        rich_help_panel=OUTPUT,
    ),
]
StoreThreads = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, show_default=False, help="Threads."),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on standard output and nothing else."),
]


def examples(*commands: str, note: str = "") -> str:
    """Lay out the examples under a command's help.

    Parameters
    ----------
    *commands : str
        Command lines.
    note : str, default=""
        A paragraph after them.

    Returns
    -------
    str
        Text for Typer's epilog.
    """
    lines = ["[bold]Examples[/bold]", *(f"[cyan]$ {command}[/cyan]" for command in commands)]
    return "\n\n".join([*lines, "\n" + note] if note else lines)
