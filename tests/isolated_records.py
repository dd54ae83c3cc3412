"""Random records, one of which must not count, in every form a fit accepts.

A trial makes named choices, each by the number of the trial and the name alone: another value of
one leaves all others as they were, so that a failing trial can be made simpler choice by choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pandas as pd
import scipy.sparse as sp
from evidence.assurance.hostile import FLOATS, SINGLES
from numpy.typing import NDArray

from dplasso import PublicEncoder, write_store
from dplasso.encoding.data_files import read_records
from encoding.generated import arrow, write
from isolated_units import in_units, units_of_columns
from schemas import Bins, Categories, Cross, Date, Hashed, Number, Pairs, Schema, Text

N_COLUMNS = 12
# Rows of more entries than these are sorted by an algorithm that may exchange equal columns.
MOST_ENTRIES = 40
# Stored one after another, they add up to another number in any other order.
CANCELLING = (1.0, -1e30, 1e30, -1.0, 1.0, 3.3, 2.0**-60)


@dataclass
class Choices:
    """What a trial is: its number, and for each name which of several values is taken.

    `free`: the names whose value is drawn, where all others have their first, which is the
    simplest; None draws all.
    `made`: the values that were taken, of which more than one was to be had.
    """

    number: int
    free: frozenset[str] | None = None
    made: dict[str, Any] = field(default_factory=dict)

    def rng(self, name: str) -> np.random.Generator:
        """Return random numbers that belong to a name."""
        return np.random.default_rng([self.number, crc32(name.encode())])

    def pick(self, name: str, values: Sequence[Any]) -> Any:
        """Return one of some values; the first is the simplest, and one may stand twice."""
        drawn = self.free is None or name in self.free
        taken = values[int(self.rng(name).integers(len(values))) if drawn else 0]
        if any(value is not values[0] for value in values):
            self.made[name] = taken
        return taken


Entries = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Records:
    """Rows as they are stored, entry by entry, or a table, and what goes with them.

    `rows`: columns and entries, a column perhaps twice.
    `table`: by column the values of a table, in place of rows.
    `people`, `weights`: whose each row is, what it counts; None where all count.
    `dtype`, `index`: types of the matrix's entries and of its indices.
    `extra`: which row must not count; -1 for none.
    `parts`: where partitions begin, the first at 0.
    """

    rows: tuple[Entries, ...]
    y: NDArray[Any]
    dtype: Any = np.float64
    index: Any = np.int32
    people: tuple[Any, ...] | None = None
    weights: NDArray[Any] | None = None
    table: dict[str, list[Any]] | None = None
    extra: int = -1
    parts: tuple[int, ...] = (0,)

    def alone(self) -> "Records":
        """Return the row that must not count, by itself."""
        k = self.extra
        table = self.table and {name: [values[k]] for name, values in self.table.items()}
        own = {"rows": self.rows[k : k + 1], "y": self.y[k : k + 1], "table": table}
        return replace(self, **own, extra=-1)


# --- Rows ----------------------------------------------------------------------------------------

NUMBERS: dict[str, Callable[[np.random.Generator, int, Any], NDArray[np.float64]]] = {
    "normal": lambda rng, size, _: rng.normal(0.0, 1.2, size),
    "ones": lambda _rng, size, _: np.ones(size),
    "one number": lambda _rng, size, _: np.full(size, 0.7),
    "whole": lambda rng, size, _: rng.integers(-3, 4, size).astype(np.float64),
    "cancelling": lambda rng, size, _: rng.choice(CANCELLING, size),
    "huge": lambda rng, size, kind: rng.choice([1.0, -1.0], size) * float(np.finfo(kind).max),
    "denormal": lambda rng, size, kind: (
        rng.choice([3.0, -1.0], size) * float(np.finfo(kind).smallest_subnormal)
    ),
    "hostile": lambda rng, size, kind: rng.choice(SINGLES if kind == np.float32 else FLOATS, size),
}
BASE_NUMBERS = ("normal", "ones", "one number", "whole", "cancelling", "cancelling", "hostile")
OWN_NUMBERS = ("normal", "ones", "one number", "huge", "denormal", "hostile", "cancelling")
SINGLE_OR_DOUBLE = (np.float32, np.float64)
STORAGE = ("sorted", "empty", "full", "single", "unsorted", "twice", "unsorted and twice", "zeros")


def _columns(rng: np.random.Generator, storage: str) -> NDArray[np.int64]:
    """Return the columns of a row in the order in which they are stored."""
    if storage in ("empty", "single"):
        return rng.integers(0, N_COLUMNS, int(storage == "single"))
    if storage == "full":
        return np.arange(N_COLUMNS)
    if "twice" in storage:
        found = rng.integers(0, N_COLUMNS, rng.integers(2, MOST_ENTRIES))
        return found if "unsorted" in storage else np.sort(found)
    found = rng.permutation(N_COLUMNS)[: rng.integers(1, N_COLUMNS)]
    return found if storage == "unsorted" else np.sort(found)


def row(rng: np.random.Generator, storage: str, numbers: str, kind: Any) -> Entries:
    """Draw a row."""
    columns = _columns(rng, storage)
    values = NUMBERS[numbers](rng, columns.size, kind)
    if storage == "zeros":
        values = np.where(rng.random(columns.size) < 0.5, rng.choice([0.0, -0.0]), values)
    # Of single precision, numbers that it holds.
    return columns, np.asarray(values, dtype=kind).astype(np.float64)


def _types(numbers: str) -> tuple[Any, ...]:
    """Return the types of a matrix that hold such numbers, the simplest first."""
    floats = np.float64, np.float32, np.float32
    if numbers == "ones":
        return (*floats, np.int64, np.int8, np.bool_, np.float16)
    return (*floats, np.int64, np.int16) if numbers == "whole" else floats


# --- Tables --------------------------------------------------------------------------------------

WORDS = ("Rome", "Oslo", 'a "b", c', "é\n", " x", "1", "1.0")
TEXTS = ("good film, good", "bad", "très", "", "the the the")
SCHEMA = Schema(
    (
        Categories("words0", ("Rome", "Oslo", "1"), "column", "ignore"),
        Hashed(("words1",), 5, "column"),
        Bins("real0", (-1.0, 0.0, 0.5, 2.0)),
        Number("real1", 3.0, 0, "ignore"),
        Categories("whole0", (1, 2, 3), "ignore", "column"),
        Number("whole1", 100.0, -7, "ignore"),
        Text("text0", 6, (1, 2), True, True, "ignore"),
        Date("day0", "year", (1990, 2000, 2010), missing="ignore"),
        Cross(("words0", "real0"), 7),
        Pairs(),
    ),
    "label",
)
VALUES: dict[str, tuple[Any, ...]] = {
    "words": WORDS,
    "real": (0.5, -1.0, 0.25, 7.0, 1e-3),
    "whole": (1, 2, 3, -5),
    "text": TEXTS,
    "day": ("1999-12-31", "2004-02-29"),
}
HOSTILE: dict[str, tuple[Any, ...]] = {
    "words": (None, "x" * 300, "NaN", "Rome"),
    "real": (None, 1e308, 5e-324, -0.0, 1.0),
    "whole": (None, 2**53, -(2**53), 0),
    "text": (None, "word " * 50, "é"),
    "day": (None, "0001-01-01", "9999-12-31"),
}


def _table(rng: np.random.Generator, values: dict[str, tuple[Any, ...]], n_rows: int) -> Any:
    """Draw the columns of a table, each from the values of its kind."""
    names = dict.fromkeys(name for part in SCHEMA.parts for name in part.columns)
    among = {name: values[name.rstrip("0123456789")] for name in names}
    return {name: [a[k] for k in rng.integers(0, len(a), n_rows)] for name, a in among.items()}


# --- Data sets with and without the row ----------------------------------------------------------


def draw(choices: Choices, targets: Callable[..., Any], way: str, limit: int, forms: Any) -> Any:
    """Draw records, and the same with one that must not count; return both, and their form.

    `targets`: draws so many targets.
    `way`: why the record does not count: its "weight" is 0, its "person" has `limit` rows before;
    or nothing, if it is only that its contribution is to be its own.
    """
    form = choices.pick("form", forms)
    n_rows = choices.pick("rows", (8, 24, 24, 24, 70, 70, 300, 2900))
    kind = choices.pick("numbers", BASE_NUMBERS)
    dtype = choices.pick("dtype", _types(kind))
    single = np.float32 if dtype == np.float32 else np.float64
    storage = choices.pick("storage", ("sorted", "twice", "twice", "unsorted", "any", "any"))
    rng = choices.rng("rows of all")
    some = [
        row(rng, STORAGE[rng.integers(len(STORAGE))] if storage == "any" else storage, kind, single)
        for _ in range(min(n_rows, 60))
    ]
    units = np.ones(N_COLUMNS)
    if choices.pick("units", ("one", "one", "many")) == "many" and dtype in SINGLE_OR_DOUBLE:
        units = units_of_columns(choices.rng("units of columns"), N_COLUMNS)
    some = [in_units(entries, units, single) for entries in some]
    rows = tuple(some[k % len(some)] for k in range(n_rows))
    rng = choices.rng("targets")
    y, own_y = targets(rng, n_rows), targets(rng, 1)
    own, own_dtype = _own_row(choices, rows, dtype, units)
    place, people = _place(choices, n_rows, way, limit)
    weights = with_none = table = None
    if way == "weight":
        weights = _weights(choices, n_rows)
        none = choices.pick("own-weight", (0.0, -0.0))
        with_none = np.insert(weights.astype(np.float64), place, none)
    if form == "table":
        rng = choices.rng("table")
        table = _table(rng, VALUES, n_rows)
        extra = _table(rng, choices.pick("own-values", (VALUES, HOSTILE)), 1)
        with_one = {name: [*a[:place], *extra[name], *a[place:]] for name, a in table.items()}
    edges = _edges(choices, n_rows) if form in IN_PARTS else (0,)
    # The row may be a partition of its own.
    by_itself = form in IN_PARTS and choices.pick("by-itself", (False, False, True))
    moved = tuple(edge + (edge > place) for edge in edges)
    if by_itself:
        moved = tuple(sorted({*(e for e in moved if e != place + 1), 0, place, place + 1}))
        moved = tuple(edge for edge in moved if edge <= n_rows)
    one = Records(rows, y, dtype, np.int32, people, weights, table, parts=edges)
    other = replace(
        one,
        rows=(*rows[:place], own, *rows[place:]),
        y=np.concatenate([y[:place], own_y, y[place:]]),
        dtype=own_dtype,
        index=choices.pick("indices", (np.int32, np.int64)),
        people=people and (*people[:place], people[-1], *people[place:-1]),
        weights=with_none,
        table=None if table is None else with_one,
        extra=place,
        parts=moved,
    )
    return replace(one, people=people and people[:-1]), other, form


def _own_row(choices: Choices, rows: tuple[Entries, ...], dtype: Any, units: Any) -> Any:
    """Draw the row that must not count, and the type that a matrix with it has."""
    storage = choices.pick("own-storage", (*STORAGE, "as another's"))
    numbers = choices.pick("own-numbers", OWN_NUMBERS)
    kinds = (np.float64, np.float32) if dtype == np.float32 else (np.float64,)
    kind = choices.pick("own-dtype", kinds)
    rng = choices.rng("own row")
    if storage == "as another's":
        own = rows[rng.integers(len(rows))]
    else:
        own = in_units(row(rng, storage, numbers, kind), units, kind)
    with np.errstate(over="ignore", invalid="ignore"):
        holds = dtype != np.float16 and np.array_equal(own[1].astype(dtype), own[1])
    # Of all types that hold the row, that of the others or a wider one.
    wider = choices.pick("type-of-both", ("narrow", "wide"))
    return own, dtype if holds and wider == "narrow" else np.float64


def _place(choices: Choices, n_rows: int, way: str, limit: int) -> tuple[int, Any]:
    """Draw where the row stands, and whose every row is; the last person is the row's."""
    first, people = 0, None
    if way == "person":
        rng = choices.rng("people")
        names: Any = choices.pick("names", (range(6), ("a", "b", "Zoë", "1"), (2**63, 7, 2**53)))
        # The first has at least as many rows as may enter.
        several = rng.integers(0, len(names), n_rows - limit)
        people = tuple(names[k] for k in (*[0] * limit, *several))
        full = [name for name in names if people.count(name) >= limit]
        own = full[rng.integers(len(full))]
        first = [k for k, name in enumerate(people) if name == own][limit - 1] + 1
        people = (*people, own)
    ends = first, n_rows, min(first + 1, n_rows)
    at = int(choices.rng("anywhere").integers(first, n_rows + 1))
    return choices.pick("place", (*ends, at, at, at)), people


