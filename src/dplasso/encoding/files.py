"""From files of records of any kind to sparse rows, with a note of how their columns were made.

Tables become rows by a schema, or hold lists of column numbers; svmlight text and .npz have column
numbers as they stand; a store was encoded when it was made.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dplasso.data.block_changes import binarized, with_mapped_labels
from dplasso.data.blocks import BlockSource, block_source
from dplasso.data.files import Dataset, read_data
from dplasso.data.people import number_people
from dplasso.data.source_files import expand
from dplasso.data.store.reader import open_store
from dplasso.data.streams import Progress
from dplasso.encoding.encoder import joined
from dplasso.encoding.origin import Origin, with_origin
from dplasso.encoding.schema import Schema
from dplasso.encoding.source import is_binary_table, is_table, need_pyarrow, table_source
from dplasso.errors import DataError

if TYPE_CHECKING:
    from dplasso.data.tables.lists import ListColumns

_BLOCK_BYTES = 1 << 28


class EncodedRecords(NamedTuple):
    """Records as sparse rows, and what is public of their columns.

    `source`: the rows, for `dplasso.data.store.write_store`.
    `origin`: how the columns were made, for the store's header.
    `public`: a sentence that says why no column comes from the data; None where their number may.
    """

    source: BlockSource
    origin: dict[str, Any]
    public: str | None


def encode_files(
    paths: str | Path | Iterable[str | Path],
    encoding: "Schema | ListColumns | None" = None,
    *,
    label_column: str = "label",
    person_column: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
    binarize: bool = False,
) -> EncodedRecords:
    """Open files of records as sparse rows.

    `paths`: files or patterns that make one data set, in this order.
    `encoding`: how a record of a table becomes a row (`dplasso.data.tables.lists` has the latter).
    Default: column numbers as they stand in svmlight text and .npz.
    `label_column`: where the label is, for `ListColumns`; a schema names its own.
    `person_column`: where it says whose row each is, with a schema only.
    `n_features`, `zero_based`, `labels_path`: without an encoding only: as in `block_source`.
    `label_map`: what the labels mean; any other label is an error.
    `binarize`: turn every non-zero value into 1.

    Raises DataError if a file is missing, of a kind that the encoding does not read, or needs
    pyarrow, which is not there. What is wrong inside the files is raised while the rows are read;
    ValueError if the encoding cannot be used.
    """
    files = expand(paths)
    if any(map(is_binary_table, files)):
        need_pyarrow()
    if person_column is not None and not isinstance(encoding, Schema):
        raise _no_people(files)
    origin = Origin(encoding if isinstance(encoding, Schema) else None, binarize).to_json()
    if encoding is None:
        source = block_source(
            files,
            n_features=n_features,
            zero_based=zero_based,
            labels_path=labels_path,
            label_map=label_map,
        )
        records = EncodedRecords(source, origin, None)
    else:
        if isinstance(encoding, Schema):
            source = table_source(files, encoding, person_column=person_column)
            public = (
                f"The {encoding.n_features:,} columns follow from the schema alone: no category, "
                "word or range is taken from the data."
            )
            records = EncodedRecords(source, origin, public)
        else:
            from dplasso.data.tables.lists import list_source

            source = list_source(files, encoding, label_column=label_column)
            lists = {"indices": encoding.indices, "values": encoding.values}
            declared = encoding.n_features
            records = EncodedRecords(
                source,
                origin | {"lists": lists, "label_column": label_column},
                None if declared is None else f"The {declared:,} columns were declared.",
            )
        if label_map is not None:
            records = records._replace(source=with_mapped_labels(source, label_map))
    return records._replace(source=binarized(records.source)) if binarize else records


def read_categories(path: str | Path) -> dict[str, Any]:
    """Read declared categories: a JSON object such as ``{"city": ["Rome", "Oslo"]}``.

    Raises DataError if it is not a JSON object; `Categories` checks the lists.
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
    schema: Schema | None = None,
    labelled: bool = True,
    person_column: str | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read files of any kind into memory, or open a store; the matrix knows its `Origin`.

    `paths` as in `read_data`, tables, or one store, which stays on the disk and takes no other
    option than `n_features`, which it must agree with. `schema` says how records of a table become
    rows: a table needs it, and nothing else takes it. Without `labelled` the labels of a table are
    not read but all 0. `person_column` is a table's. The other options are those of `read_data` and
    `encode_files`.

    Raises DataError if a file cannot be used, with file and line, or an option does not go with it.
    """
    files = expand(paths)
    stores = [path for path in files if path.is_dir()]
    if stores:
        if len(files) > 1:
            raise DataError(
                f"{stores[0]} is a folder: a store is a whole data set and is given alone"
            )
        for name, given in (
            ("zero_based", zero_based),
            ("labels_path", labels_path is not None),
            ("label_map", label_map is not None),
            ("binarize", binarize),
            ("schema", schema is not None),
            ("person_column", person_column is not None),
        ):
            if given:
                raise DataError(f"{name} does not go with a store; give it to the conversion")
        return _opened(stores[0], n_features)
    origin = Origin(schema, binarize)
    if any(map(is_table, files)):
        if schema is None:
            raise DataError(
                f"{files[0]} is a table: say with a schema what its columns are (--schema); draft "
                f"one with: dplasso schema draft {files[0]}"
            )
        if n_features is not None and n_features != schema.n_features:
            raise DataError(
                f"the schema makes {schema.n_features:,} columns, but {n_features:,} were asked for"
            )
        for name, given in (("zero_based", zero_based), ("labels_path", labels_path is not None)):
            if given:
                raise DataError(f"{name} does not go with a table")
        return _read_table(files, schema, label_map, origin, labelled, person_column, progress)
    if person_column is not None:
        raise _no_people(files)
    if schema is not None:
        raise DataError(
            f"{files[0]} is not a table: a schema goes with CSV, JSON lines, Parquet, Arrow"
        )
    data = read_data(
        files,
        n_features=n_features,
        zero_based=zero_based,
        labels_path=labels_path,
        label_map=label_map,
        progress=progress,
    )
    if binarize:
        if not np.isfinite(data.X.data).all():
            raise DataError(
                f"{data.source}: the values hold NaN or infinity; give finite numbers only"
            )
        data.X.data[:] = data.X.data != 0  # read just now: nobody else's array
    return replace(data, X=with_origin(data.X, origin))


def _read_table(
    files: list[Path],
    schema: Schema,
    label_map: Mapping[str, float] | None,
    origin: Origin,
    labelled: bool,
    person_column: str | None,
    progress: Progress | None,
) -> Dataset:
    source = table_source(files, schema, labelled=labelled, person_column=person_column)
    if label_map is not None and labelled:
        source = with_mapped_labels(source, label_map)
    if origin.binarize:
        source = binarized(source)
    blocks = list(source.blocks(_BLOCK_BYTES, progress))
    if not blocks:
        raise DataError(f"{source.name} has no records; at least one is needed")
    X = joined(blocks, schema.n_features)
    y = np.concatenate([block.labels for block in blocks])
    people = [block.people for block in blocks if block.people is not None]
    numbers = number_people(np.concatenate(people)) if people else None
    return Dataset(with_origin(X, origin), y, source.name, numbers)


def _no_people(files: list[Path]) -> DataError:
    return DataError(
        f"{files[0]} does not say whose row each is: a person column goes with tables and a "
        "schema (CSV, JSON lines, Parquet, Arrow)"
    )


def _opened(path: Path, n_features: int | None) -> Dataset:
    store = open_store(path)
    if n_features is not None and n_features != store.shape[1]:
        raise DataError(
            f"{path} has {store.shape[1]:,} columns, but {n_features:,} were asked for; convert "
            "the data with as many"
        )
    return Dataset(store.X, store.y, str(path))
