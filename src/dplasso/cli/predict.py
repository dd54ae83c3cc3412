"""``dplasso predict``: one line per row, to standard output or a file."""

from pathlib import Path
from typing import Any

import typer

from dplasso.cli.clusters import ClusterOptions, over_stores
from dplasso.cli.files import check_outputs, write_file
from dplasso.cli.options import examples
from dplasso.cli.output import progress_bars, uninterrupted, write_out
from dplasso.cli.reading import ReadingOptions, read_for

EXAMPLES = examples(
    "dplasso predict model.npz new.svm.gz",
    "dplasso predict model.npz 'new-*.svm.gz' --proba --out probabilities.txt",
    "dplasso predict model.npz new.csv",
    "dplasso predict model.npz stores/ --cluster auto",
    note="A model knows how its rows were encoded and made binary, so DATA is given raw. A table "
    "needs no labels; those of other files are read but not used, and need --label-map if they are "
    "text.",
)


def predict(
    model: Path,
    data: list[str],
    reading: ReadingOptions,
    cluster: ClusterOptions,
    proba: bool = False,
    output: Path | None = None,
    force: bool = False,
) -> None:
    """Predict the label or number of every row: one line each, in the order of the rows.

    Options
    -------
    proba
        The probability of the positive class instead of the label; with more than two classes, that
        of each.

    Output
    ------
    output : FILE
        Write here instead of standard output.
    """
    import dplasso
    from dplasso.data.source_files import expand

    files = expand(data) if cluster.cluster is None else []
    if output is not None:
        beside = [] if reading.labels is None else [reading.labels]
        check_outputs([output], [*files, model, *beside], force=force)
    fitted: Any = dplasso.load(model)
    if proba and not fitted.privacy_.n_classes:
        raise typer.BadParameter("--proba: a regression predicts numbers, not probabilities")
    with progress_bars() as bars:
        if cluster.cluster is None:
            rows = read_for(fitted, files, bars, reading, labelled=False).X
        else:
            fitted, rows, _ = over_stores(fitted, model, data, cluster, bars)
        if proba:
            given = fitted.predict_proba(rows)
            shown = given[:, 1:] if given.shape[1] == 2 else given
            lines = [" ".join(f"{value:.9g}" for value in row) + "\n" for row in shown.tolist()]
        else:
            lines = [f"{_written(label)}\n" for label in fitted.predict(rows).tolist()]
    if output is None:
        write_out("".join(lines))
    else:
        with uninterrupted():
            write_file(output, "".join(lines))


def _written(label: Any) -> str:
    """Write a label the way svmlight files do: 1, not 1.0."""
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() else f"{label:.9g}"
    return str(label)
