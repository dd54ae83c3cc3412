"""Parts that hash categories, and the n-grams of a text, to features.

The schema declares the number of features, so the data never supply a vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.encoding.contract import (
    Coded,
    CodedOf,
    Codes,
    OfOneColumn,
    Part,
    TableColumns,
    indicators,
)

# scikit-learn hashes to 32-bit column numbers.
MOST_BITS = 30
# Assumed number of words in a text, for the length of a typical row.
_USUAL_WORDS = 20.0


def check_hash_bits(bits: int) -> None:
    """Raise `ValueError` unless ``2**bits`` is a possible number of hashed features."""
    if not isinstance(bits, int | np.integer) or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"hash bits must be a whole number from 1 to {MOST_BITS}, got {bits!r}")


def hash_names(names: Sequence[str], bits: int) -> NDArray[np.int64]:
    """Return the column that `FeatureHasher` gives each name; names may share a column."""
    from sklearn.feature_extraction import FeatureHasher

    if not names:
        return np.empty(0, np.int64)
    hasher = FeatureHasher(2**bits, input_type="string", alternate_sign=False, dtype=np.float32)
    hashed: NDArray[Any] = hasher.transform([name] for name in names).indices
    return hashed.astype(np.int64)


def names_by_column(named: Sequence[str], words: Sequence[str], bits: int) -> dict[int, str]:
    """Return the columns that public words are hashed to, with their names."""
    names: dict[int, str] = {}
    for name, column in zip(named, hash_names(words, bits).tolist(), strict=True):
        names[column] = f"{names[column]} | {name}" if column in names else name
    return names


def hash_codes(codes: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Hash non-negative integers to ``2**bits`` columns with the finaliser of SplitMix64."""
    mixed = codes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: NDArray[np.int64] = (mixed >> np.uint64(64 - bits)).astype(np.int64)
    return hashed


class _HashedWords(Part):
    """A part with ``2**bits`` hashed features, followed by those of missing values."""

    bits: int
    words: tuple[str, ...]

    def _check_hashed(self) -> None:
        check_hash_bits(self.bits)
        words: Any = self.words
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise ValueError("words must be a list of strings")
        object.__setattr__(self, "words", tuple(words))
        self._check_words("missing")

    def width(self, coded: CodedOf) -> int:
        return (1 << self.bits) + len(self.columns) * self.own_missing

    def names(self, coded: CodedOf, columns: Codes) -> list[str]:
        words, last = self._word_names(), 1 << self.bits
        return [
            f"{self.columns[column - last]} (missing)"
            if column >= last
            else words.get(column) or f"{','.join(self.columns)}[{column}]"
            for column in columns.tolist()
        ]

    def _word_names(self) -> dict[int, str]:
        raise NotImplementedError


@dataclass(frozen=True)
class Hashed(_HashedWords, Coded):
    """Categories of one or more table columns, hashed to ``2**bits`` features.

    `columns`: columns of the table; the part hashes the text ``column=value``.
    `bits`: 1 to 30. The model cannot tell apart two values with the same hash.
    `missing`: how to encode a missing value, separately for each column.
    `words`: public values, used only to name features.
    """

    columns: tuple[str, ...]
    bits: int = 16
    missing: str = "column"
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns: Any = self.columns
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        object.__setattr__(self, "columns", names)
        if not names or len(set(names)) != len(names) or not all(isinstance(c, str) for c in names):
            raise ValueError("columns must be different names of columns to hash, at least one")
        self._check_hashed()

    @property
    def codes(self) -> int:
        return (1 << self.bits) + self.own_missing

    @property
    def one_hot(self) -> bool:
        return False

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        return [(0, self.width(coded), float(len(self.columns)))]

    def _word_names(self) -> dict[int, str]:
        named = [f"{name}={word}" for name in self.columns for word in self.words]
        return names_by_column(named, named, self.bits)

    def code_names(self, codes: Codes, column: str) -> list[str]:
        places = codes + (codes == 1 << self.bits) * self.columns.index(column)
        return _HashedWords.names(self, None, places)  # type: ignore[arg-type]

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        words, codes = table.words(column, self.missing)
        return self._looked_up(hash_names([f"{column}={word}" for word in words], self.bits), codes)

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        codes = np.stack([table.codes(self, column) for column in self.columns], axis=1)
        codes += (codes == 1 << self.bits) * np.arange(len(self.columns))
        codes.sort(axis=1)
        # If two values of a record have the same hash, they make one entry.
        codes[:, 1:][codes[:, 1:] == codes[:, :-1]] = -1
        yield indicators(codes, self.width(coded))


@dataclass(frozen=True)
class Text(OfOneColumn, _HashedWords):
    """Word n-grams hashed to ``2**bits`` features, as scikit-learn's `HashingVectorizer` does.

    `column`: column of texts.
    `bits`: 1 to 30.
    `ngrams`: smallest and largest n.
    `binary`: whether the value of an n-gram is 1 instead of its count.
    `lowercase`: whether to convert to lower case first.
    `missing`: how to encode a missing value. An empty text is treated as missing, but not refused.
    `words`: public n-grams, used only to name features.
    """

    bits: int = 18
    ngrams: tuple[int, int] = (1, 1)
    binary: bool = True
    lowercase: bool = True
    missing: str = "column"
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_hash_bits(self.bits)
        try:
            shortest, longest = (int(length) for length in self.ngrams)
        except (TypeError, ValueError):
            raise ValueError(f"ngrams must be two whole numbers, got {self.ngrams!r}") from None
        if not 1 <= shortest <= longest:
            raise ValueError(f"ngrams must be 1 or more and ascending, got {shortest}, {longest}")
        object.__setattr__(self, "ngrams", (shortest, longest))
        for name in ("binary", "lowercase"):
            if not isinstance(value := getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, got {value!r}")
        self._check_hashed()

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        return [(0, self.width(coded), _USUAL_WORDS)]

    def _word_names(self) -> dict[int, str]:
        return names_by_column(
            [f"{self.column}:{word}" for word in self.words], self.words, self.bits
        )

    def entries(self, coded: CodedOf, table: TableColumns) -> Iterator[csr_array]:
        from sklearn.feature_extraction.text import HashingVectorizer

        texts, empty = table.texts(self.column, self.missing)
        vectorizer = HashingVectorizer(
            n_features=1 << self.bits,
            ngram_range=self.ngrams,
            binary=self.binary,
            lowercase=self.lowercase,
            alternate_sign=False,
            norm=None,
            dtype=np.float32,
        )
        X = csr_array(vectorizer.transform(texts))
        X.sort_indices()
        yield X
        if self.own_missing:
            yield indicators(np.where(empty, 0, -1), 1)
