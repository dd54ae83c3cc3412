"""Several rows of one person: at most so many of them enter a fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.people import number_groups


def person_numbers(groups: Any, n_rows: int) -> NDArray[np.int64]:
    """Return a number for each row, equal for the rows of one person.

    `groups`, shape (N,): which person each row belongs to; texts, whole numbers or other values of
    one kind.

    Raises DataError if there is not one entry for each row, one is missing, or two people could not
    be told apart.
    """
    return number_groups([("groups", groups, n_rows)])


def rows_within_limit(person: NDArray[np.int64], rows_per_person: int) -> NDArray[np.bool_]:
    """Choose the rows that enter: of each person, the first `rows_per_person`.

    Which rows of a person enter depends on that person's rows alone.

    `person`, shape (N,): a number for each row, as of `person_numbers`.
    `rows_per_person`: the limit.

    Returns shape (N,).
    """
    n_rows = person.size
    order = np.argsort(person, kind="stable")
    ordered = person[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    place = np.arange(n_rows) - np.repeat(first, np.diff(np.append(first, n_rows)))
    within = np.zeros(n_rows, dtype=bool)
    within[order] = place < rows_per_person
    return within
