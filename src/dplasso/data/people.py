"""Decide which rows belong to the same person.

Two rows belong to the same person if their ids are equal as Python values of one kind: texts, whole
numbers, bytes, truth values, dates, times, decimal numbers or UUIDs. Ids are never converted if
the conversion could merge two people or split one: mixed kinds and large floats are refused.

Ids in tables are replaced by the first 128 bits of their BLAKE2b hash, so only hashes are kept in
memory. Two people of a data set share a hash with a probability below 2^-60, however the ids were
chosen. Hashes do not hide ids from someone who can guess them, so treat them like the data.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from hashlib import blake2b
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import DataError

# Number of 64-bit words in the hash of an id.
WORDS = 2
TEXTS, NUMBERS, BYTES, TIMES = "texts", "whole numbers", "bytes", "times"
# An id has the first kind that fits: a bool is also an int, a datetime also a date.
_KINDS = (
    ((bool, np.bool_), "truth values"),
    ((int, np.integer, float, np.floating), NUMBERS),
    ((str,), TEXTS),
    ((bytes,), BYTES),
    ((datetime,), TIMES),
    ((date,), "dates"),
    ((Decimal,), "decimal numbers"),
    ((UUID,), "UUIDs"),
)


def number_groups(parts: Sequence[tuple[str, Any, int]]) -> NDArray[np.int64]:
    """Return a number for each row of all parts, equal for rows of the same person.

    `parts`: for each part its name in messages, the ids of its rows, and its number of rows.
    """
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
    if arrays and len(arrays) == len(named) and np.result_type(*arrays).kind in "biu":
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
    if kind not in (None, TEXTS, NUMBERS):
        raise _invalid_id(where(0), f"an id of another kind ({kind})")
    hashes = (
        blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8 * WORDS).digest()
        for name in _exact(names)
    )
    return np.frombuffer(b"".join(hashes), "<i8").astype(np.int64), kind


def number_people(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row from `hash_people`, equal for rows of the same person."""
    _, first = np.unique(hashes[::WORDS], return_inverse=True)
    words, second = np.unique(hashes[1::WORDS], return_inverse=True)
    numbers: NDArray[np.int64] = first.astype(np.int64) * words.size + second
    return numbers


def _as_ids(people: Any) -> NDArray[Any] | list[Any]:
    """Return ids as an array of numbers or times, or else as a list of unchanged Python values."""
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
    values: NDArray[Any] | list[Any] = ids
    kinds: list[str] = []
    # The common lists need no check of each id.
    if types == {int}:
        kinds = [NUMBERS]
    elif types == {str} and all(map(str.strip, ids)):
        kinds = [TEXTS]
    elif types == {float} or isinstance(ids, np.ndarray):
        kind, values = _checked_array(np.asarray(ids), where)
        kinds = [kind] if len(ids) else []
    alike = bool(kinds)
    for row, kind in enumerate(kinds or (_kind_of(key, where, k) for k, key in enumerate(ids))):
        if before is not None and kind != before:
            raise DataError(
                f"{where(row)}: the id has another type ({kind}) than ids before it ({before}), so "
                "rows of a person may not match; use one type of id"
            )
        before = kind
    if not alike:
        values = [_plain(key, before, where, row) for row, key in enumerate(ids)]
    return before, values


def _checked_array(ids: NDArray[Any], where: Callable[[int], str]) -> tuple[str, NDArray[Any]]:
    kind = ids.dtype.kind
    if kind in "fMm":
        missing = np.isnan(ids) if kind == "f" else np.isnat(ids)
        if missing.any():
            raise _invalid_id(where(int(missing.argmax())), "a missing entry")
    if kind in "Mm":
        # Each unit is a kind of its own, because a conversion between units can merge two ids.
        native = ids.astype(ids.dtype.newbyteorder("="))
        return str(native.dtype), native.view(np.int64)
    if kind == "f":
        # From this limit on, a floating-point number represents several whole numbers.
        several = 2.0 ** min(63, np.finfo(ids.dtype).nmant + 1)
        whole = (np.abs(ids) < several) & (ids == np.rint(ids))
        if not whole.all():
            raise _invalid_id(
                where(int(whole.argmin())),
                "a floating-point number with a fraction, or too large to be exact,",
            )
        ids = ids.astype(np.int64)
    return ("truth values" if kind == "b" else NUMBERS), ids


def _kind_of(key: Any, where: Callable[[int], str], row: int) -> str:
    if _is_missing(key):
        raise _invalid_id(where(row), "a missing entry")
    kind = next((word for types, word in _KINDS if isinstance(key, types)), None)
    if kind is None:
        raise _invalid_id(where(row), f"a value of type {type(key).__name__}")
    return "times with a time zone" if kind == TIMES and key.tzinfo is not None else kind


def _is_missing(key: Any) -> bool:
    if isinstance(key, str | bytes):
        return not key or key.isspace()
    # None, NaN, and the missing values of pandas.
    return (
        key is None
        or type(key).__name__ == "NAType"
        or (isinstance(key, float | np.floating | datetime | Decimal) and key != key)
    )


def _plain(key: Any, kind: str | None, where: Callable[[int], str], row: int) -> Any:
    """Return an id as a built-in Python type, not a subclass with its own equality or hash."""
    if kind == NUMBERS and isinstance(key, float | np.floating):
        return int(_checked_array(np.asarray(key)[None], lambda _: where(row))[1][0])
    if kind == TEXTS:
        return str.__str__(key)
    return int(key) if kind == NUMBERS else bytes(key) if kind == BYTES else key


def _invalid_id(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what} does not identify a person; use a text or a whole number")