def _weights(choices: Choices, n_rows: int) -> NDArray[Any]:
    rng = choices.rng("weights")
    kind = choices.pick("weights", ("all", "whole", "parts", "some none"))
    if kind in ("all", "whole"):
        return np.ones(n_rows, dtype=np.int64 if kind == "whole" else np.float64)
    weights = rng.uniform(0.1, 1.0, n_rows)
    if kind == "some none":
        weights[rng.random(n_rows) < 0.3] = 0.0
        weights[0] = 0.5
    return weights


def _edges(choices: Choices, n_rows: int) -> tuple[int, ...]:
    rng, count = choices.rng("partitions"), choices.pick("partitions", (2, 1, 3))
    inner = rng.choice(np.arange(1, n_rows), count - 1, replace=False).tolist()
    return tuple(sorted({0, *inner}))


# --- Forms of a matrix ---------------------------------------------------------------------------


def matrix(records: Records) -> sp.csr_array:
    """Return the rows with every entry that is stored, in its order."""
    ends = np.cumsum([0, *(columns.size for columns, _ in records.rows)]).astype(records.index)
    columns = np.concatenate([columns for columns, _ in records.rows]).astype(records.index)
    values = np.concatenate([values for _, values in records.rows]).astype(records.dtype)
    return sp.csr_array((values, columns, ends), shape=(len(records.rows), N_COLUMNS))


