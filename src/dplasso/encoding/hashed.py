"""Parts whose columns are hashed: words of a category, and runs of words of a text.

The number of hashed columns is declared, so no list of names is ever taken from the data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import Rows
from dplasso.encoding.contract import Coded, CodedOf, Codes, OfOneColumn, Part, Slot, TableColumns

# scikit-learn hashes to 32-bit column numbers.
MOST_BITS = 30
# Assumed of a text where the length of a usual row is asked for.
_USUAL_WORDS = 20.0


def check_hash_bits(bits: int) -> None:
    """Raise `ValueError` unless columns can be hashed to ``2**bits`` of them."""
    if not isinstance(bits, int | np.integer) or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"hash bits must be a whole number from 1 to {MOST_BITS}, got {bits!r}")


def hash_names(names: Sequence[str], bits: int) -> NDArray[np.int64]:
    """Hash names to columns, as `FeatureHasher` does; two names may share a column."""
    from sklearn.feature_extraction import FeatureHasher

    if not names:
        return np.empty(0, np.int64)
    hasher = FeatureHasher(2**bits, input_type="string", alternate_sign=False, dtype=np.float32)
    hashed: NDArray[Any] = hasher.transform([name] for name in names).indices
    return hashed.astype(np.int64)


def names_by_column(named: Sequence[str], words: Sequence[str], bits: int) -> dict[int, str]:
    """Return the names of the columns that public words are hashed to."""
    found: dict[int, str] = {}
    for name, column in zip(named, hash_names(words, bits).tolist(), strict=True):
        found[column] = f"{found[column]} | {name}" if column in found else name
    return found


def hash_codes(codes: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Hash numbers that are not negative to ``2**bits`` columns, by the finaliser of SplitMix64."""
    mixed = codes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: NDArray[np.int64] = (mixed >> np.uint64(64 - bits)).astype(np.int64)
    return hashed


class _HashedWords(Part):
    """What is hashed to ``2**bits`` columns, after which come those of missing values."""

    bits: int
    words: tuple[str, ...]

    def _check_hashed(self) -> None:
        check_hash_bits(self.bits)
        given: Any = self.words
        if isinstance(given, str) or not all(isinstance(word, str) for word in given):
            raise ValueError("words must be a list of strings")
        object.__setattr__(self, "words", tuple(given))
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
    """Categories hashed to ``2**bits`` columns that the table's `columns` share.

    `columns`: columns of the table; ``column=value`` is hashed.
    `bits`: 1 to 30. Two values that fall into one column are one.
    `missing`: what a missing value becomes; each of the table's columns has its own.
    `words`: public values, by which columns are named: nothing else.
    """

    columns: tuple[str, ...]
    bits: int = 16
    missing: str = "column"
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns: Any = self.columns
        given = (columns,) if isinstance(columns, str) else tuple(columns)
        object.__setattr__(self, "columns", given)
        if not given or len(set(given)) != len(given) or not all(isinstance(c, str) for c in given):
            raise ValueError("name at least one column to hash, each once")
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

    def described(self) -> str:
        return f"hashed to 2^{self.bits} columns"

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        words, codes = table.words(column, self.missing)
        return self._looked_up(hash_names([f"{column}={word}" for word in words], self.bits), codes)

    def entries(self, coded: CodedOf, table: TableColumns, offset: int) -> Iterator[Slot]:
        codes = np.stack([table.codes(self, column) for column in self.columns], axis=1)
        codes += (codes == 1 << self.bits) * np.arange(len(self.columns))
        codes.sort(axis=1)
        # Values of one record that share a column are one entry.
        codes[:, 1:][codes[:, 1:] == codes[:, :-1]] = -1
        for places in codes.T:
            yield Slot.of(places, offset)


@dataclass(frozen=True)
class Text(OfOneColumn, _HashedWords):
    """Runs of words hashed to ``2**bits`` columns, as scikit-learn's `HashingVectorizer` does.

    `column`: column of texts.
    `bits`: 1 to 30.
    `ngrams`: shortest and longest run of words that is a feature.
    `binary`: 1 for a run that occurs; otherwise how often it does.
    `lowercase`: whether capitals are lowered first.
    `missing`: what a missing value becomes. An empty text counts as missing, but is no error.
    `words`: public runs of words, by which columns are named: nothing else.
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
            raise ValueError(f"n-grams must go from 1 or more upwards, got {shortest} to {longest}")
        object.__setattr__(self, "ngrams", (shortest, longest))
        self._check_bools("binary", "lowercase")
        self._check_hashed()

    def slots(self, coded: CodedOf) -> list[tuple[int, int, float]]:
        return [(0, self.width(coded), _USUAL_WORDS)]

    def _word_names(self) -> dict[int, str]:
        return names_by_column(
            [f"{self.column}:{word}" for word in self.words], self.words, self.bits
        )

    def described(self) -> str:
        return f"words hashed to 2^{self.bits} columns"

    def entries(self, coded: CodedOf, table: TableColumns, offset: int) -> Iterator[Slot | Rows]:
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
        X = vectorizer.transform(texts)
        X.sort_indices()
        yield Rows(X.indptr.astype(np.int64), X.indices + np.int64(offset), X.data)
        if self.own_missing:
            yield Slot(np.where(empty, offset + (1 << self.bits), -1))
