"""Read svmlight (LIBSVM) text: ``label index:value index:value ...``, one record per line.

Threads parse blocks of whole lines, and the results are yielded in file order.
"""

import math
import re
from collections.abc import Generator
from contextlib import closing, suppress

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import INT32_MAX, MOST_COLUMNS, BlockSource, Piece, Rows, files_source
from dplasso.data.formats import Layout
from dplasso.data.source_files import BLOCK_BYTES, SourceFiles, in_order, line_blocks
from dplasso.data.svmlight_parser import parse_block
from dplasso.errors import DataError
from dplasso.runtime.threads import usable_cores

# More threads would wait for the thread that reads and decompresses.
_MOST_THREADS = 8
# Memory for a block of text and its arrays, in sizes of the text: a short entry of 4 bytes becomes
# 12 bytes, and the kernel uses wider columns.
_ARRAYS_PER_TEXT = 8
# Blocks in memory besides one for each thread: read ahead, waiting, in use by the caller.
_BESIDE_THREADS = 4
_LEAST_TEXT = 64 << 10

_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_EIGHT = np.dtype("<u8")  # little-endian on any machine


def row_source(
    files: SourceFiles,
    layout: Layout,
    *,
    block_bytes: int | None = None,
    n_threads: int | None = None,
) -> BlockSource:
    """Open svmlight text, plain or compressed, as row blocks of float32."""
    if layout.labels_path is not None:
        raise DataError(
            f"{files.paths[0]}: svmlight text contains its labels; leave `labels_path` out"
        )
    threads = n_threads or min(usable_cores(), _MOST_THREADS)

    def parse(block: tuple[bytes, int]) -> tuple[Piece, int]:
        return parse_lines(*block, layout)

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        path, line = files.paths[i], 0
        text = memory_bytes // ((threads + _BESIDE_THREADS) * _ARRAYS_PER_TEXT)
        size = block_bytes or min(max(text, _LEAST_TEXT), BLOCK_BYTES)
        with (
            closing(line_blocks(path, size)) as texts,
            closing(in_order(parse, texts, threads)) as results,
        ):
            try:
                for piece, n_lines in results:
                    line += n_lines
                    yield piece._replace(where=lambda _: str(path))
            except LineError as error:
                raise DataError(f"{path}, line {line + error.line}: {error}") from None

    return files_source(files, layout.n_features, read)


