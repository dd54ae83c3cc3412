"""The options that say how to read data, and the reading itself with its progress bar."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from numpy.typing import NDArray

from dplasso.cli.options import DATA, argument, flag, option
from dplasso.cli.output import Bars, print_note
from dplasso.errors import DataError, PrivacyLeakWarning

if TYPE_CHECKING:
    from dplasso.data.files import Dataset
    from dplasso.encoding.origin import Origin
    from dplasso.encoding.schema import Schema

DataArgument = Annotated[
    list[str],
    argument(
        "DATA...",
        "svmlight text (plain, .gz, .bz2, .xz, .zst), a scipy sparse .npz, or a table with a "
        "schema (CSV, JSON lines, Parquet, Arrow). Several files, or a quoted pattern such as "
        "'part-*.svm.gz', are one data set. Or one store made by convert, which is read from the "
        "disk as it is needed; with --cluster many, also on object storage.",
    ),
]
ModelArgument = Annotated[Path, argument("MODEL", "A model written by fit.")]


@dataclass(frozen=True)
class ReadingOptions:
    """What the files of a data set do not say themselves."""

    binarize: Annotated[
        bool,
        flag(
            "--binarize",
            "Turn every non-zero value into 1. Noise grows with the largest value that a row may "
            "have, so ones do far better than tf-idf.",
            DATA,
        ),
    ] = False
    zero_based: Annotated[
        bool, flag("--zero-based", "svmlight columns count from 0 (default: from 1).", DATA)
    ] = False
    labels: Annotated[
        Path | None,
        option("--labels", "A .npy file with the labels of a .npz that holds none.", "FILE", DATA),
    ] = None
    label_map: Annotated[
        str | None,
        option(
            "--label-map",
            "What the labels in the data mean, for example neg=0,pos=1; any other label is an "
            "error. Needed where labels are text.",
            "LABEL=NUMBER,...",
            DATA,
        ),
    ] = None
    schema: Annotated[
        Path | None,
        option(
            "--schema",
            "Tables: what their columns are, declared in a JSON file (dplasso schema draft). A "
            "model knows the schema it was trained with.",
            "FILE",
            DATA,
        ),
    ] = None
    label_column: Annotated[
        str | None,
        option(
            "--label-column",
            "Tables: where the label is. Default: as the schema says, else label.",
            "NAME",
            DATA,
        ),
    ] = None

    def meaning(self) -> dict[str, float] | None:
        """Read ``--label-map``; anything malformed is wrong usage."""
        from dplasso.data.label_map import parse_label_map

        if self.label_map is None:
            return None
        try:
            return parse_label_map(self.label_map)
        except DataError as error:
            raise typer.BadParameter(str(error)) from None

    def declared(self) -> "Schema | None":
        """Read ``--schema``, with the label's column; warn of a draft."""
        from dplasso.encoding.encoder import warn_of_draft
        from dplasso.encoding.schema import read_schema

        if self.schema is None:
            return None
        found = self.labelled(read_schema(self.schema))
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=PrivacyLeakWarning)
            warn_of_draft(found)
        return found

    def labelled(self, schema: "Schema") -> "Schema":
        """Return a schema that says where the label is: as ``--label-column``, itself, or label."""
        return replace(schema, label=self.label_column or schema.label or "label")


def read(
    files: Sequence[Path],
    bars: Bars,
    options: ReadingOptions,
    n_features: int | None,
    schema: "Schema | None" = None,
    *,
    labelled: bool = True,
    person_column: str | None = None,
) -> "Dataset":
    """Read files (from `expand`) as one data set, or open a store, under a progress bar.

    `n_features` is the number of columns, when declared; None takes it from the files. `schema` is
    that of tables, whose labels are read only if they are wanted; `person_column` says of them
    whose row each is.
    """
    from dplasso.encoding.files import read_records

    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    with bars.task(f"reading {files[0].name}{more}") as progress:
        return read_records(
            files,
            n_features=n_features,
            zero_based=options.zero_based,
            labels_path=options.labels,
            label_map=options.meaning(),
            binarize=options.binarize,
            schema=schema,
            labelled=labelled,
            person_column=person_column,
            progress=progress,
        )


