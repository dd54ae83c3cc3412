"""From files of records of any kind to sparse rows whose columns are public.

How a record becomes a row is its encoding: column numbers in svmlight text and .npz, declared
categories, hashed categories or lists of column numbers in tables, hashed words in texts.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dplasso.data.block_changes import binarized, with_mapped_labels
from dplasso.data.blocks import BlockSource, block_source
from dplasso.data.files import Dataset, read_data
from dplasso.data.source_files import expand
from dplasso.data.store.reader import open_store
from dplasso.data.streams import Progress
from dplasso.data.text.reader import TextHashing, text_source
from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.data.tables.arrow import Categories, HashedCategories, ListColumns

    TableEncoding = ListColumns | Categories | HashedCategories

# As in dplasso.data.tables.files, which needs pyarrow.
_TABLE_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


class EncodedRecords(NamedTuple):
    """Records as sparse rows, and what is public of their columns.

    Attributes
    ----------
    source : BlockSource
        The rows, for `dplasso.data.store.write_store`.
    origin : dict or None
        How the columns were made, for the store's header; None for column numbers as they stand.
    public : str or None
        A sentence that says why no column comes from the data; None where their number may.
    """

    source: BlockSource
    origin: dict[str, Any] | None
    public: str | None


def is_table(path: str | Path) -> bool:
    """Return whether a file's name is that of a Parquet or Arrow table."""
    return Path(path).suffix.lower() in _TABLE_SUFFIXES


def encode_files(
    paths: str | Path | Iterable[str | Path],
    encoding: "TextHashing | TableEncoding | None" = None,
    *,
    label_column: str = "label",
    text_column: str = "text",
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
    binarize: bool = False,
) -> EncodedRecords:
    """Open files of records as sparse rows.

    Parameters
    ----------
    paths : str, Path or iterable of these
        Files or patterns that make one data set, in this order.
    encoding : TextHashing, ListColumns, Categories or HashedCategories, optional
        How a record becomes a row: `dplasso.data.text.reader` has the first, for texts,
        `dplasso.data.tables.arrow` the others, for tables. Default: column numbers as they stand in
        svmlight text and .npz.
    label_column, text_column : str
        Where label and text are, in tables and texts.
    n_features, zero_based, labels_path
        Without an encoding only: as in `block_source`.
    label_map : mapping of str to number, optional
        What the labels mean; any other label is an error.
    binarize : bool, default=False
        Turn every non-zero value into 1.

    Returns
    -------
    EncodedRecords

    Raises
    ------
    DataError
        If a file is missing, of a kind that the encoding does not read, or needs pyarrow, which is
        not there. What is wrong inside the files is raised while the rows are read.
    ValueError
        If the encoding cannot be used.
    """
    files = expand(paths)
    if any(map(is_table, files)):
        _need_pyarrow()
    if encoding is None:
        source = block_source(
            files,
            n_features=n_features,
            zero_based=zero_based,
            labels_path=labels_path,
            label_map=label_map,
        )
        records = EncodedRecords(source, None, None)
    else:
        if isinstance(encoding, TextHashing):
            columns = {"text_column": text_column, "label_column": label_column}
            source = text_source(files, **columns, hashing=encoding)
        else:
            _need_pyarrow()
            from dplasso.data.tables.arrow import arrow_source

            columns = {"label_column": label_column}
            source = arrow_source(files, encoding, label_column=label_column)
        if label_map is not None:
            source = with_mapped_labels(source, label_map)
        route, public = _described(encoding)
        records = EncodedRecords(source, columns | route, public)
    return records._replace(source=binarized(records.source)) if binarize else records


def _described(encoding: "TextHashing | TableEncoding") -> tuple[dict[str, Any], str | None]:
    """Describe an encoding for a store's header, and say what of it is public."""
    if isinstance(encoding, TextHashing):
        return {"route": "text", **encoding.describe()}, (
            f"The columns are hashes of words, 2^{encoding.bits} of them whatever the texts hold: "
            "the vocabulary is public and nothing of it is taken from the data."
        )
    from dplasso.data.tables.arrow import Categories, ListColumns

    if isinstance(encoding, ListColumns):
        route = {"route": "lists", "indices": encoding.indices, "values": encoding.values}
        declared = encoding.n_features
        return route, None if declared is None else f"The {declared:,} columns were declared."
    if isinstance(encoding, Categories):
        lists = {name: list(categories) for name, categories in encoding.lists.items()}
        return (
            {"route": "categories", "categories": lists, "unknown": encoding.unknown},
            "The columns are the declared categories.",
        )
    return (
        {
            "route": "hashed categories",
            "columns": list(encoding.columns),
            "bits": encoding.bits,
        },
        f"The columns are hashes, 2^{encoding.bits} of them whatever categories occur: no list of "
        "categories is taken from the data.",
    )


def _need_pyarrow() -> None:
    try:
        import dplasso.data.tables.files  # noqa: F401
    except ImportError as error:
        raise DataError(str(error)) from error


def read_categories(path: str | Path) -> dict[str, Any]:
    """Read declared categories.

    Parameters
    ----------
    path : str or Path
        A JSON object such as ``{"city": ["Rome", "Oslo"], "member": [false, true]}``.

    Returns
    -------
    dict
        For `Categories`, which checks the lists.

    Raises
    ------
    DataError
        If it is not a JSON object.
    OSError
        If the file cannot be read.
    """
    try:
        lists = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(lists, dict):
        raise DataError(f"{path}: a JSON object of column names and their categories is needed")
    return lists


def read_records(
    paths: str | Path | Iterable[str | Path],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
    binarize: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Read svmlight text or .npz into memory, or open a store.

    Parameters
    ----------
    paths : str, Path or iterable of these
        As in `read_data`; or one store, which stays on the disk.
    n_features, zero_based, labels_path, label_map, progress
        As in `read_data`. A store takes none but the first, which it must agree with.
    binarize : bool, default=False
        Turn every non-zero value into 1.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If a file cannot be used: the message names file and line; if an option does not go with a
        store.
    OSError
        If a file cannot be opened.
    """
    files = expand(paths)
    stores = [path for path in files if path.is_dir()]
    if stores:
        if len(files) > 1:
            raise DataError(
                f"{stores[0]} is a directory: a store is a data set of its own and is given alone"
            )
        for name, given in (
            ("zero_based", zero_based),
            ("labels_path", labels_path is not None),
            ("label_map", label_map is not None),
            ("binarize", binarize),
        ):
            if given:
                raise DataError(f"{name} does not go with a store; give it to the conversion")
        return _opened(stores[0], n_features)
    data = read_data(
        files,
        n_features=n_features,
        zero_based=zero_based,
        labels_path=labels_path,
        label_map=label_map,
        progress=progress,
    )
    if not binarize:
        return data
    if not np.isfinite(data.X.data).all():
        raise DataError(f"{data.source}: the values hold NaN or infinity; give finite numbers only")
    data.X.data[:] = data.X.data != 0  # read just now: nobody else's array
    return data


def _opened(path: Path, n_features: int | None) -> Dataset:
    store = open_store(path)
    if n_features is not None and n_features != store.shape[1]:
        raise DataError(
            f"{path} has {store.shape[1]:,} columns, but {n_features:,} are wanted; convert the "
            "data with as many"
        )
    return Dataset(store.X, store.y, str(path))
