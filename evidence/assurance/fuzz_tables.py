"""Fuzz targets for tables (Parquet, Arrow), texts (CSV, JSON lines) and budget ledgers.

Each is compared with what another program reads: pyarrow and Python's own `csv` and `json` for
data, and for a ledger the sums it was made with.
"""

import csv
import io
import json
import random
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from dplasso.data.table_batches import DETECTED, Dialect, sniffed, with_points
from dplasso.encoding.data_files import encode_files
from dplasso.encoding.hashed import Hashed, Text
from dplasso.encoding.levels import Levels
from dplasso.encoding.parts import Bins, Categories, Cross, Date, Number
from dplasso.encoding.schema import ReleasedEdges, Schema, read_schema, schema_from_json
from dplasso.errors import DataError, LedgerError
from dplasso.privacy.budget import Draws, build_budget
from dplasso.privacy.statement import make_statement
from evidence.assurance import fuzz_mutations as corrupt

_MEMORY = 1 << 20
_NUMBERS = (0.5, -2.0, 0.25, 1.0, 3.0)
_WORDS = ("good", "bad", None, "good", "très beau")


class Misread(Exception):  # noqa: N818
    """An input was taken for something it is not, or refused without saying why."""


def refused(error: Exception, path: Path) -> str:
    """Return "refused" if an error is one sentence that names the file."""
    text = str(error)
    if "\n" in text or not text or path.name not in text:
        raise Misread(f"refused with {text!r}")
    return "refused"


def _named(data: bytes) -> tuple[str, bytes]:
    """Split an input into the file's suffix and its bytes."""
    suffix, bar, rest = data.partition(b"|")
    name = suffix.decode(errors="replace")
    return (name, rest) if bar else ("", data)


def corrupt_named(data: bytes, rng: random.Random) -> bytes:
    """Corrupt the bytes behind the suffix."""
    name, rest = _named(data)
    change = corrupt.corrupt_text if name in (".csv", ".tsv", ".jsonl") else corrupt.corrupt_bytes
    return name.encode() + b"|" + change(rest, rng)


# --- tables ------------------------------------------------------------------------------


@cache
def table_seeds() -> list[bytes]:
    """Return one table in both formats, compressed or not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "y": pa.array([1, -1, 1, 1, -1], pa.int8()),
            "x": pa.array(_NUMBERS),
            "c": pa.array(_WORDS),
        }
    )
    seeds = []
    for compression in ("none", "zstd"):
        sink = pa.BufferOutputStream()
        # With checksums of the pages, damage to their bytes can be told.
        pq.write_table(table, sink, compression=compression, write_page_checksum=True)
        seeds.append(b".parquet|" + sink.getvalue().to_pybytes())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    seeds.append(b".arrow|" + sink.getvalue().to_pybytes())
    return seeds


def check_table(data: bytes, folder: Path) -> str:
    """Read a table; compare labels and numbers with pyarrow's own reading."""
    suffix, rest = _named(data)
    path = folder / f"input{suffix if suffix in ('.parquet', '.arrow') else '.parquet'}"
    path.write_bytes(rest)
    schema = Schema((Bins("x", (0,), "error"), Hashed(("c",), 6)), label="y")
    try:
        blocks = list(encode_files(path, schema).blocks(_MEMORY, None))
    except DataError as error:
        return refused(error, path)
    rows = _plain_table(path)
    labels = [label for block in blocks for label in block.labels.tolist()]
    if labels != [row["y"] for row in rows]:
        raise Misread("pyarrow alone reads other labels")
    bins = [indices.tolist()[0] for block in blocks for indices, _ in _rows_of(block)]
    if bins != [int(row["x"] >= 0) for row in rows]:
        raise Misread("pyarrow alone reads other numbers")
    return "accepted"


