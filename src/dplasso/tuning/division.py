"""Divide the records into a part for fitting tries and a part for scoring them."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.data.store import Store, check_entries
from dplasso.errors import DataError, ParameterError
from dplasso.fit.records import LocalRecords, person_numbers, rows_within_limit
from dplasso.privacy.randomness import RandomStream, random_word


def entering_rows(
    inputs: LocalRecords, groups: ArrayLike | None, rows_per_person: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows within the limit, ascending, and the number of each row's person."""
    if groups is None and isinstance(inputs.X, Store):
        groups = inputs.X.people
    if groups is None:
        if rows_per_person > 1:
            raise ParameterError(
                "`rows_per_person` needs `groups`, or a store with people: a search must put all "
                "rows of a person in the same part"
            )
        rows = np.arange(len(inputs.y))
        return rows, rows
    person = person_numbers(groups, len(inputs.y))
    rows = np.flatnonzero(rows_within_limit(person, rows_per_person))
    return rows, person[rows]


def draw_held_out(
    person: NDArray[np.intp], share: float, stream: RandomStream
) -> NDArray[np.bool_]:
    """Draw the rows on which tries are scored, separately for each person."""
    # The assignment does not depend on the data, so an ordinary random generator is safe.
    drawn = np.random.default_rng(int(random_word(stream))).random(int(person.max()) + 1) < share
    held: NDArray[np.bool_] = drawn[person]
    if held.all() or not held.any():
        raise DataError(f"{person.size:,} rows are too few: none was left for fitting or scoring")
    return held


def divided(
    inputs: LocalRecords, rows: NDArray[np.intp], held: NDArray[np.bool_]
) -> tuple[LocalRecords, LocalRecords]:
    """Return the rows for fitting and those `held` out; of a store, which rows enter."""
    if isinstance(inputs.X, Store):
        check_entries(inputs.X)
    fitted_on, scored_on = (_part(inputs, part) for part in (rows[~held], rows[held]))
    return fitted_on, scored_on


def _part(inputs: LocalRecords, rows: NDArray[np.intp]) -> LocalRecords:
    if not isinstance(inputs.X, Store):
        return replace(inputs, X=inputs.X[rows], y=inputs.y[rows])
    within = np.zeros(len(inputs.y), dtype=np.bool_)
    within[rows] = True
    return replace(inputs, within=within, by_person=True)
