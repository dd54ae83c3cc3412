"""Which rows belong to one person: the one place that decides it.

Two rows are one person's if what names them is equal as Python values of one kind: texts, whole
numbers, bytes, truth values, dates, times, decimal numbers or UUIDs. Whatever conversion could
make one of two people, or two of one, is refused: kinds that are mixed, and floating-point numbers
that stand for several whole ones.

A table's names become the first 128 bits of their BLAKE2b, which no two people of a data set share
but with a probability below 2^-60, however their names were chosen. So nothing but the rows'
hashes is in memory, and no list of names is kept. It hides names from nobody who can guess them:
the hashes belong with the data.
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

# Number of 64-bit words of a name's hash.
WORDS = 2
TEXTS, NUMBERS, BYTES, TIMES = "texts", "whole numbers", "bytes", "times"
# Of several that fit, the first: a bool is an int, a datetime a date.
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
    """Return a number for each row of all parts, equal for the rows of one person.

    A part is what to call it in messages, who its people are, and its number of rows.
    """
    kind, named = None, []
    for name, people, n_rows in parts:
        given = _given(people)
        shape = (len(given),) if isinstance(given, list) else given.shape
        if shape != (n_rows,):
            raise DataError(
                f"{name} has the shape {shape}; one entry for each of {n_rows:,} rows is needed"
            )
        kind, values = _named(given, partial(_row_of, name), kind)
        named.append(values)
    arrays = [values for values in named if isinstance(values, np.ndarray)]
    # Signed and unsigned numbers of 64 bits have no common type but the floats, which merge some.
    if arrays and len(arrays) == len(named) and np.result_type(*arrays).kind in "biu":
        found = np.unique(np.concatenate(arrays), return_inverse=True)[1]
        return found.astype(np.int64)
    numbers: dict[Any, int] = {}
    every = (numbers.setdefault(one, len(numbers)) for values in named for one in _exact(values))
    return np.fromiter(every, dtype=np.int64)


def hash_people(
    people: Any, where: Callable[[int], str], kind: str | None = None
) -> tuple[NDArray[np.int64], str | None]:
    """Return two numbers a row, the hash of its person's name, and the kind of the names."""
    kind, names = _named(_given(people), where, kind)
    if kind not in (None, TEXTS, NUMBERS):
        raise _nobody(where(0), f"what is none of the two ({kind})")
    hashes = (
        blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8 * WORDS).digest()
        for name in _exact(names)
    )
    return np.frombuffer(b"".join(hashes), "<i8").astype(np.int64), kind


def number_people(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row from `hash_people`'s two, equal for the rows of one person."""
    _, first = np.unique(hashes[::WORDS], return_inverse=True)
    words, second = np.unique(hashes[1::WORDS], return_inverse=True)
    numbers: NDArray[np.int64] = first.astype(np.int64) * words.size + second
    return numbers


def _given(people: Any) -> NDArray[Any] | list[Any]:
    """Return an array of numbers or times, or else a list of Python values, exactly as given."""
    if isinstance(people, list | tuple):
        return list(people)
    if np.ma.is_masked(people):
        return list(people.tolist())
    given = np.asarray(people)
    if given.ndim != 1 or given.dtype.kind in "biufMm":
        return given
    # numpy cuts zeros off the ends of texts, and makes floats of what has gaps.
    methods = (getattr(people, name, None) for name in ("to_pylist", "to_list", "tolist"))
    return list(next(filter(None, methods), given.tolist)())


def _row_of(name: str, row: int) -> str:
    return f"{name}, row {row + 1:,}"


def _exact(values: NDArray[Any] | list[Any]) -> list[Any]:
    return values if isinstance(values, list) else values.tolist()


def _named(
    given: NDArray[Any] | list[Any], where: Callable[[int], str], before: str | None
) -> tuple[str | None, NDArray[Any] | list[Any]]:
    """Return the kind of names, that of those before, and values that are equal where they are."""
    types = set(map(type, given)) if isinstance(given, list) else set()
    values: NDArray[Any] | list[Any] = given
    kinds: list[str] = []
    # What most lists hold, without a look at each name.
    if types == {int}:
        kinds = [NUMBERS]
    elif types == {str} and all(map(str.strip, given)):
        kinds = [TEXTS]
    elif types == {float} or isinstance(given, np.ndarray):
        kind, values = _named_array(np.asarray(given), where)
        kinds = [kind] if len(given) else []
    alike = bool(kinds)
    for row, kind in enumerate(kinds or (_kind_of(one, where, k) for k, one in enumerate(given))):
        if before is not None and kind != before:
            raise DataError(
                f"{where(row)}: {kind} where there were {before} before: rows of one person "
                "do not match; use one type of id throughout"
            )
        before = kind
    if not alike:
        values = [_plain(one, before, where, row) for row, one in enumerate(given)]
    return before, values


def _named_array(given: NDArray[Any], where: Callable[[int], str]) -> tuple[str, NDArray[Any]]:
    kind = given.dtype.kind
    if kind in "fMm":
        missing = np.isnan(given) if kind == "f" else np.isnat(given)
        if missing.any():
            raise _nobody(where(int(missing.argmax())), "a missing entry")
    if kind in "Mm":
        # Another unit is another kind: turning one into the other can merge two.
        native = given.astype(given.dtype.newbyteorder("="))
        return str(native.dtype), native.view(np.int64)
    if kind == "f":
        # From here on one floating-point number stands for several whole ones.
        several = 2.0 ** min(63, np.finfo(given.dtype).nmant + 1)
        whole = (np.abs(given) < several) & (given == np.rint(given))
        if not whole.all():
            raise _nobody(
                where(int(whole.argmin())),
                "a floating-point number with a fraction, or so large that it stands for several "
                "whole numbers,",
            )
        given = given.astype(np.int64)
    return ("truth values" if kind == "b" else NUMBERS), given


def _kind_of(one: Any, where: Callable[[int], str], row: int) -> str:
    if _is_missing(one):
        raise _nobody(where(row), "a missing entry")
    kind = next((word for types, word in _KINDS if isinstance(one, types)), None)
    if kind is None:
        raise _nobody(where(row), f"a value of type {type(one).__name__}")
    return "times with a time zone" if kind == TIMES and one.tzinfo is not None else kind


def _is_missing(one: Any) -> bool:
    if isinstance(one, str | bytes):
        return not one or one.isspace()
    # None, NaN, and what pandas has for them.
    return (
        one is None
        or type(one).__name__ == "NAType"
        or (isinstance(one, float | np.floating | datetime | Decimal) and one != one)
    )


def _plain(one: Any, kind: str | None, where: Callable[[int], str], row: int) -> Any:
    """Return a name as Python's own type, whose equality and hash are known."""
    if kind == NUMBERS and isinstance(one, float | np.floating):
        return int(_named_array(np.asarray(one)[None], lambda _: where(row))[1][0])
    if kind == TEXTS:
        return str.__str__(one)
    return int(one) if kind == NUMBERS else bytes(one) if kind == BYTES else one


def _nobody(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what} does not identify a person; use a text or a whole number")
