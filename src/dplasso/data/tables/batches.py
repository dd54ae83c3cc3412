"""Tables as row blocks: batches of named columns, and what makes rows of them."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dplasso.data.blocks import BlockSource, Piece, Rows, files_source
from dplasso.data.formats import table_format
from dplasso.data.source_files import SourceFiles


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


def table_source(
    files: SourceFiles,
    columns: Sequence[str],
    encode: Callable[[Batch], Rows],
    n_features: int | None,
    *,
    label: str | None,
    person: str | None = None,
    memory_share: float = 1.0,
) -> BlockSource:
    """Return tables as row blocks; `columns` are those that `encode` takes of a batch.

    Without the column `label` all labels are 0; the column `person` names people. `memory_share` is
    the part of the memory that the batches may take.
    """
    readers = [table_format(path).reader for path in files.paths]
    wanted = [*columns, *(name for name in (label, person) if name is not None)]

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        for batch in readers[i].batches(files.paths[i], wanted, int(memory_bytes * memory_share)):
            labels = np.zeros(batch.n_rows) if label is None else readers[i].labels(batch, label)
            names = None
            if person is not None:
                names = batch.columns[person], partial(batch.where, person)
            yield Piece(encode(batch), labels, batch.done, partial(batch.where, str(label)), names)

    return files_source(files, n_features, read)
