"""Hashed columns: their number is declared, so no list of names is ever taken from the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction import FeatureHasher

# scikit-learn hashes to 32-bit column numbers.
MOST_BITS = 30


def check_hash_bits(bits: int) -> None:
    """Raise `ValueError` unless columns can be hashed to ``2**bits`` of them."""
    if not isinstance(bits, int | np.integer) or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"hash bits must be a whole number from 1 to {MOST_BITS}, got {bits!r}")


def hash_names(names: Sequence[str], bits: int) -> NDArray[np.int64]:
    """Hash names to columns, as `FeatureHasher` does; two names may share a column."""
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
