"""Reading svmlight (LIBSVM) text: ``label index:value index:value ...``, one record a line.

The text comes in blocks of whole lines. Each block is parsed on its own, to arrays of its own
(`parse_lines`, which holds no state and releases the interpreter lock), and appended to the
result in file order; so the memory beyond the result is a few blocks.
"""

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from dplasso.data.streams import BLOCK_BYTES, Progress, line_blocks
from dplasso.data.svmlight_kernel import INDEX_MAX, parse_block
from dplasso.errors import DataError

_INT32_MAX = 2**31 - 1
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_QUERY = re.compile(rb"qid:-?\d+")
_SHOWN = 40


@dataclass(frozen=True)
class Lines:
    """What one block of text holds.

    Attributes
    ----------
    labels : float64 array, one a record
    row_ends : int64 array, one a record
        Entries of this block up to the end of the record.
    columns : int64 array, one an entry
        Counted from 0.
    values : float32 array, one an entry
    largest : int
        The largest column, -1 if there are no entries.
    n_lines : int
    """

    labels: NDArray[np.float64]
    row_ends: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    largest: int
    n_lines: int


class _LineError(Exception):
    """What is wrong, and on which line of the block, counted from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


class _Growing:
    """A one-dimensional array that is appended to, in place where the system can."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._size = 0

    def append(self, part: NDArray[Any]) -> None:
        end = self._size + part.size
        if end > self._array.size:
            self._array.resize(end + end // 8, refcheck=False)
        self._array[self._size : end] = part
        self._size = end

    def widen(self, dtype: DTypeLike) -> None:
        self._array = self._array[: self._size].astype(dtype)

    def finish(self) -> NDArray[Any]:
        self._array.resize(self._size, refcheck=False)
        return self._array


def read_svmlight(
    path: str | Path,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    progress: Progress | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[csr_array, NDArray[np.float64]]:
    """Read svmlight text, plain or compressed, to a sparse matrix and its labels.

    A line is ``label index:value index:value ...``; a ``qid:number`` after the label and
    everything from ``#`` on are ignored, as are blank lines. Indices count columns from 1 and
    increase along a line. Explicit zeros are kept.

    Parameters
    ----------
    path : str or Path
        The file; ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` are decompressed.
    n_features : int, optional
        Number of columns. Default: the largest column in the file; say it where the columns
        are public and the file is not, and to give a test file the shape of its training file.
    zero_based : bool, default False
        Whether indices count columns from 0.
    progress : callable, optional
        Called as ``progress(done, total)`` after each block, in bytes of the file on disk.
    block_bytes : int, default 8 MiB
        Bytes of text parsed at a time.

    Returns
    -------
    X : csr_array of float32, shape (n_records, n_features)
        Each value is the double nearest to the text, rounded to float32. Indices are int32
        where they fit, else int64.
    y : float64 array, shape (n_records,)
        The labels as they stand in the file.

    Raises
    ------
    DataError
        If the file cannot be read, holds no record, or a line is malformed: the message names
        the file, the line and what is wrong.
    """
    path = Path(path)
    if n_features is not None and not 1 <= n_features <= INDEX_MAX:
        raise DataError(f"n_features must be from 1 to 2**63 - 1, not {n_features}")
    labels, row_ends = _Growing(np.float64), _Growing(np.int64)
    columns, values = _Growing(np.int32), _Growing(np.float32)
    row_ends.append(np.zeros(1, np.int64))
    largest, n_entries, line, wide = -1, 0, 0, False
    with closing(line_blocks(path, block_bytes)) as blocks:
        for block in blocks:
            try:
                lines = parse_lines(block.text, n_features=n_features, zero_based=zero_based)
            except _LineError as error:
                raise DataError(f"{path}, line {line + error.line}: {error}") from None
            if lines.largest > _INT32_MAX and not wide:
                columns.widen(np.int64)
                wide = True
            labels.append(lines.labels)
            row_ends.append(lines.row_ends + n_entries)
            columns.append(lines.columns)
            values.append(lines.values)
            largest = max(largest, lines.largest)
            n_entries += lines.values.size
            line += lines.n_lines
            if progress is not None:
                progress(block.done, block.total)
    y = labels.finish()
    if y.size == 0:
        raise DataError(f"{path}: the file holds no records")
    if n_features is None:
        n_features = largest + 1
    if n_features == 0:
        raise DataError(f"{path}: no record has an entry; say how many columns with n_features")
    # scipy holds both index arrays in one type.
    wide = max(n_features, n_entries) > _INT32_MAX
    index_type = np.int64 if wide else np.int32
    X = csr_array(
        (
            values.finish(),
            columns.finish().astype(index_type, copy=False),
            row_ends.finish().astype(index_type, copy=False),
        ),
        shape=(y.size, n_features),
    )
    X.has_canonical_format = True
    return X, y


def parse_lines(text: bytes, *, n_features: int | None, zero_based: bool) -> Lines:
    """Parse a block of whole lines; independent of every other block."""
    first_index = 0 if zero_based else 1
    n_columns = INDEX_MAX if n_features is None else n_features
    n_entries, n_records = text.count(b":"), text.count(b"\n") + 1
    labels = np.empty(n_records, np.float64)
    row_ends = np.empty(n_records, np.int64)
    columns = np.empty(n_entries, np.int64)
    values = np.empty(n_entries, np.float32)
    hard = np.empty((n_entries + n_records, 4), np.int64)
    n_records, n_entries, n_hard, n_lines, largest, bad_line = parse_block(
        np.frombuffer(text, np.uint8),
        first_index,
        n_columns,
        labels,
        row_ends,
        columns,
        values,
        hard,
    )
    # Hard numbers come first: they stand before the line where the kernel gave up, or on it.
    for slot, start, end, line in hard[:n_hard].tolist():
        number = float(text[start:end])
        with np.errstate(over="ignore"):
            number = number if slot < 0 else float(np.float32(number))
        if not np.isfinite(number):
            line_start = text.rfind(b"\n", 0, start) + 1
            raise _LineError(line, _explain(_line_at(text, line_start), first_index, n_columns))
        if slot < 0:
            labels[-1 - slot] = number
        else:
            values[slot] = number
    if bad_line >= 0:
        raise _LineError(n_lines, _explain(_line_at(text, bad_line), first_index, n_columns))
    return Lines(
        labels[:n_records],
        row_ends[:n_records],
        columns[:n_entries],
        values[:n_entries],
        largest,
        n_lines,
    )


def _line_at(text: bytes, start: int) -> bytes:
    end = text.find(b"\n", start)
    return text[start:] if end < 0 else text[start:end]


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", errors="backslashreplace")
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _explain(line: bytes, first_index: int, n_columns: int) -> str:
    """Say what is wrong with a line that the kernel could not read."""
    label, *entries = line.split(b"#")[0].split()
    if b":" in label and not _NUMBER.fullmatch(label):
        return (
            f"the label is missing: the line begins with {_shown(label)}; "
            "a record is 'label index:value index:value ...'"
        )
    if _NOT_FINITE.fullmatch(label) or _overflows(label, np.float64):
        return f"label {_shown(label)} is NaN or infinite"
    if not _NUMBER.fullmatch(label):
        return f"label {_shown(label)} is not a number"
    if entries and entries[0].startswith(b"qid:"):
        query = entries.pop(0)
        if not _QUERY.fullmatch(query):
            return f"{_shown(query)} is not a query number; it is written qid:number"
    previous = -1
    for entry in entries:
        problem, previous = _entry_problem(entry, first_index, n_columns, previous)
        if problem:
            return problem
    raise AssertionError(f"the line is well-formed: {line!r}")


def _entry_problem(
    entry: bytes, first_index: int, n_columns: int, previous: int
) -> tuple[str, int]:
    """Return what is wrong with an entry, if anything, and its column."""
    index_text, colon, value = entry.partition(b":")
    if not colon:
        return f"{_shown(entry)} has no colon; an entry is index:value", previous
    if re.fullmatch(rb"-\d+", index_text):
        return f"index {_shown(index_text)} is negative", previous
    if not re.fullmatch(rb"\d+", index_text):
        return f"index {_shown(index_text)} in {_shown(entry)} is not a whole number", previous
    significant = index_text.lstrip(b"0") or b"0"
    index = int(significant) if len(significant) < 20 else 10**20
    column = index - first_index
    if column < 0:
        return (
            "index 0, but columns are counted from 1; if this file counts them from 0, "
            "say so (zero_based=True)"
        ), previous
    if column >= INDEX_MAX:
        return f"index {_shown(index_text)} is beyond the largest, 2**63 - 1", previous
    if column >= n_columns:
        counted = "" if first_index else " counted from 0"
        return f"column {index}{counted}, but {n_columns} columns are declared", previous
    if column == previous:
        return f"index {index} is there twice", previous
    if column < previous:
        before = previous + first_index
        return f"index {index} comes after index {before}; indices must increase", previous
    if _NOT_FINITE.fullmatch(value):
        return f"value {_shown(value)} of index {index} is NaN or infinite", column
    if not _NUMBER.fullmatch(value):
        return f"value {_shown(value)} of index {index} is not a number", column
    if _overflows(value, np.float32):
        return f"value {_shown(value)} of index {index} is too large for float32", column
    return "", column


def _overflows(number: bytes, dtype: type[np.floating]) -> bool:
    if not _NUMBER.fullmatch(number):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isinf(dtype(float(number))))
