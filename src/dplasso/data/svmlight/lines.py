"""One block of svmlight text to arrays, and what is wrong with a line in words."""

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import Rows
from dplasso.data.formats import INT32_MAX, MOST_COLUMNS, Layout
from dplasso.data.label_map import LabelMap, decimal
from dplasso.data.svmlight.kernel import parse_block

_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_QUERY = re.compile(rb"qid:-?\d+")
_EIGHT = np.dtype("<u8")  # the first byte of text lowest, on any machine


@dataclass(frozen=True)
class Lines:
    """What one block of text holds."""

    rows: Rows
    labels: NDArray[np.float64]
    n_lines: int


class LineError(Exception):
    """What is wrong, and on which line of the block, counted from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def parse_lines(text: bytes, layout: Layout) -> Lines | LineError:
    """Parse a block of whole lines, independently of every other block.

    An error is returned, not raised: it counts when all blocks before have been read.
    """
    try:
        return _parse_lines(text, layout)
    except LineError as error:
        return error


def _parse_lines(text: bytes, layout: Layout) -> Lines:
    # An entry has four bytes at least, " 1:1". Memory that is not written to is never taken.
    n_entries, n_records = len(text) // 4 + 1, text.count(b"\n") + 1
    labels = np.empty(n_records, np.float64)
    starts = np.zeros(n_records + 1, np.int64)
    columns = np.empty(n_entries, np.int64)
    values = np.empty(n_entries, np.float32)
    hard = np.empty((n_entries + n_records, 4), np.int64)
    words, word_ends = _word_table(layout.label_map)
    label_words = np.empty(n_records if word_ends.size else 0, np.int64)
    n_records, n_entries, n_hard, n_lines, largest, bad_line = parse_block(
        np.frombuffer(text, np.uint8),
        np.frombuffer(text, _EIGHT, len(text) // 8).astype(np.uint64, copy=False),
        int(not layout.zero_based),
        layout.n_features or MOST_COLUMNS,
        words,
        word_ends,
        labels,
        label_words,
        starts[1:],
        columns,
        values,
        hard,
    )
    # What comes now stands before the line where the kernel gave up, or on it.
    problem = _left_to_python(text, hard[:n_hard], labels, values)
    if problem is None and bad_line >= 0:
        problem = n_lines, bad_line
    labels = labels[:n_records]
    if layout.label_map is not None:
        labels, unknown = _mapped(labels, label_words[:n_records], layout.label_map)
        if unknown >= 0:
            line, start = _line_of_record(text, unknown)
            if problem is None or line < problem[0]:
                problem = line, start
    if problem is not None:
        line, start = problem
        raise LineError(line, _explain(_line_at(text, start), layout))
    # Copied: a slice would keep the room for the largest possible block.
    narrow = max(largest, layout.n_features or 0) <= INT32_MAX
    indices = columns[:n_entries].astype(np.int32 if narrow else np.int64)
    rows = Rows(starts[: n_records + 1].copy(), indices, values[:n_entries].copy())
    return Lines(rows, labels.copy(), n_lines)


def _left_to_python(
    text: bytes,
    hard: NDArray[np.int64],
    labels: NDArray[np.float64],
    values: NDArray[np.float32],
) -> tuple[int, int] | None:
    """Read the numbers that the kernel left; return line and start of the first that is none."""
    slots, starts, ends, _ = hard.T
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    tokens = [text[start:end] for start, end in places]
    try:
        # Of other characters Python reads more than svmlight may hold.
        if b"".join(tokens).translate(None, b"0123456789.eE+-"):
            raise ValueError
        numbers = np.fromiter(map(float, tokens), np.float64, len(tokens))
    except ValueError:
        numbers = np.array([_decimal(one) for one in tokens])
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32)
    is_label = slots < 0
    labels[-1 - slots[is_label]] = numbers[is_label]
    values[slots[~is_label]] = rounded[~is_label]
    wrong = ~np.isfinite(np.where(is_label, numbers, rounded))
    if not wrong.any():
        return None
    _, start, _, line = hard[wrong.argmax()].tolist()
    return line, text.rfind(b"\n", 0, start) + 1


def _word_table(label_map: LabelMap | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Lay the labels that are not numbers out for the kernel."""
    words = [word.encode() for word in _text_labels(label_map)]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return np.array(list(b"".join(words)), np.uint8), ends


