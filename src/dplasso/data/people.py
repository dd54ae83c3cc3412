"""Whose row each is: names of people, kept as hashes.

A name becomes the first 128 bits of its BLAKE2b, which no two people of a data set share but with a
probability below 2^-60, however their names were chosen. So nothing but the rows' hashes is in
memory, and no list of names is kept. It hides names from nobody who can guess them: the hashes
belong with the data.
"""

import math
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.errors import DataError

# Numbers of 64 bits that a name becomes.
WORDS = 2


def hash_people(people: Sequence[Any], where: Callable[[int], str]) -> NDArray[np.int64]:
    """Hash the names of the people whose rows these are.

    `people`: a text or a whole number each; 7, 7.0 and "7" name the same person.
    `where`: words the place of a row, from 0, for messages.

    Returns shape (2 n,): two numbers for each row.

    Raises DataError if a name is missing or of another kind.
    """
    hashes = []
    for row, person in enumerate(people):
        name = _name(person)
        if not name:
            raise DataError(
                f"{where(row)}: this names nobody; every row needs a person's name or "
                "number: give those without one a new one each"
            )
        hashes.append(
            blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8 * WORDS).digest()
        )
    return np.frombuffer(b"".join(hashes), "<i8").astype(np.int64)


def number_people(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row, equal for the rows of one person.

    `hashes`, shape (2 N,): as of `hash_people`.

    Returns shape (N,).
    """
    _, first = np.unique(hashes[::WORDS], return_inverse=True)
    words, second = np.unique(hashes[1::WORDS], return_inverse=True)
    numbers: NDArray[np.int64] = first.astype(np.int64) * words.size + second
    return numbers


def _name(person: Any) -> str | None:
    if isinstance(person, str):
        return person.strip()
    if isinstance(person, bool) or not isinstance(person, int | float):
        return None
    if isinstance(person, float):
        return str(int(person)) if math.isfinite(person) and person.is_integer() else None
    return str(person)