def _triples(records: Records, *, last: bool) -> Any:
    """Return row, column and value of every entry; `last`: those of the extra row at the end."""
    X = matrix(records)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.argsort(rows == records.extra, kind="stable") if last else np.arange(rows.size)
    return rows[order], X.indices[order], X.data[order]


def _coo(records: Records) -> sp.coo_array:
    rows, columns, values = _triples(records, last=True)
    # scipy has no such matrix of half precision.
    values = values.astype(np.float32) if values.dtype == np.float16 else values
    return sp.coo_array((values, (rows, columns)), shape=(len(records.rows), N_COLUMNS))


def _csc(records: Records, *, last: bool) -> sp.csc_array:
    """Store every column's entries in the order of the rows, or the extra row's after the rest."""
    rows, columns, values = _triples(records, last=last)
    order = np.argsort(columns, kind="stable")
    ends = np.searchsorted(columns[order], np.arange(N_COLUMNS + 1)).astype(records.index)
    parts = values[order], rows[order].astype(records.index), ends
    return sp.csc_array(parts, shape=(len(records.rows), N_COLUMNS))


def _dense(records: Records) -> NDArray[Any]:
    """Return all numbers; of those that a row stores twice, the last."""
    X = np.zeros((len(records.rows), N_COLUMNS), dtype=records.dtype)
    for own, (columns, values) in zip(X, records.rows, strict=True):
        own[columns] = values
    return X


