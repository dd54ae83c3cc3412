"""Divide the records into a part for fitting tries and a part for scoring them.

The part is drawn separately for each record, or for each person. The parts of a store are temporary
stores beside it, so neither the records nor a part has to fit in memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.source_files import Progress
from dplasso.data.store import Store, check_entries, write_store
from dplasso.errors import DataError, ParameterError
from dplasso.fit.records import LocalRecords, person_numbers, rows_within_limit
from dplasso.matrix.compressed import checked
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


@contextmanager
def divided(
    inputs: LocalRecords, rows: NDArray[np.intp], held: NDArray[np.bool_]
) -> Iterator[tuple[LocalRecords, LocalRecords]]:
    """Divide rows into those for fitting and those `held` out, for the time of a block."""
    if not isinstance(inputs.X, Store):
        fitted, scored = rows[~held], rows[held]
        X = checked(inputs.X)
        yield (
            replace(inputs, X=X[fitted], y=inputs.y[fitted]),
            replace(inputs, X=X[scored], y=inputs.y[scored]),
        )
        return
    store = inputs.X
    check_entries(store)
    with TemporaryDirectory(prefix=f"{store.path.name}.search-", dir=store.path.parent) as folder:
        fitted_on, scored_on = (
            replace(inputs, X=_write_part(store, part, Path(folder) / name), y=inputs.y[part])
            for name, part in (("fitted", rows[~held]), ("scored", rows[held]))
        )
        yield fitted_on, scored_on


def _write_part(store: Store, rows: NDArray[np.intp], place: Path) -> Store:
    """Write some rows of a store, in ascending order, to a new store."""

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        done = 0
        for chosen in _cut(store, rows, memory_bytes):
            yield _gather(store, chosen)
            done += chosen.size
            if progress is not None:
                progress(done, rows.size)

    source = BlockSource(str(store.path), store.shape[1], blocks, rows.size)
    return write_store(source, place, origin=store.header.origin)


def _cut(store: Store, rows: NDArray[np.intp], memory_bytes: int) -> Iterator[NDArray[np.intp]]:
    """Cut rows into pieces of at least one row, whose arrays use about `memory_bytes`."""
    # An entry needs memory for its column, its value, and twice its place in the store.
    most = max(1, memory_bytes // 40)
    first = 0
    while first < rows.size:
        some = rows[first : first + most]
        ends = np.cumsum(store.rows.indptr[some + 1] - store.rows.indptr[some])
        count = max(1, int(np.searchsorted(ends, most, side="right")))
        yield some[:count]
        first += count


def _gather(store: Store, rows: NDArray[np.intp]) -> RowBlock:
    """Read some rows of a store."""
    of = store.rows
    begins, counts = of.indptr[rows], of.indptr[rows + 1] - of.indptr[rows]
    starts = np.concatenate(([0], np.cumsum(counts)))
    places = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], counts)
    values = (
        of.values[places]
        if of.values.size
        else np.full(places.size, of.constant, store.header.value_dtype)
    )
    return RowBlock(starts, of.indices[places], values, store.y[rows])