def _plain_table(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return pq.read_table(path, page_checksum_verification=True).to_pylist()
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all().to_pylist()


def _rows_of(block: Any) -> list[tuple[Any, Any]]:
    edges = block.indptr.tolist()
    return [
        (block.indices[first:last], block.values[first:last]) for first, last in pairwise(edges)
    ]


# --- schemas -----------------------------------------------------------------------------


def schema_seeds() -> list[bytes]:
    """Return a schema with parts of every kind, and one with edges by rule."""
    parts = (
        Categories("sex", ("F", "M")),
        Bins("age", (18, 65)),
        Date("born", "year", (1950, 2000)),
        Date("seen", "weekday", (), "%d.%m.%Y"),
        Number("bmi", 60, 20),
        Hashed(("ward",), 5, words=("A", "B")),
        Text("note", 5),
        Cross(("sex", "age"), 6),
    )
    levels = {"low": -100, "high": 100, "levels": [4], "spacing": "signed-log"}
    rule = {"parts": [{"kind": "levels", "column": "age", **levels}]}
    budget = build_budget(Draws(gaussian=1.0), epsilon=0.2, delta=1e-6, n_iter=1)
    statement = make_statement(budget, [], seeded=False, classes_declared=True, about="edges")
    released = ReleasedEdges(("age",), "0f" * 32, statement)
    marks = ("", "the range", *[""] * (len(parts) - 2))
    draft = Schema(parts, "y", "a draft", marks, released)
    return [json.dumps(document).encode() for document in (draft.to_json(), rule)]


def check_schema(data: bytes, folder: Path) -> str:
    """Read a schema; what is accepted is read back from its own JSON and encodes a table."""
    import numpy as np
    import pyarrow as pa

    from dplasso.encoding.schema import encode

    path = folder / "schema.json"
    path.write_bytes(data)
    try:
        schema = read_schema(path)
    except ValueError as error:
        return refused(error, path)
    if schema_from_json(schema.to_json()) != schema:
        raise Misread("it is read back as another")
    if schema.n_features > 1 << 20 or any(len(part.words) > 99 for part in schema.parts
                                          if isinstance(part, Hashed | Text)):  # fmt: skip
        return "accepted"
    table = {name: pa.array(["1", None, "F"]) for name in schema.columns}
    numbers = [part.column for part in schema.parts if isinstance(part, Bins | Levels | Number)]
    table |= {name: pa.array(["1", None, "2"]) for name in numbers}
    dates = [part for part in schema.parts if isinstance(part, Date)]
    days = date(2024, 2, 29), date(1970, 1, 1)
    for part in dates:
        first, last = (day.strftime(part.format) for day in days)
        table[part.column] = pa.array([first, None, last])
    try:
        rows = encode(schema, table, lambda column, row: f"{path} {column} {row}")
    except DataError as error:
        return refused(error, path)
    if rows.indices.size and not 0 <= rows.indices.min() <= rows.indices.max() < schema.n_features:
        raise Misread("a column is out of range")
    same_row = np.repeat(np.arange(3), np.diff(rows.indptr))
    if not np.all((np.diff(rows.indices) > 0) | (np.diff(same_row) > 0)):
        raise Misread("columns do not ascend")
    return "accepted"


# --- texts -------------------------------------------------------------------------------


def text_seeds() -> list[bytes]:
    """Return small files of texts in each of the formats."""
    lines = [("1", 'The film was good, "very" good'), ("0", "bad\nfilm"), ("1", "")]
    seeds = []
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t"), (".csv", ";")):
        sink = io.StringIO(newline="")
        writer = csv.writer(sink, delimiter=delimiter)
        writer.writerow(["id", "body", "y"])
        writer.writerows((k, text, label) for k, (label, text) in enumerate(lines))
        seeds.append(suffix.encode() + b"|" + sink.getvalue().encode())
    whole = "".join(json.dumps({"y": int(y), "body": text}) + "\n" for y, text in lines)
    seeds.append(b".jsonl|" + whole.encode())
    return seeds


def check_text(data: bytes, folder: Path) -> str:
    """Read texts; compare the number of records and their labels with Python's own parsers."""
    suffix, rest = _named(data)
    suffix = suffix if suffix in (".csv", ".tsv", ".jsonl") else ".csv"
    path = folder / f"input{suffix}"
    path.write_bytes(rest)
    source = encode_files(path, Schema((Text("body", 8, missing="ignore"),), "y"))
    try:
        blocks = list(source.blocks(_MEMORY, None))
    except DataError as error:
        return refused(error, path)
    labels = [str(label) for block in blocks for label in block.labels.tolist()]
    expected = [str(label) for label in _plain_labels(rest, suffix, sniffed(path, DETECTED))]
    if not (labels == expected or _numbers(labels) == _numbers(expected)):
        raise Misread(f"it has the labels {expected[:5]}, read were {labels[:5]}")
    for block in blocks:
        if (
            block.indices.size
            and not 0 <= int(block.indices.min()) <= int(block.indices.max()) < 256
        ):
            raise Misread("a column is out of range")
    return "accepted"


def _plain_labels(data: bytes, suffix: str, dialect: Dialect) -> list[Any]:
    """Return the labels that Python's own parsers find, in the dialect that the header shows."""
    encoding = str(dialect.encoding)
    text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    if suffix == ".jsonl":
        return [json.loads(line)["y"] for line in text.split("\n") if line.strip()]
    form = {"delimiter": str(dialect.delimiter), "quotechar": '"'}
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), **form) if row]
    labels = [row[rows[0].index("y")] for row in rows[1:]]
    return with_points(labels, ",", DETECTED) if dialect.decimal == "," else labels


def _numbers(labels: list[str]) -> list[float] | None:
    try:
        return [float(label) for label in labels]
    except ValueError:
        return None


# --- ledgers -----------------------------------------------------------------------------


@cache
def ledger_seeds() -> list[bytes]:
    """Return two ledgers as the bytes of their files: one new, one with charges of all states."""
    import tempfile

    from dplasso.ledger import add_dataset, charge_of, create_ledger, finish, reserve

    draws = Draws(vertices=10)
    charge = charge_of(build_budget(draws, epsilon=0.5, delta=1e-6, n_iter=10))
    seeds = []
    for charges in (0, 3):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "seed.ledger"
            create_ledger(path, 3.0, 1e-5, dataset="visits")
            if charges:
                add_dataset(path, "referrals", 1.0, 1e-5, rows_per_person=5)
            for k in range(charges):
                made = reserve(path, "visits", charge)
                if k:
                    finish(made, failed=k == 1)
            seeds.append(path.read_bytes())
    return seeds


def check_ledger(data: bytes, folder: Path) -> str:
    """Open and read a ledger; what it says was spent must be what some seed spent."""
    from dplasso.ledger import read_budgets

    path = folder / "input.ledger"
    path.write_bytes(data)
    try:
        budgets = read_budgets(path)
    except LedgerError as error:
        return refused(error, path)
    told = _told(budgets)
    if told not in _known_ledgers():
        raise Misread(f"a damaged ledger says {told}")
    return "accepted"


def _told(budgets: Any) -> Any:
    return [
        (
            *(budget.epsilon, budget.delta, budget.neighbors, budget.rows_per_person),
            *(budget.rho, budget.draw_delta),
        )
        for budget in budgets
    ]


@cache
def _known_ledgers() -> list[Any]:
    import tempfile

    from dplasso.ledger import read_budgets

    known = []
    for seed in ledger_seeds():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "whole.ledger"
            path.write_bytes(seed)
            known.append(_told(read_budgets(path)))
    return known