def store(records: Records, folder: Path, name: str = "records", *, people: bool = False) -> Any:
    """Write a store, in many blocks of few rows."""
    y, groups = records.y.reshape(len(records.y), -1)[:, 0], records.people if people else None
    with patch("dplasso.data.store.writer._SOURCE_BYTES", 2**9):
        return write_store(folder / name, matrix(records), y, groups=groups, force=True)


def parts_of(records: Records) -> list[Records]:
    """Return the partitions."""
    found = []
    for a, b in zip(records.parts, (*records.parts[1:], len(records.rows)), strict=True):
        weights = None if records.weights is None else records.weights[a:b]
        own = {"rows": records.rows[a:b], "y": records.y[a:b], "weights": weights}
        people = records.people and records.people[a:b]
        extra = records.extra - a if a <= records.extra < b else -1
        found.append(replace(records, **own, people=people, extra=extra, parts=(0,)))
    return found


def in_memory(records: Records, reader: str) -> Any:
    """Return a table as pandas or Arrow has it."""
    assert records.table is not None
    return pd.DataFrame(records.table) if reader == "pandas" else arrow(records.table)


def encoded(records: Records, folder: Path, choices: Choices) -> Any:
    """Encode a table that is in memory, or in a file."""
    assert records.table is not None
    reader = choices.pick("reader", ("arrow", "pandas", "csv", "jsonl", "parquet"))
    if reader in ("arrow", "pandas"):
        return PublicEncoder(SCHEMA).transform(in_memory(records, reader))
    labels = [f"class {label}" for label in range(len(records.y))]
    path = write(folder / f"t.{reader}", records.table | {"label": labels})
    return read_records(path, schema=SCHEMA).X


FORMS: dict[str, Callable[[Records, Path], Any]] = {
    "csr": lambda records, _: matrix(records),
    "csc": lambda records, _: _csc(records, last=False),
    "csc, row last": lambda records, _: _csc(records, last=True),
    "coo": lambda records, _: _coo(records),
    "dense": lambda records, _: _dense(records),
    "dense by columns": lambda records, _: np.asfortranarray(_dense(records)),
    "store": lambda records, folder: store(records, folder).X,
    "store of people": lambda records, folder: store(records, folder, people=True),
}
IN_PARTS = ("partitions", "stores")
