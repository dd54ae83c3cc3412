"""Options that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

PRIVACY = "Privacy"
MODEL = "Model"
DATA = "Data"
OUTPUT = "Output"
CHECKPOINT = "Interruptions"


def option(
    name: str, help: str, metavar: str | None = None, panel: str | None = None, **more: Any
) -> Any:
    """Return an option for `Annotated`; `more` goes to `typer.Option`."""
    return typer.Option(name, help=help, metavar=metavar, rich_help_panel=panel, **more)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """Return an option without a value."""
    return option(name, help, "", panel)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Return a required argument for `Annotated`."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


def examples(*commands: str, note: str = "") -> str:
    """Lay out command lines, and a paragraph after them, as Typer's epilog."""
    lines = ["[bold]Examples[/bold]", *(f"[cyan]$ {command}[/cyan]" for command in commands)]
    return "\n\n".join([*lines, "\n" + note] if note else lines)


Epsilon = Annotated[
    float,
    option(
        "--epsilon",
        "Privacy budget of the whole fit; smaller is more private. inf: no privacy at all.",
        "E",
        PRIVACY,
    ),
]
Delta = Annotated[
    float,
    option(
        "--delta",
        "Probability with which the promise may fail; far below one in the number of people.",
        "D",
        PRIVACY,
    ),
]
Neighbors = Annotated[
    str,
    option(
        "--neighbors",
        "Neighbouring data sets: add-remove (one record more or less) or replace-one (one "
        "exchanged).",
        "RELATION",
        PRIVACY,
    ),
]
FeatureBound = Annotated[
    float,
    option(
        "--feature-bound",
        "Public bound on |value|; larger values are clipped to it without a message.",
        "B",
        PRIVACY,
    ),
]
Steps = Annotated[
    int | None,
    option(
        "--n-iter",
        "lasso: columns drawn, and the most weights the model can have; by default as many as the "
        "budget can tell from noise, at most 200. logistic: gradients, 300 by default.",
        "T",
        MODEL,
    ),
]
Method = Annotated[
    str,
    option(
        "--method",
        "lasso: few, named weights, by Frank-Wolfe. logistic, or linear for a regression: more "
        "accurate on most data, each weight with a standard error, by noisy gradient descent.",
        "lasso|logistic|linear",
        MODEL,
    ),
]
TargetBounds = Annotated[
    str | None,
    option(
        "--target-bounds",
        "For a regression: the interval that the targets are publicly known to lie in; those "
        "outside are clipped to it.",
        "LOW,HIGH",
        PRIVACY,
    ),
]
RowsPerPerson = Annotated[
    int | None,
    option(
        "--rows-per-person",
        "Protect a person with up to M rows; the noise grows M-fold.",
        "M",
        PRIVACY,
    ),
]
PersonColumn = Annotated[
    str | None,
    option(
        "--person-column",
        "Tables: the column that says whose row each is. Of each person only --rows-per-person "
        "rows enter a fit.",
        "NAME",
        PRIVACY,
    ),
]
Records = Annotated[
    int | None,
    option(
        "--n-records",
        "The number of rows, where it is public. Default: counted privately.",
        "N",
        PRIVACY,
    ),
]
Ledger = Annotated[
    Path | None,
    option(
        "--ledger",
        "Charge the fit to this ledger before it begins (see dplasso ledger).",
        "LEDGER",
        PRIVACY,
    ),
]
DatasetName = Annotated[
    str | None,
    option(
        "--dataset",
        "The data set in the ledger; not needed where there is only one.",
        "NAME",
        PRIVACY,
    ),
]
Purpose = Annotated[
    str | None,
    option("--purpose", "What the model is for; noted in the ledger.", "TEXT", PRIVACY),
]
Seed = Annotated[
    int | None,
    option(
        "--seed",
        "Make the run repeatable, for experiments: a seeded run is not private.",
        "N",
        PRIVACY,
        min=0,
    ),
]
Explain = Annotated[
    bool,
    flag("--explain", "Print the whole privacy statement instead of two lines of it.", PRIVACY),
]
AsJson = Annotated[
    bool, flag("--json", "Print one JSON object on standard output and nothing else.")
]


@dataclass(frozen=True)
class CheckpointOptions:
    """Options of a fit that can be interrupted."""

    checkpoint: Annotated[
        Path | None,
        option(
            "--checkpoint",
            "Keep the steps taken so far in this file, so that a fit that is killed can be "
            "resumed. It belongs with the data: release the model, not the checkpoint.",
            "PATH",
            CHECKPOINT,
        ),
    ] = None
    checkpoint_seconds: Annotated[
        float,
        option(
            "--checkpoint-seconds", "How often the checkpoint is written.", "S", CHECKPOINT, min=0
        ),
    ] = 5.0
    resume: Annotated[
        bool,
        flag(
            "--resume",
            "Resume from --checkpoint, with the same data and options. No budget is spent twice.",
            CHECKPOINT,
        ),
    ] = False
