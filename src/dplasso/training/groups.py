"""Several rows of one person: at most so many of them enter a fit."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.data.store import Store
from dplasso.errors import DataError
from dplasso.training.inputs import Inputs


def limit_rows(inputs: Inputs, groups: ArrayLike, rows_per_person: int) -> Inputs:
    """Leave out of the records all but the first rows of each person.

    `inputs`: the records. Those of a store stay where they are, and are noted.
    `groups`, shape (N,): whose row each is.
    `rows_per_person`: the limit.

    Raises DataError if there is not one group for each row.
    """
    within = rows_within_limit(groups, inputs.y.size, rows_per_person)
    if isinstance(inputs.X, Store):
        return replace(inputs, within=within)
    weights = None if inputs.weights is None else inputs.weights[within]
    return replace(inputs, X=inputs.X[within], y=inputs.y[within], weights=weights)


def rows_within_limit(groups: ArrayLike, n_rows: int, rows_per_person: int) -> NDArray[np.bool_]:
    """Choose the rows that enter: of each person, the first `rows_per_person`.

    Which rows of a person enter depends on that person's rows alone.

    `groups`, shape (N,): whose row each is; any values that can be compared for equality.
    `rows_per_person`: the limit.

    Returns shape (N,).

    Raises DataError if there is not one entry for each row, or one is missing.
    """
    _, number = np.unique(checked_groups(groups, n_rows), return_inverse=True)
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    place = np.arange(n_rows) - np.repeat(first, np.diff(np.append(first, n_rows)))
    within = np.zeros(n_rows, dtype=bool)
    within[order] = place < rows_per_person
    return within


def checked_groups(groups: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Return groups as an array; the parameters and what is raised as of `rows_within_limit`."""
    people: NDArray[Any] = np.asarray(groups)
    if people.shape != (n_rows,):
        raise DataError(
            f"groups has the shape {people.shape}; one entry for each of {n_rows:,} rows is needed"
        )
    # A missing name equals nothing, not even itself: sorted among others it would cut a person in
    # two. And a list of numbers and texts would make one person of 1 and "1".
    kinds = set(map(type, groups)) if isinstance(groups, list | tuple) else set()
    if (people != people).any() or (people.dtype.kind in "SU" and len(kinds) > 1):
        raise DataError("groups has missing entries or both numbers and texts; name every person")
    return people
