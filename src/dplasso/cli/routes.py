"""How records become sparse rows: the options of ``dplasso convert`` for tables and texts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.data.blocks import BlockSource

TABLES = "Tables (Parquet, Arrow)"
TEXTS = "Texts (CSV, JSON lines, tables)"
# As in dplasso.data.tables.files, which needs pyarrow.
_TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_HASH_BITS = 20

LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        metavar="NAME",
        show_default=False,
        help="Tables and texts: where the label is. Default: label.",
        rich_help_panel=TABLES,
    ),
]
Indices = Annotated[
    str | None,
    typer.Option(
        "--indices",
        metavar="NAME",
        show_default=False,
        help="Column of lists of column numbers, from 0.",
        rich_help_panel=TABLES,
    ),
]
Values = Annotated[
    str | None,
    typer.Option(
        "--values",
        metavar="NAME",
        show_default=False,
        help="Column of lists of their values. Default: all 1.",
        rich_help_panel=TABLES,
    ),
]
CategoryFile = Annotated[
    Path | None,
    typer.Option(
        "--categories",
        metavar="FILE",
        show_default=False,
        help='One-hot by public lists: a JSON file {"city": ["Rome", "Oslo"], ...}.',
        rich_help_panel=TABLES,
    ),
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option(
        "--ignore-unknown",
        help="A category that is not listed has no entry (default: an error).",
        rich_help_panel=TABLES,
    ),
]
HashColumns = Annotated[
    str | None,
    typer.Option(
        "--hash-columns",
        metavar="NAME,NAME",
        show_default=False,
        help="One-hot by hashing: these columns, without any list.",
        rich_help_panel=TABLES,
    ),
]
HashBits = Annotated[
    int | None,
    typer.Option(
        "--hash-bits",
        metavar="B",
        show_default=False,
        help=f"Hash to 2^B columns. Default: {_HASH_BITS}.",
        rich_help_panel=TEXTS,
    ),
]
Text = Annotated[
    bool,
    typer.Option(
        "--text",
        help="DATA holds texts (.csv, .tsv, .jsonl, compressed or not, .parquet, .arrow): hash "
        "their words. The vocabulary stays public, because none is learnt.",
        rich_help_panel=TEXTS,
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        metavar="NAME",
        show_default=False,
        help="Where the text is. Default: text.",
        rich_help_panel=TEXTS,
    ),
]
Ngrams = Annotated[
    str | None,
    typer.Option(
        "--ngrams",
        metavar="FROM,TO",
        show_default=False,
        help="Runs of so many words are features. Default: 1,1.",
        rich_help_panel=TEXTS,
    ),
]
Binary = Annotated[
    bool,
    typer.Option(
        "--binary",
        help="1 for what occurs, instead of how often: the noise pays for the largest value.",
        rich_help_panel=TEXTS,
    ),
]
KeepCase = Annotated[
    bool,
    typer.Option("--keep-case", help="Do not lower capitals.", rich_help_panel=TEXTS),
]


@dataclass(frozen=True)
class RouteOptions:
    """The options above, as given; None or False where they were not."""

    label_column: str | None = None
    indices: str | None = None
    values: str | None = None
    categories: Path | None = None
    ignore_unknown: bool = False
    hash_columns: str | None = None
    hash_bits: int | None = None
    text: bool = False
    text_column: str | None = None
    ngrams: str | None = None
    binary: bool = False
    keep_case: bool = False


class Route(NamedTuple):
    """Records, how their columns were made (for the store's header), and what of that is public."""

    source: "BlockSource"
    origin: dict[str, Any] | None
    public: str | None


def open_route(
    data: Sequence[Path],
    given: RouteOptions,
    *,
    n_features: int | None,
    zero_based: bool,
    labels: Path | None,
    label_map: Mapping[str, float] | None = None,
    binarize: bool = False,
) -> Route:
    """Open the data as the options say.

    Parameters
    ----------
    data : sequence of pathlib.Path
        Files of one data set.
    given : RouteOptions
        Options for tables and texts.
    n_features, zero_based, labels
        Options for svmlight text and .npz; `n_features` also for lists of column numbers.
    label_map : mapping of str to float, optional
        What the labels mean.
    binarize : bool, default=False
        Turn every non-zero value into 1.

    Returns
    -------
    Route
        `public` says in a sentence why no column comes from the data; None where D may.

    Raises
    ------
    typer.BadParameter
        If the options do not go together.
    DataError
        If a file cannot be used.
    """
    route = _open(data, given, label_map, n_features, zero_based, labels)
    if not binarize:
        return route
    from dplasso.data.block_changes import binarized

    return route._replace(source=binarized(route.source))


def _open(
    data: Sequence[Path],
    given: RouteOptions,
    label_map: Mapping[str, float] | None,
    n_features: int | None,
    zero_based: bool,
    labels: Path | None,
) -> Route:
    """Choose the route, labels mapped."""
    table = data[0].suffix.lower() in _TABLE_SUFFIXES
    if given.text:
        _refuse(
            given,
            ("indices", "values", "categories", "ignore_unknown", "hash_columns"),
            "a table without --text",
        )
        _refuse_files_options(n_features, zero_based, labels)
        return _mapped(_text_route(data, given), label_map)
    _refuse(given, ("text_column", "ngrams", "binary", "keep_case"), "--text")
    if table:
        _refuse_files_options(n_features if given.indices is None else None, zero_based, labels)
        return _mapped(_table_route(data, given, n_features), label_map)
    _refuse(given, tuple(RouteOptions.__dataclass_fields__), "Parquet and Arrow files or --text")
    from dplasso.data.blocks import block_source

    source = block_source(
        list(data),
        n_features=n_features,
        zero_based=zero_based,
        labels_path=labels,
        label_map=label_map,
    )
    return Route(source, None, None)


def _mapped(route: Route, label_map: Mapping[str, float] | None) -> Route:
    """Map the labels of a source that does not do so itself."""
    if label_map is None:
        return route
    from dplasso.data.block_changes import with_mapped_labels

    return route._replace(source=with_mapped_labels(route.source, label_map))


def _text_route(data: Sequence[Path], given: RouteOptions) -> Route:
    from dplasso.data.text.reader import TextHashing, text_source

    hashing = TextHashing(
        _HASH_BITS if given.hash_bits is None else given.hash_bits,
        _parse_ngrams(given.ngrams or "1,1"),
        given.binary,
        not given.keep_case,
    )
    columns = {"text_column": given.text_column or "text", "label_column": _label(given)}
    with _needing_pyarrow():
        source = text_source(data, **columns, hashing=hashing)
    public = (
        f"The columns are hashes of words, 2^{hashing.bits} of them whatever the texts hold: the "
        "vocabulary is public and nothing of it is taken from the data."
    )
    return Route(source, {"route": "text", **columns, **hashing.describe()}, public)


def _table_route(data: Sequence[Path], given: RouteOptions, n_features: int | None) -> Route:
    with _needing_pyarrow():
        from dplasso.data.tables.arrow import (
            Categories,
            Encoding,
            HashedCategories,
            ListColumns,
            arrow_source,
        )
    ways = [given.indices, given.categories, given.hash_columns]
    if sum(way is not None for way in ways) != 1:
        raise typer.BadParameter(
            f"{data[0]} is a table: say with one of --indices, --categories, --hash-columns or "
            "--text what its columns mean"
        )
    if given.indices is None:
        _refuse(given, ("values",), "--indices")
    if given.categories is None:
        _refuse(given, ("ignore_unknown",), "--categories")
    if given.hash_columns is None:
        _refuse(given, ("hash_bits",), "--hash-columns or --text")
    origin: dict[str, Any] = {"label_column": _label(given)}
    encoding: Encoding
    public: str | None
    if given.indices is not None:
        encoding = ListColumns(given.indices, given.values, n_features)
        origin |= {"route": "lists", "indices": given.indices, "values": given.values}
        public = None if n_features is None else f"The {n_features:,} columns were declared."
    elif given.categories is not None:
        lists = _read_categories(given.categories)
        unknown = "ignore" if given.ignore_unknown else "error"
        encoding = Categories(lists, unknown)
        origin |= {"route": "categories", "categories": dict(lists), "unknown": unknown}
        public = f"The columns are the categories declared in {given.categories}."
    else:
        bits = _HASH_BITS if given.hash_bits is None else given.hash_bits
        names = tuple(name.strip() for name in (given.hash_columns or "").split(","))
        encoding = HashedCategories(names, bits)
        origin |= {"route": "hashed categories", "columns": list(names), "bits": bits}
        public = (
            f"The columns are hashes, 2^{bits} of them whatever categories occur: no list of "
            "categories is taken from the data."
        )
    return Route(arrow_source(data, encoding, label_column=_label(given)), origin, public)


def _label(given: RouteOptions) -> str:
    return given.label_column or "label"


def _read_categories(path: Path) -> Mapping[str, Any]:
    try:
        lists = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(lists, dict):
        raise DataError(f"{path}: a JSON object of column names and their categories is needed")
    return lists


def _parse_ngrams(text: str) -> tuple[int, int]:
    try:
        shortest, longest = (int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--ngrams {text}: write FROM,TO, for example 1,2") from None
    return shortest, longest


def _refuse(given: RouteOptions, names: Sequence[str], needed: str) -> None:
    """Raise where an option is given that would be ignored."""
    for name in names:
        if getattr(given, name) not in (None, False):
            option = name.replace("_", "-")
            raise typer.BadParameter(f"--{option} goes with {needed}")


def _refuse_files_options(n_features: int | None, zero_based: bool, labels: Path | None) -> None:
    found = {"--features": n_features is not None, "--zero-based": zero_based}
    found |= {"--labels": labels is not None}
    for option, given in found.items():
        if given:
            raise typer.BadParameter(f"{option} does not go with this kind of data")


class _needing_pyarrow:  # noqa: N801
    """Turn the lack of pyarrow into an error a user can meet."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, ImportError):
            raise DataError(str(error)) from error
