"""The first pass of a conversion: records to files by rows, and totals over all of them.

Columns keep the source's numbers here; they are renumbered when the number of entries of every
column is known. Values and labels are final.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import RowBlock, not_finite
from dplasso.data.formats import INT32_MAX, MOST_COLUMNS
from dplasso.data.labels import labels_of_one_kind
from dplasso.data.people import WORDS
from dplasso.data.store.array_writer import ArrayWriter
from dplasso.data.store.format import PEOPLE, array_file
from dplasso.data.store.kernel import count_columns, scan_values
from dplasso.errors import DataError
from dplasso.matrix.compressed import check_rows

_MOST_WORDS = 2**16


class RowWriter:
    """Records written to the files of a store so far.

    `counts`: entries of each column; as long as there is room, at least `n_columns`.
    `constant`: the value of every entry, as long as `values` is None.
    `people`: the person of each row; None where the source does not say.
    """

    def __init__(
        self, directory: Path, name: str, n_features: int | None, most_columns: int
    ) -> None:
        self.n_rows = self.n_entries = 0
        self.n_columns = n_features or 0
        self.constant = 1.0
        self.largest_value = 0.0
        self.value_dtype: np.dtype[Any] = np.dtype(np.float32)
        self._name, self._declared, self._most_columns = name, n_features, most_columns
        self._check_room(self.n_columns)
        self.counts = np.zeros(self.n_columns, np.int64)
        self._directory = directory
        index = np.int64 if self.n_columns > INT32_MAX + 1 else np.int32
        self.indptr = ArrayWriter(array_file(directory, "rows.indptr"), np.int64)
        self.indptr.append(np.zeros(1, np.int64))
        self.indices = ArrayWriter(array_file(directory, "rows.indices"), index, checksums=False)
        self.values: ArrayWriter | None = None
        self._labels: ArrayWriter | None = None
        self._label_kind: str | None = None
        self.people: ArrayWriter | None = None
        self._words: dict[str, int] | None = None

    @property
    def label_words(self) -> tuple[str, ...] | None:
        """The words that the numbers written as labels stand for."""
        return None if self._words is None else tuple(self._words)

    @property
    def labels(self) -> ArrayWriter:
        """The file of labels, which exists once there is a record."""
        assert self._labels is not None
        return self._labels

    def add(self, block: RowBlock) -> None:
        """Write one more block.

        Raises `DataError` if a row's columns do not ascend or fit, a value is not finite, or a
        label is strange; `MemoryError` if there are too many columns to count in memory.
        """
        indptr, indices, values = block.indptr, block.indices, block.values
        limit = self._declared or MOST_COLUMNS
        outside, unordered, largest = check_rows(indptr, indices, limit)
        if outside >= 0 or unordered >= 0:
            bad = unordered if unordered >= 0 else outside
            raise DataError(
                f"{self._name}: row {self.n_rows + bad + 1} has a column twice, out of order or "
                f"outside the {'' if self._declared is None else self._declared} columns declared"
            )
        if int(indptr[-1]) != indices.size or values.size != indices.size:
            raise DataError(f"{self._name}: its rows do not fit its entries")
        self._make_room(int(largest) + 1)
        count_columns(indices, self.counts)
        self._add_values(indptr, values)
        self.indices.append(indices)
        self.indptr.append(indptr[1:].astype(np.int64, copy=False) + self.n_entries)
        self._add_labels(block.labels)
        self._add_people(block)
        self.n_entries += indices.size
        self.n_rows += indptr.size - 1

    def close(self) -> None:
        """Close all files as they are."""
        for writer in (self.indptr, self.indices, self.values, self._labels, self.people):
            if writer is not None:
                writer.close()

    def _check_room(self, n_columns: int) -> None:
        if n_columns > self._most_columns:
            raise MemoryError(
                f"{self._name}: counting {n_columns:,} columns takes more than the memory allowed, "
                f"which is enough for {self._most_columns:,}; allow more (--memory) or "
                "hash the columns to fewer"
            )

    def _make_room(self, n_columns: int) -> None:
        if n_columns > INT32_MAX + 1 and self.indices.dtype.itemsize == 4:
            self.indices = self.indices.recast(np.int64)
        if n_columns > self.counts.size:
            self._check_room(n_columns)
            grown = np.zeros(min(n_columns + n_columns // 4, self._most_columns), np.int64)
            grown[: self.counts.size] = self.counts
            self.counts = grown
        self.n_columns = max(self.n_columns, n_columns)

    def _add_values(self, indptr: NDArray[np.int64], values: NDArray[Any]) -> None:
        if values.dtype == np.float64 and self.value_dtype == np.float32:
            self.value_dtype = np.dtype(np.float64)
            if self.values is not None:
                self.values = self.values.recast(np.float64)
        if not values.size:
            return
        if self.n_entries == 0:
            self.constant = float(values[0])
        bad, equal, largest = scan_values(values, self.constant)
        if bad >= 0:
            row = self.n_rows + int(np.searchsorted(indptr, bad, side="right"))
            raise not_finite(self._name, row)
        self.largest_value = max(self.largest_value, float(largest))
        if self.values is None and not equal:
            place = array_file(self._directory, "rows.values")
            self.values = ArrayWriter(place, self.value_dtype)
            self.values.append_constant(self.constant, self.n_entries)
        if self.values is not None:
            self.values.append(values)

    def _add_labels(self, labels: NDArray[Any]) -> None:
        text = labels.dtype.kind not in "biuf"
        given = labels.astype(np.str_) if text else labels
        labels, self._label_kind = labels_of_one_kind(given, self._place, self._label_kind)
        if self._labels is None:
            kind = np.dtype(np.int32) if text else labels.dtype
            self._labels = ArrayWriter(array_file(self._directory, "labels"), kind)
            self._words = {} if text else None
        if self._words is not None:
            self._labels.append(self._numbers(labels))
            return
        wider = np.result_type(self._labels.dtype, labels.dtype)
        if wider != self._labels.dtype:
            self._labels = self._labels.recast(wider)
        self._labels.append(labels)

    def _place(self, row: int) -> str:
        return f"{self._name}, row {self.n_rows + row + 1}"

    def _add_people(self, block: RowBlock) -> None:
        if block.people is not None and self.n_rows == 0:
            self.people = ArrayWriter(array_file(self._directory, PEOPLE), np.int64)
        if (block.people is None) != (self.people is None) or (
            block.people is not None and block.people.size != WORDS * block.labels.size
        ):
            raise DataError(f"{self._name}: some of its rows say whose they are, others do not")
        if self.people is not None and block.people is not None:
            self.people.append(block.people)

    def _numbers(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """Return the numbers of words; a new word gets the next one."""
        assert self._words is not None
        distinct, inverse = np.unique(labels, return_inverse=True)
        for word in distinct:
            self._words.setdefault(str(word), len(self._words))
        if len(self._words) > _MOST_WORDS:
            raise DataError(
                f"{self._name}: more than {_MOST_WORDS:,} different labels by row "
                f"{self.n_rows + labels.size:,}; a classifier needs two"
            )
        codes = np.array([self._words[str(word)] for word in distinct], np.int32)
        return codes[inverse]