class LineError(Exception):
    """An error on a line of a block, counted from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def parse_lines(text: bytes, done: int, layout: Layout) -> tuple[Piece, int]:
    """Return the records and the number of lines of a block, or raise `LineError`."""
    # An entry has at least four bytes, " 1:1". Unused parts of the arrays take no memory.
    n_lines = text.count(b"\n")
    n_entries, n_records = len(text) // 4 + 1, n_lines + 1
    labels = np.empty(n_records, np.float64)
    line_starts = np.empty(n_records, np.int64)
    starts = np.zeros(n_records + 1, np.int64)
    columns = np.empty(n_entries, np.int64)
    values = np.empty(n_entries, np.float32)
    hard = np.empty((n_entries + n_records, 3), np.int64)
    n_records, n_entries, n_hard, largest, bad_line = parse_block(
        np.frombuffer(text, np.uint8),
        np.frombuffer(text, _EIGHT, len(text) // 8).astype(np.uint64, copy=False),
        int(not layout.zero_based),
        layout.n_features or MOST_COLUMNS,
        labels,
        line_starts,
        starts[1:],
        columns,
        values,
        hard,
    )
    hard = hard[:n_hard]
    of_labels, of_values = hard[hard[:, 0] < 0], hard[hard[:, 0] >= 0]
    labels[-1 - of_labels[:, 0]] = _numbers(_tokens(text, of_labels))
    labels = labels[:n_records]
    with np.errstate(over="ignore"):
        left = _numbers(_tokens(text, of_values)).astype(np.float32)
    values[of_values[:, 0]] = left
    # Positions of errors in the text.
    wrong = [
        *line_starts[:n_records][~np.isfinite(labels)][:1].tolist(),
        *of_values[~np.isfinite(left), 1][:1].tolist(),
        *([bad_line] if bad_line >= 0 else []),
    ]
    if wrong:
        line = text.count(b"\n", 0, min(wrong))
        raise LineError(line + 1, _explain(text.split(b"\n", line + 1)[line], layout))
    # Copied, because a slice would keep the whole array in memory.
    narrow = max(largest, layout.n_features or 0) <= INT32_MAX
    indices = columns[:n_entries].astype(np.int32 if narrow else np.int64)
    rows = Rows(starts[: n_records + 1].copy(), indices, values[:n_entries].copy())
    return Piece(rows, labels.copy(), done, str), n_lines


def _tokens(text: bytes, places: NDArray[np.int64]) -> list[bytes]:
    return [text[start:end] for start, end in places[:, 1:].tolist()]


def _numbers(tokens: list[bytes]) -> NDArray[np.float64]:
    """Convert texts to numbers, NaN if a text is not a number."""
    # With other characters Python's float accepts more than the svmlight format allows.
    if not b"".join(tokens).translate(None, b"0123456789.eE+-"):
        with suppress(ValueError):
            return np.fromiter(map(float, tokens), np.float64, len(tokens))
    return np.array([_decimal(token) for token in tokens], np.float64)


def _explain(line: bytes, layout: Layout) -> str:
    """Describe the error in a line that the kernel could not read, without quoting it."""
    label, *entries = line.split(b"#")[0].split()
    number = _decimal(label)
    if not math.isfinite(number):
        return _label_problem(label, number)
    previous = -1
    for number, entry in enumerate(entries, start=1):
        column = _column_or_problem(entry, layout, previous)
        if isinstance(column, str):
            return f"entry {number}: {column}"
        previous = column
    raise AssertionError("the line is well-formed")


def _label_problem(label: bytes, number: float) -> str:
    if b":" in label:
        return (
            "the label is missing, because the line begins with an entry; "
            "write 'label index:value index:value ...'"
        )
    if _NOT_FINITE.fullmatch(label) or math.isinf(number):
        return "the label is NaN or infinite"
    return "the label is not a number; write labels as numbers, or pass a table"


def _column_or_problem(entry: bytes, layout: Layout, previous: int) -> int | str:
    """Return the column of an entry, or a description of its error."""
    first_index, n_columns = int(not layout.zero_based), layout.n_features or MOST_COLUMNS
    index_text, colon, value = entry.partition(b":")
    if not colon:
        return "there is no colon; write index:value"
    if re.fullmatch(rb"-\d+", index_text):
        return "the index is negative"
    if not re.fullmatch(rb"\d+", index_text):
        return "the index is not a whole number"
    significant = index_text.lstrip(b"0") or b"0"
    column = (int(significant) if len(significant) < 20 else 10**20) - first_index
    if column < 0:
        return (
            "the index is 0, but columns are counted from 1; if this file counts from 0, set "
            "`zero_based`"
        )
    if column >= MOST_COLUMNS:
        return "the index is beyond the largest possible, 2**63 - 1"
    if column >= n_columns:
        last = n_columns - 1 + first_index
        return f"the index is beyond {last}, but {n_columns} columns are declared"
    if column == previous:
        return "the index appears twice"
    if column < previous:
        return "the index is smaller than the previous one; indices must increase"
    if _NOT_FINITE.fullmatch(value):
        return "the value is NaN or infinite"
    number = _decimal(value)
    if math.isnan(number):
        return "the value is not a number"
    with np.errstate(over="ignore"):
        return "the value is too large for float32" if np.isinf(np.float32(number)) else column


def _decimal(text: bytes) -> float:
    """Convert a text to a number; infinity if too large, NaN if it is not a number."""
    return float(text) if _NUMBER.fullmatch(text) else math.nan
