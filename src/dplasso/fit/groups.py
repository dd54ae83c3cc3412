"""Several rows of one person: at most so many of them enter a fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.people import number_groups


def person_numbers(groups: Any, n_rows: int) -> NDArray[np.int64]:
    """Return a number for each row, equal for the rows of one person; see `number_groups`."""
    return number_groups([("groups", groups, n_rows)])


def rows_within_limit(person: NDArray[np.int64], rows_per_person: int) -> NDArray[np.bool_]:
    """Choose the rows that enter: of each person, the first `rows_per_person`.

    Which rows of a person enter depends on that person's rows alone.
    """
    n_rows = person.size
    order = np.argsort(person, kind="stable")
    ordered = person[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    place = np.arange(n_rows) - np.repeat(first, np.diff(np.append(first, n_rows)))
    within = np.zeros(n_rows, dtype=bool)
    within[order] = place < rows_per_person
    return within
