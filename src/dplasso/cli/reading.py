"""The options that say how to read data, and the reading itself with its progress bar."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from dplasso.cli.options import DATA
from dplasso.cli.output import Bars
from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.data.files import Dataset

DataArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        show_default=False,
        help="svmlight text (plain, .gz, .bz2, .xz, .zst) or a scipy sparse .npz. Several files, "
        "or a quoted pattern such as 'part-*.svm.gz', are one data set. Or one store made by "
        "convert, which is read from the disk as it is needed.",
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model written by fit.")
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        rich_help_panel=DATA,
        help="svmlight columns count from 0 (default: from 1).",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        rich_help_panel=DATA,
        show_default=False,
        help="A .npy file with the labels of a .npz that holds none.",
    ),
]
LabelMapOption = Annotated[
    str | None,
    typer.Option(
        "--label-map",
        metavar="LABEL=NUMBER,...",
        rich_help_panel=DATA,
        show_default=False,
        help="What the labels in the data mean, for example neg=0,pos=1; any other label is an "
        "error. Needed where labels are text.",
    ),
]
Binarize = Annotated[
    bool,
    typer.Option(
        "--binarize",
        rich_help_panel=DATA,
        help="Turn every non-zero value into 1. The noise pays for the largest value a row may "
        "have, so ones beat tf-idf by far.",
    ),
]


def read(
    paths: Sequence[str],
    bars: Bars,
    *,
    n_features: int | None,
    zero_based: bool,
    labels: Path | None,
    label_map: Mapping[str, float] | None,
    binarize: bool,
) -> "Dataset":
    """Read data files as the options say, with a progress bar.

    Parameters
    ----------
    paths : sequence of str
        svmlight text or .npz: files and patterns that make one data set; or one store.
    bars : Bars
        Where progress is shown.
    n_features : int or None
        Columns, when declared; None takes them from the files.
    zero_based : bool
        Whether svmlight columns count from 0.
    labels : pathlib.Path or None
        Labels beside the data.
    label_map : mapping of str to float, or None
        What labels mean.
    binarize : bool
        Turn every non-zero value into 1.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If a file cannot be used; the message names file and line.
    OSError
        If it cannot be opened.
    """
    from dplasso.data.files import read_data
    from dplasso.data.source_files import source_files

    if any(Path(name).is_dir() for name in paths):
        return _open_store(
            paths,
            {
                "--zero-based": zero_based,
                "--labels": labels is not None,
                "--label-map": label_map is not None,
                "--binarize": binarize,
            },
            n_features,
        )
    files = source_files(paths)
    with bars.task(f"reading {Path(files.name).name}") as progress:
        data = read_data(
            files,
            n_features=n_features,
            zero_based=zero_based,
            labels_path=labels,
            label_map=label_map,
            progress=progress,
        )
    if binarize:
        if not np.isfinite(data.X.data).all():
            raise DataError(
                f"{data.source}: the values hold NaN or infinity; give finite numbers only"
            )
        data.X.data[:] = data.X.data != 0  # read for this command alone: nobody else's array
    return data


def _open_store(
    paths: Sequence[str], options: Mapping[str, bool], n_features: int | None
) -> "Dataset":
    """Open a store in place of files; it has been made in one way and stays so."""
    from dplasso.data.files import Dataset
    from dplasso.data.store.reader import open_store

    if len(paths) > 1:
        raise DataError(
            f"{next(name for name in paths if Path(name).is_dir())} is a directory: a store is a "
            "data set of its own and is given alone"
        )
    store = open_store(paths[0])
    for option, given in options.items():
        if given:
            raise DataError(f"{option} does not go with a store; give it to convert")
    if n_features is not None and n_features != store.shape[1]:
        raise DataError(
            f"{paths[0]} has {store.shape[1]:,} columns, but {n_features:,} are wanted; "
            "convert the data with as many, --features"
        )
    return Dataset(store.X, store.y, paths[0])


def meaning_of(label_map: str | None) -> dict[str, float] | None:
    """Read ``--label-map``; anything malformed is wrong usage.

    Parameters
    ----------
    label_map : str or None
        The option's value.

    Returns
    -------
    dict of str to float, or None

    Raises
    ------
    typer.BadParameter
        If it is not LABEL=NUMBER,...
    """
    from dplasso.data.label_map import parse_label_map

    if label_map is None:
        return None
    try:
        return parse_label_map(label_map)
    except DataError as error:
        raise typer.BadParameter(str(error)) from None


def mapped_classes(meaning: Mapping[str, float]) -> list[int | float]:
    """Take the two classes from a label map.

    Parameters
    ----------
    meaning : mapping of str to float
        What labels mean.

    Returns
    -------
    list
        The two numbers, smaller (negative) first.

    Raises
    ------
    typer.BadParameter
        If labels mean one number only, or more than two.
    """
    numbers = sorted(set(meaning.values()))
    if len(numbers) != 2:
        raise typer.BadParameter(
            f"the label map has {len(numbers)} different numbers; two are needed, "
            "for example neg=0,pos=1"
        )
    return [int(number) if number.is_integer() else number for number in numbers]


def input_files(data: Sequence[str], *others: Path | None) -> list[Path]:
    """List the files that a command reads, for the check that none is overwritten.

    Parameters
    ----------
    data : sequence of str
        Names and patterns.
    *others : pathlib.Path or None
        Further inputs.

    Returns
    -------
    list of pathlib.Path

    Raises
    ------
    DataError
        If a pattern means no file, or a file is named twice.
    """
    from dplasso.data.source_files import expand

    return [*(expand(data) if data else []), *(path for path in others if path is not None)]


def check_known(test: "Dataset", classes: ArrayLike | None, trained_on: NDArray[Any]) -> None:
    """Refuse test rows whose labels the model is not going to know, before it is trained.

    Parameters
    ----------
    test : Dataset
        The test rows.
    classes : sequence of two labels, or None
        The labels as declared.
    trained_on : ndarray
        Labels to learn from: what counts where none are declared.

    Raises
    ------
    DataError
        Naming the first row with another label.
    """
    known = np.unique(trained_on) if classes is None else np.asarray(classes)
    strange = ~np.isin(test.y, known)
    if strange.any():
        row = int(np.argmax(strange))
        raise DataError(
            f"{test.source}: row {row + 1} has the label {test.y[row]}, which is none of the "
            f"model's classes"
        )


def parse_classes(text: str) -> tuple[str, str]:
    """Split ``NEG,POS``; anything else is wrong usage.

    Parameters
    ----------
    text : str
        The option's value.

    Returns
    -------
    tuple of two str
        Negative and positive label, still as text.

    Raises
    ------
    typer.BadParameter
        If these are not two different labels.
    """
    labels = [label.strip() for label in text.split(",")]
    if len(labels) != 2 or not all(labels) or labels[0] == labels[1]:
        raise typer.BadParameter(
            f"{text!r} does not name two different labels; write NEG,POS, for example -1,1"
        )
    return labels[0], labels[1]


def classes_like(labels: tuple[str, str], y: NDArray[Any]) -> list[Any]:
    """Give declared labels the type the data's labels have.

    Parameters
    ----------
    labels : tuple of two str
        Negative and positive label.
    y : ndarray
        The labels as read: their type decides, their values do not.

    Returns
    -------
    list
        Two numbers, two booleans or two strings.

    Raises
    ------
    DataError
        If the data's labels are numbers and a declared one is not.
    """
    if y.dtype.kind == "b":
        words = {"false": False, "0": False, "true": True, "1": True}
        if all(label.lower() in words for label in labels):
            return [words[label.lower()] for label in labels]
    elif y.dtype.kind in "iuf":
        try:
            numbers = [float(label) for label in labels]
        except ValueError:
            pass
        else:
            return [int(number) if number.is_integer() else number for number in numbers]
    else:
        return list(labels)
    raise DataError(
        f"--classes {labels[0]},{labels[1]}: the labels in the data are "
        f"{'booleans' if y.dtype.kind == 'b' else 'numbers'}, so the declared ones must be too"
    )
