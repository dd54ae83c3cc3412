"""Tables as row blocks: batches of named columns, and what makes rows of them."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dplasso.data.blocks import BlockSource, Piece, Rows, files_source
from dplasso.data.formats import check_n_features, table_format
from dplasso.data.source_files import Paths, SourceFiles, source_files
from dplasso.data.tables.dialect import Dialect, check_goes, sniffed, with_points
from dplasso.errors import DataError


class Batch(NamedTuple):
    """Consecutive records of a table file.

    `columns`: by name a pyarrow.Array, or a list of what a text file says.
    `unit`, `numbers`: what the file counts, lines or rows, and where each record stands in it.
    `done`: bytes of the file read so far, about.
    """

    path: Path
    columns: dict[str, Any]
    unit: str
    numbers: Sequence[int]
    done: int

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return len(self.numbers)

    def where(self, column: str, row: int | None = None) -> str:
        """Word where a value stands; without a row, its column."""
        at = f"{self.path}, column {column!r}"
        return at if row is None else f"{at}, {self.unit} {self.numbers[row]}"


def check_columns(names: Sequence[str], wanted: Sequence[str], whose: str) -> None:
    """Raise `DataError` unless each of some columns is there, once."""
    counts = Counter(names)
    for column in wanted:
        if counts[column] != 1:
            fault = "no column" if column not in counts else "more than one column"
            there = ", ".join(map(repr, names[:200]))
            like = [name for name in counts if alike(name) == alike(column) and name != column]
            cure = f": write {like[0]!r}, capitals and blanks count" if like else ""
            raise DataError(f"{whose} {fault} {column!r}{cure}; there are {there}")


def alike(word: Any) -> str:
    """Return a word without what people overlook: capitals, and blanks at its ends."""
    return str(word).strip().lower()


class TableReader:
    """A table file and what reads it; of text also how it is written."""

    def __init__(self, path: Path, dialect: Dialect | None) -> None:
        found = table_format(path)
        check_goes(path, dialect, text=found.compressible)
        self.path, self.module = path, found.reader
        self._asked, self._text = dialect, found.compressible

    @cached_property
    def _dialect(self) -> tuple[Dialect, ...]:
        return (sniffed(self.path, self._asked),) if self._text else ()

    def column_names(self) -> list[str]:
        """Return the names of the columns."""
        names: list[str] = self.module.column_names(self.path, *self._dialect)
        return names

    def batches(
        self, columns: Sequence[str], memory_bytes: int, as_they_stand: str | None = None
    ) -> Iterator[Batch]:
        """Yield some columns; numbers with a decimal comma get a point, but not those of people.

        Two people whose names are numbers must not become one.
        """
        decimal = "".join(one.decimal or "" for one in self._dialect)
        for batch in self.module.batches(self.path, columns, memory_bytes, *self._dialect):
            for name in set(columns) - {as_they_stand} if decimal else ():
                batch.columns[name] = with_points(batch.columns[name], decimal, self._asked)
            yield batch


def table_source(
    files: SourceFiles,
    columns: Sequence[str],
    encode: Callable[[Batch], Rows],
    n_features: int | None,
    *,
    label: str | None,
    person: str | None = None,
    memory_share: float = 1.0,
    dialect: Dialect | None = None,
) -> BlockSource:
    """Return tables as row blocks; without the column `label` all labels are 0."""
    readers = [TableReader(path, dialect) for path in files.paths]
    wanted = [*columns, *(name for name in (label, person) if name is not None)]

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        reader = readers[i]
        for batch in reader.batches(wanted, int(memory_bytes * memory_share), person):
            labels = np.zeros(batch.n_rows) if label is None else reader.module.labels(batch, label)
            names = None
            if person is not None:
                names = batch.columns[person], partial(batch.where, person)
            yield Piece(encode(batch), labels, batch.done, partial(batch.where, str(label)), names)

    return files_source(files, n_features, read)


@dataclass(frozen=True)
class ListColumns:
    """Each record holds a list of its column numbers, from 0, and perhaps one of their values.

    `indices`: column of lists of whole numbers, in any order, without duplicates.
    `values`: column of lists of numbers, as long; None makes every value 1.
    """

    indices: str
    values: str | None = None
    n_features: int | None = None

    def __post_init__(self) -> None:
        check_n_features(self.n_features)


def list_source(
    paths: Paths, lists: ListColumns, *, label_column: str, dialect: Dialect | None = None
) -> BlockSource:
    """Open Parquet or Arrow IPC (Feather 2) files of lists as a stream of row blocks."""
    columns = [name for name in (lists.indices, lists.values) if name is not None]
    if label_column in columns:
        raise ValueError(f"column {label_column!r} cannot be both label and feature")
    files = source_files(paths)
    for path in files.paths:
        if table_format(path).compressible:
            raise DataError(f"{path}: lists are read from Parquet and Arrow files")
    encode = partial(table_format(files.paths[0]).reader.list_rows, lists)
    return table_source(
        files, columns, encode, lists.n_features, label=label_column, dialect=dialect
    )
