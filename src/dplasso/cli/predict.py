"""``dplasso predict``: one line per row, to standard output or a file."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.files import check_outputs, write_text
from dplasso.cli.options import OUTPUT
from dplasso.cli.output import progress_bars, uninterrupted
from dplasso.cli.reading import (
    Binarize,
    DataArgument,
    LabelMapOption,
    Labels,
    ModelArgument,
    ZeroBased,
    input_files,
    meaning_of,
    read,
)

EXAMPLES = options.examples(
    "dplasso predict model.npz new.svm.gz",
    "dplasso predict model.npz 'new-*.svm.gz' --proba --out probabilities.txt",
    note="Give --binarize here if the model was fitted with it. Labels in DATA are read "
    "but not used; labels that are text need --label-map.",
)


def predict(
    model: ModelArgument,
    data: DataArgument,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="The probability of the positive class instead of the label."),
    ] = False,
    binarize: Binarize = False,
    zero_based: ZeroBased = False,
    labels: Labels = None,
    label_map: LabelMapOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            show_default=False,
            help="Write here instead of standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite an existing FILE.", rich_help_panel=OUTPUT),
    ] = False,
) -> None:
    """Predict the label of every row: one line each, in the order of the rows."""
    import dplasso

    if output is not None:
        check_outputs([output], input_files(data, model, labels), force=force)
    meaning = meaning_of(label_map)
    fitted = dplasso.load(model)
    with progress_bars() as bars:
        rows = read(
            data,
            bars,
            n_features=fitted.n_features_in_,
            zero_based=zero_based,
            labels=labels,
            label_map=meaning,
            binarize=binarize,
        ).X
    if proba:
        lines = [f"{value:.9g}\n" for value in fitted.predict_proba(rows)[:, 1]]
    else:
        lines = [f"{_written(label)}\n" for label in fitted.predict(rows).tolist()]
    if output is None:
        sys.stdout.write("".join(lines))
    else:
        with uninterrupted():
            write_text(output, "".join(lines))


def _written(label: Any) -> str:
    """Write a label the way svmlight files do: 1, not 1.0."""
    return str(int(label) if isinstance(label, float) and label.is_integer() else label)
