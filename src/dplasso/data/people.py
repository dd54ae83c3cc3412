"""Decide which rows belong to the same person.

Two rows belong to the same person if their ids are equal texts, or equal whole numbers. Ids are
never converted if the conversion could merge two people or split one.

Ids in tables are replaced by 127 bits of their BLAKE2b hash, and a bit that is 1 for texts: rows in
several stores belong to the same person only if their ids have the same type. Two people of a data
set share a hash with a probability below 2^-60. Hashes do not hide ids from someone who can guess
them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import DataError

# Number of 64-bit words in the hash of an id.
WORDS = 2
TEXTS, NUMBERS = "texts", "whole numbers"


def number_groups(parts: Sequence[tuple[str, Any, int]]) -> NDArray[np.int64]:
    """Return a number for each row of all parts: (name, ids, number of rows)."""
    kind, named = None, []
    for name, people, n_rows in parts:
        ids = _as_ids(people)
        shape = (len(ids),) if isinstance(ids, list) else ids.shape
        if shape != (n_rows,):
            raise DataError(
                f"{name} has the shape {shape}; pass one entry for each of {n_rows:,} rows"
            )
        kind, values = _checked(ids, partial(_row_of, name), kind)
        named.append(values)
    arrays = [values for values in named if isinstance(values, np.ndarray)]
    # The common type of int64 and uint64 is float64, which would merge large ids.
    if arrays and len(arrays) == len(named) and np.result_type(*arrays).kind in "iu":
        numbers_of_rows = np.unique(np.concatenate(arrays), return_inverse=True)[1]
        return numbers_of_rows.astype(np.int64)
    numbers: dict[Any, int] = {}
    every = (numbers.setdefault(key, len(numbers)) for values in named for key in _exact(values))
    return np.fromiter(every, dtype=np.int64)


def hash_people(
    people: Any, where: Callable[[int], str], kind: str | None = None
) -> tuple[NDArray[np.int64], str | None]:
    """Return the hashes of ids, two numbers for each row, and the kind of the ids."""
    kind, names = _checked(_as_ids(people), where, kind)
    hashes = (
        blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8 * WORDS).digest()
        for name in _exact(names)
    )
    words = np.frombuffer(b"".join(hashes), "<i8").astype(np.int64)
    words[1::WORDS] = words[1::WORDS] & -2 | (kind == TEXTS)
    return words, kind


def number_people(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row from `hash_people`, equal for rows of the same person."""
    if np.ptp(hashes[1::WORDS] & 1):
        raise DataError(
            f"some ids of people are {TEXTS} and some are {NUMBERS}, so rows of a person may not "
            "match; convert all files again, from ids of one type"
        )
    _, first = np.unique(hashes[::WORDS], return_inverse=True)
    words, second = np.unique(hashes[1::WORDS], return_inverse=True)
    pairs = first.astype(np.int64) * words.size + second
    # From 0 to the number of people, because a search draws a word for each number.
    numbers: NDArray[np.int64] = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return numbers


def _as_ids(people: Any) -> NDArray[Any] | list[Any]:
    """Return ids as an array of numbers, or else as a list of unchanged Python values."""
    if isinstance(people, list | tuple):
        return list(people)
    if np.ma.is_masked(people):
        return list(people.tolist())
    ids = np.asarray(people)
    if ids.ndim != 1 or ids.dtype.kind in "biufMm":
        return ids
    # numpy would cut zeros off the ends of texts, and convert integers with gaps to floats.
    methods = (getattr(people, name, None) for name in ("to_pylist", "to_list", "tolist"))
    return list(next(filter(None, methods), ids.tolist)())


def _row_of(name: str, row: int) -> str:
    return f"{name}, row {row + 1:,}"


def _exact(values: NDArray[Any] | list[Any]) -> list[Any]:
    return values if isinstance(values, list) else values.tolist()


def _checked(
    ids: NDArray[Any] | list[Any], where: Callable[[int], str], before: str | None
) -> tuple[str | None, NDArray[Any] | list[Any]]:
    """Check ids; return their kind, which must be `before` unless that is None, and the values."""
    types = set(map(type, ids)) if isinstance(ids, list) else set()
    kinds: list[str]
    values: NDArray[Any] | list[Any]
    if types == {float} or isinstance(ids, np.ndarray):
        kinds, values = [NUMBERS][: len(ids)], _whole_numbers(np.asarray(ids), where)
    # The common lists need no check of each id.
    elif types == {int}:
        kinds, values = [NUMBERS], ids
    elif types == {str} and all(map(str.strip, ids)):
        kinds, values = [TEXTS], ids
    else:
        named = [_plain(key, where(row)) for row, key in enumerate(ids)]
        kinds, values = [kind for kind, _ in named], [value for _, value in named]
    for row, kind in enumerate(kinds):
        if before is not None and kind != before:
            raise DataError(
                f"{where(row)}: the id has another type ({kind}) than ids before it ({before}), so "
                "rows of a person may not match; use one type of id"
            )
        before = kind
    return before, values


def _whole_numbers(ids: NDArray[Any], where: Callable[[int], str]) -> NDArray[Any]:
    kind = ids.dtype.kind
    if kind not in "iuf":
        raise _invalid_id(where(0), f"a value of type {ids.dtype}")
    if kind == "f":
        if (missing := np.isnan(ids)).any():
            raise _invalid_id(where(int(missing.argmax())), "a missing entry")
        # From this limit on, a floating-point number represents several whole numbers.
        several = 2.0 ** min(63, np.finfo(ids.dtype).nmant + 1)
        whole = (np.abs(ids) < several) & (ids == np.rint(ids))
        if not whole.all():
            raise _invalid_id(
                where(int(whole.argmin())),
                "a floating-point number with a fraction, or too large to be exact,",
            )
        ids = ids.astype(np.int64)
    return ids


def _plain(key: Any, where: str) -> tuple[str, str | int]:
    """Return the kind of an id, and it as a built-in type, without equality or hash of its own."""
    if isinstance(key, str):
        if key.strip():
            return TEXTS, str.__str__(key)
    elif isinstance(key, float | np.floating):
        whole = _whole_numbers(np.asarray(key)[None], lambda _: where)
        return NUMBERS, int(whole[0])
    elif isinstance(key, int | np.integer) and not isinstance(key, bool):
        return NUMBERS, int(key)
    elif key is not None and type(key).__name__ not in ("NAType", "NaTType"):
        raise _invalid_id(where, f"a value of type {type(key).__name__}")
    raise _invalid_id(where, "a missing entry")


def _invalid_id(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what} does not identify a person; use a text or a whole number")
