"""Texts as row blocks: their n-grams hashed to a declared number of columns.

Hashing keeps the vocabulary public: the column of an n-gram depends on the n-gram alone, and there
are ``2**bits`` columns whatever the texts hold. A vocabulary learnt from the records would release
which words occur.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.source_files import Paths, source_files
from dplasso.data.streams import Progress
from dplasso.data.tables.hashing import check_hash_bits
from dplasso.data.text.files import TextRecord, check_text_file, text_records
from dplasso.errors import DataError

# Of a text's character, n-grams and their hashes included; measured on English reviews.
_BYTES_PER_CHARACTER = 32
_MOST_CHARACTERS = 4 << 20


@dataclass(frozen=True)
class TextHashing:
    """How a text becomes a sparse row.

    Attributes
    ----------
    bits : int
        There are ``2**bits`` columns; 1 to 30.
    ngrams : tuple of two int
        Shortest and longest run of words that is a feature.
    binary : bool
        1 for an n-gram that occurs; otherwise how often it does.
    lowercase : bool
        Whether capitals are lowered first.
    """

    bits: int = 20
    ngrams: tuple[int, int] = (1, 1)
    binary: bool = False
    lowercase: bool = True

    def describe(self) -> dict[str, Any]:
        """Return everything that hashing another text the same way needs, JSON-safe."""
        return {"hashing": "MurmurHash3, signed 32 bits, seed 0", **asdict(self)}


def text_source(
    paths: Paths,
    *,
    text_column: str,
    label_column: str,
    hashing: TextHashing,
) -> BlockSource:
    """Open files of texts and labels as a stream of row blocks.

    Parameters
    ----------
    paths : str, Path or iterable of these
        Files, or patterns, that make one data set, in this order; see `text_records` for the kinds.
    text_column, label_column : str
        Where text and label are.
    hashing : TextHashing
        How a text becomes a row; words are those of scikit-learn's `HashingVectorizer`.

    Returns
    -------
    BlockSource
        float32 values. Labels of CSV are numbers if the first one is, else strings; progress is
        counted in bytes.

    Raises
    ------
    DataError
        If a file is missing or of another kind. What is wrong in a file is told, with file and
        line, when it is read.
    ValueError
        If the hashing cannot be done.
    """
    check_hash_bits(hashing.bits)
    shortest, longest = hashing.ngrams
    if not 1 <= shortest <= longest:
        raise ValueError(f"n-grams must go from 1 or more upwards, got {shortest} to {longest}")
    if text_column == label_column:
        raise ValueError(f"column {text_column!r} cannot be both text and label")
    files = source_files(paths)
    for path in files.paths:
        check_text_file(path)

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        kind: str | None = None
        for i, path in enumerate(files.paths):
            files.check_unchanged(i)
            records = text_records(path, text_column, label_column, memory_bytes)
            for chunk in _chunks(records, memory_bytes):
                kind, labels = _labels(path, chunk, kind)
                yield RowBlock(*_hash([record.text for record in chunk], hashing), labels)
                if progress is not None:
                    progress(files.before(i) + chunk[-1].done, files.total)
            files.check_unchanged(i)

    return BlockSource(files.name, 1 << hashing.bits, blocks, files.total)


def _chunks(records: Iterator[TextRecord], memory_bytes: int) -> Iterator[list[TextRecord]]:
    """Gather records until their texts are as long as the memory allows."""
    most = min(memory_bytes // _BYTES_PER_CHARACTER, _MOST_CHARACTERS)
    chunk: list[TextRecord] = []
    characters = 0
    for record in records:
        # A record takes memory even if its text is empty.
        characters += len(record.text) + 16
        chunk.append(record)
        if characters >= most:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _hash(
    texts: list[str], hashing: TextHashing
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=1 << hashing.bits,
        ngram_range=hashing.ngrams,
        binary=hashing.binary,
        lowercase=hashing.lowercase,
        alternate_sign=False,
        norm=None,
        dtype=np.float32,
    )
    X = vectorizer.transform(texts)
    X.sort_indices()
    return X.indptr.astype(np.int64), X.indices, X.data


def _labels(path: Path, chunk: list[TextRecord], kind: str | None) -> tuple[str, NDArray[Any]]:
    """Turn labels into an array of one kind, that of the first label of all."""
    kind = kind or _kind(chunk[0].label)
    labels: list[Any] = []
    for record in chunk:
        label = _as_kind(record.label, kind)
        if label is None:
            raise DataError(
                f"{path}, {record.where}: the label {record.label!r} is not a {kind}, as the first "
                "label is"
                if kind != "label"
                else f"{path}, {record.where}: {record.label!r} cannot be a label; give a finite "
                "number, a string or a bool"
            )
        labels.append(label)
    return kind, np.asarray(labels)


def _kind(label: Any) -> str:
    if isinstance(label, bool):
        return "bool"
    if isinstance(label, int | float):
        return "number" if np.isfinite(label) else "label"
    if isinstance(label, str):
        return "number" if _number(label) is not None else "string"
    return "label"


def _as_kind(label: Any, kind: str) -> Any:
    if kind == "bool":
        return label if isinstance(label, bool) else None
    if kind == "string":
        return label if isinstance(label, str) else None
    if kind == "number" and not isinstance(label, bool):
        return _number(label)
    return None


def _number(label: Any) -> float | None:
    try:
        number = float(label)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
