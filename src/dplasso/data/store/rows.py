"""The first pass of a conversion: records to files by rows, and totals over all of them.

Columns keep the source's numbers here; they are renumbered when the number of entries of every
column is known. Values and labels are final.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import RowBlock, check_finite
from dplasso.data.formats import INT32_MAX, MOST_COLUMNS
from dplasso.data.labels import labels_of_one_kind
from dplasso.data.people import WORDS
from dplasso.data.store.arrays import ArrayFiles
from dplasso.data.store.format import LABELS, PEOPLE
from dplasso.data.store.kernel import count_columns
from dplasso.errors import DataError
from dplasso.matrix.check import check_rows

_MOST_WORDS = 2**16


class RowWriter:
    """Records written to the files of a store so far.

    `counts`: entries of each column; as long as there is room, at least `n_columns`.
    `constant`: the value of every entry, as long as there is no file of values.
    `words`: the numbers that words have among the labels; None where labels are numbers.
    """

    def __init__(
        self, files: ArrayFiles, name: str, n_features: int | None, most_columns: int
    ) -> None:
        self.n_rows = self.n_entries = 0
        self.n_columns = n_features or 0
        self.constant = 1.0
        self.largest_value = 0.0
        self.value_dtype: np.dtype[Any] = np.dtype(np.float32)
        self.words: dict[str, int] | None = None
        self._files, self._name, self._declared = files, name, n_features
        self._most_columns = most_columns
        self._label_kind: str | None = None
        self._check_room(self.n_columns)
        self.counts = np.zeros(self.n_columns, np.int64)
        files.new("rows.indptr", np.int64).append(np.zeros(1, np.int64))
        wide = self.n_columns > INT32_MAX + 1
        files.new("rows.indices", np.int64 if wide else np.int32, checksums=False)

    def add(self, block: RowBlock) -> None:
        """Write one more block."""
        indptr, indices, values = block.indptr, block.indices, block.values
        outside, unordered, largest = check_rows(indptr, indices, self._declared or MOST_COLUMNS)
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
        self._files["rows.indices"].append(indices)
        self._files["rows.indptr"].append(indptr[1:].astype(np.int64, copy=False) + self.n_entries)
        self._add_labels(block.labels)
        self._add_people(block)
        self.n_entries += indices.size
        self.n_rows += indptr.size - 1

    def _check_room(self, n_columns: int) -> None:
        if n_columns > self._most_columns:
            raise MemoryError(
                f"{self._name}: counting {n_columns:,} columns takes more than the memory allowed, "
                f"which is enough for {self._most_columns:,}; allow more (--memory) or "
                "hash the columns to fewer"
            )

    def _make_room(self, n_columns: int) -> None:
        if n_columns > INT32_MAX + 1:
            self._files.widen("rows.indices", np.int64)
        if n_columns > self.counts.size:
            self._check_room(n_columns)
            grown = np.zeros(min(n_columns + n_columns // 4, self._most_columns), np.int64)
            grown[: self.counts.size] = self.counts
            self.counts = grown
        self.n_columns = max(self.n_columns, n_columns)

    def _add_values(self, indptr: NDArray[np.int64], values: NDArray[Any]) -> None:
        name = "rows.values"
        self.value_dtype = np.result_type(self.value_dtype, values.dtype)
        if name in self._files:
            self._files.widen(name, self.value_dtype)
        if not values.size:
            return
        if self.n_entries == 0:
            self.constant = float(values[0])
        low, high = check_finite(self._name, indptr, values, self.n_rows)
        self.largest_value = max(self.largest_value, -low, high)
        if name not in self._files and not low == high == self.constant:
            self._files.new(name, self.value_dtype).append_constant(self.constant, self.n_entries)
        if name in self._files:
            self._files[name].append(values)

    def _add_labels(self, given: NDArray[Any]) -> None:
        text = given.dtype.kind not in "biuf"
        given = given.astype(np.str_) if text else given
        labels, self._label_kind = labels_of_one_kind(given, self._place, self._label_kind)
        if text:
            labels = self._numbers(labels)
        if LABELS not in self._files:
            self._files.new(LABELS, labels.dtype)
        self._files.widen(LABELS, labels.dtype).append(labels)

    def _place(self, row: int) -> str:
        return f"{self._name}, row {self.n_rows + row + 1}"

    def _numbers(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        """Return the numbers of words; a new word gets the next one."""
        words = self.words = self.words or {}
        distinct, inverse = np.unique(labels, return_inverse=True)
        codes = [words.setdefault(str(word), len(words)) for word in distinct]
        if len(words) > _MOST_WORDS:
            raise DataError(
                f"{self._name}: more than {_MOST_WORDS:,} different labels by row "
                f"{self.n_rows + labels.size:,}; a classifier needs two"
            )
        return np.array(codes, np.int32)[inverse]

    def _add_people(self, block: RowBlock) -> None:
        given = block.people
        if given is not None and self.n_rows == 0:
            self._files.new(PEOPLE, np.int64)
        if (given is not None) != (PEOPLE in self._files) or (
            given is not None and given.size != WORDS * block.labels.size
        ):
            raise DataError(f"{self._name}: some of its rows say whose they are, others do not")
        if given is not None:
            self._files[PEOPLE].append(given)