def _text_labels(label_map: LabelMap | None) -> list[str]:
    if label_map is None:
        return []
    return [word for word in label_map.words if decimal(word) is None]


def _mapped(
    labels: NDArray[np.float64], label_words: NDArray[np.int64], label_map: LabelMap
) -> tuple[NDArray[np.float64], int]:
    """Map labels; return them and the first record whose label is not in the map, or -1."""
    mapped = np.full(labels.size, np.nan)
    is_word = label_words >= 0 if label_words.size else np.zeros(labels.size, bool)
    for number, value in label_map.numbers.items():
        mapped[~is_word & (labels == number)] = value
    if label_words.size:
        meanings = [label_map.words[word] for word in _text_labels(label_map)]
        mapped[is_word] = np.array(meanings)[label_words[is_word]]
    unknown = np.isnan(mapped)
    return mapped, int(np.argmax(unknown)) if unknown.any() else -1


def _line_of_record(text: bytes, record: int) -> tuple[int, int]:
    """Find a record: its line, counted from 1, and where that starts."""
    start = 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.split(b"#")[0].split():
            if record == 0:
                return number, start
            record -= 1
        start += len(line) + 1
    raise AssertionError("there are fewer records")


def _line_at(text: bytes, start: int) -> bytes:
    end = text.find(b"\n", start)
    return text[start:] if end < 0 else text[start:end]


def _explain(line: bytes, layout: Layout) -> str:
    """Return what is wrong with a line that the kernel could not read, and quote nothing of it."""
    label, *entries = line.split(b"#")[0].split()
    problem = _label_problem(label, layout.label_map)
    if problem:
        return problem
    if entries and entries[0].startswith(b"qid:"):
        query = entries.pop(0)
        if not _QUERY.fullmatch(query):
            return "the query number is not one; it is written qid:number"
    previous = -1
    for number, entry in enumerate(entries, start=1):
        found = _column_or_problem(entry, layout, previous)
        if isinstance(found, str):
            return f"entry {number}: {found}"
        previous = found
    raise AssertionError("the line is well-formed")


def _label_problem(label: bytes, label_map: LabelMap | None) -> str:
    """Return what is wrong with a label, if anything."""
    number = _decimal(label)
    if math.isfinite(number) and (label_map is None or number in label_map.numbers):
        return ""
    if label in [word.encode() for word in _text_labels(label_map)]:
        return ""
    if b":" in label:
        return (
            "the label is missing: the line begins with an entry; "
            "a record is 'label index:value index:value ...'"
        )
    if _NOT_FINITE.fullmatch(label) or math.isinf(number):
        return "the label is NaN or infinite"
    if label_map is not None:
        return f"the label is not in the label map ({label_map.shown()})"
    return "the label is not a number; say what text labels mean with a label map"


def _column_or_problem(entry: bytes, layout: Layout, previous: int) -> int | str:
    """Return the column of an entry, or what is wrong with it."""
    first_index, n_columns = int(not layout.zero_based), layout.n_features or MOST_COLUMNS
    index_text, colon, value = entry.partition(b":")
    if not colon:
        return "there is no colon; an entry is index:value"
    if re.fullmatch(rb"-\d+", index_text):
        return "the index is negative"
    if not re.fullmatch(rb"\d+", index_text):
        return "the index is not a whole number"
    significant = index_text.lstrip(b"0") or b"0"
    column = (int(significant) if len(significant) < 20 else 10**20) - first_index
    if column < 0:
        return (
            "the index is 0, but columns are counted from 1; if this file counts them from 0, "
            "say so (zero_based=True)"
        )
    if column >= MOST_COLUMNS:
        return "the index is beyond the largest, 2**63 - 1"
    if column >= n_columns:
        last = n_columns - 1 + first_index
        return f"the index is beyond {last}, as {n_columns} columns are declared"
    if column == previous:
        return "its index appears twice"
    if column < previous:
        return "its index is smaller than the one before; indices must increase"
    if _NOT_FINITE.fullmatch(value):
        return "the value is NaN or infinite"
    number = _decimal(value)
    if math.isnan(number):
        return "the value is not a number"
    with np.errstate(over="ignore"):
        return "the value is too large for float32" if np.isinf(np.float32(number)) else column


def _decimal(text: bytes) -> float:
    """Return the number that a text writes, NaN if it writes none."""
    number = decimal(text.decode("latin-1"))
    return math.nan if number is None else number