def read_for(
    fitted: Any, files: Sequence[Path], bars: Bars, options: ReadingOptions, *, labelled: bool
) -> "Dataset":
    """Read the rows that a fitted model shall be applied to, as its own were read.

    Raises DataError if they, or the options, are known to be of another kind.
    """
    from dplasso.data.formats import is_table
    from dplasso.encoding.origin import check_same_origin, origin_of

    origin: Origin | None = fitted.model_.origin
    schema, n_features = options.declared(), fitted.n_features_in_
    if origin is not None:
        if options.binarize and not origin.binarize:
            raise DataError("the model was trained without --binarize; leave it out here too")
        if schema is not None and (origin.schema is None or not origin.schema.same_columns(schema)):
            raise DataError(
                f"{options.schema} is not the schema that the model was trained with; leave "
                "--schema out: the model knows its own"
            )
        # A store was encoded and made binary when it was made; others are so now.
        store = files[0].is_dir()
        options = replace(options, binarize=origin.binarize and not store)
        tables = any(map(is_table, files))
        schema = options.labelled(origin.schema) if tables and origin.schema is not None else None
        if store or origin.schema is not None:
            # That the columns differ says more than that there are more of them.
            n_features = None
    rows = read(files, bars, options, n_features, schema, labelled=labelled)
    check_same_origin(origin, origin_of(rows.X), rows.source)
    if origin is None:
        print_note(
            "warning: the model does not say how its columns were made; give --binarize or "
            "--schema here if it was fitted with them",
            style="yellow",
        )
    return rows


def mapped_classes(meaning: Mapping[str, float]) -> list[int | float]:
    """Return the numbers of a label map, ascending."""
    numbers = sorted(set(meaning.values()))
    if len(numbers) < 2:
        raise typer.BadParameter(
            f"the label map has {len(numbers)} different numbers; two are needed, "
            "for example neg=0,pos=1"
        )
    return [_plain_number(number) for number in numbers]


def parse_classes(text: str) -> tuple[str, ...]:
    """Split ``NEG,POS,...``; fewer than two labels, or one twice, is wrong usage."""
    labels = [label.strip() for label in text.split(",")]
    if not 2 <= len(set(labels)) == len(labels) or not all(labels):
        raise typer.BadParameter(
            f"{text!r} does not name two different labels; write NEG,POS, for example -1,1, or more"
        )
    return tuple(labels)


def classes_like(labels: tuple[str, ...], y: NDArray[Any]) -> list[Any]:
    """Return declared labels as numbers, bools or strings: the type of `y` decides, no value."""
    if y.dtype.kind == "b":
        words = {"false": False, "0": False, "true": True, "1": True}
        if all(label.lower() in words for label in labels):
            return [words[label.lower()] for label in labels]
    elif y.dtype.kind in "iuf":
        try:
            return [_plain_number(float(label)) for label in labels]
        except ValueError:
            pass
    else:
        return list(labels)
    raise DataError(
        f"--classes {','.join(labels)}: the labels in the data are "
        f"{'booleans' if y.dtype.kind == 'b' else 'numbers'}, so the declared ones must be too"
    )


def refuse_fractions(y: NDArray[Any]) -> None:
    """Refuse labels that are numbers with fractions, where nobody said that they are classes.

    Raises DataError that tells how to learn numbers.
    """
    if y.dtype.kind == "f" and bool((y % 1.0 != 0.0).any()):
        raise DataError(
            "the labels are numbers with fractions; to learn numbers, declare the interval that "
            "they lie in: --target-bounds LOW,HIGH"
        )


def _plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() else number
