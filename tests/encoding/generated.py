"""Schemas and tables made by Hypothesis, and the same table as a data frame and as files."""

import csv
import gzip
import io
import json

import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

from data.row_blocks import write_table
from schemas import Bins, Categories, Cross, Date, Hashed, Levels, Number, Pairs, Schema, Text

WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
WHOLE = st.integers(-1000, 1000)
REAL = st.floats(-1e6, 1e6)
MISSING = st.sampled_from(["column", "ignore"])
# Parts that a cross can take.
CODED = ("categories", "bins", "levels", "date", "hashed")

# Each kind of column with the values that it holds.
VALUES = {
    "words": st.sampled_from(["Rome", "Oslo", 'a "b", c', "é\n", " x"]) | WORD,
    "whole": WHOLE,
    "real": REAL,
    "bool": st.booleans(),
    "day": st.dates().map(str),
    "text": st.lists(st.sampled_from(["good", "bad", "très", "film,", "the"]), max_size=6).map(
        " ".join
    ),
}


@st.composite
def parts(draw, name, kind):
    """Draw a part that takes a column of this kind."""
    missing = draw(MISSING)
    # Fields of CSV are hashed as they stand, where a data frame has 1.0 or True.
    ways = {"real": [], "bool": ["categories"]}.get(kind, ["categories", "hashed"])
    if kind in ("whole", "real", "bool"):
        ways += ["bins", "number", "levels"]
    if kind in ("words", "text"):
        ways += ["text"]
    if kind == "day":
        ways += ["date"]
    way = draw(st.sampled_from(ways))
    if way == "categories":
        declared = VALUES[kind].filter(lambda value: str(value).strip() != "")
        alike = {"unique_by": lambda value: value.strip() if kind == "words" else value}
        found = draw(st.lists(declared, min_size=1, max_size=5, **alike))
        return Categories(name, found, draw(MISSING), missing)
    if way == "hashed":
        return Hashed((name,), draw(st.integers(1, 5)), missing)
    if way == "bins":
        edges = draw(st.lists(REAL | WHOLE, min_size=1, max_size=5, unique_by=float))
        return Bins(name, sorted(edges), missing)
    if way == "levels":
        low, sizes = draw(REAL), draw(st.sampled_from([(4,), (2, 6), (4, 16, 64)]))
        spacing = draw(st.sampled_from(["equal", "signed-log"]))
        return Levels(name, low, low + draw(st.floats(1, 1e6)), sizes, spacing, missing)
    if way == "date":
        take = draw(st.sampled_from(["year", "month", "weekday"]))
        edges = draw(st.lists(st.integers(-3000, 3000), min_size=1, max_size=4, unique=True))
        known = {"edges": sorted(edges)} if take == "year" else {}
        return Date(name, take, missing=missing, **known)
    if way == "number":
        return Number(name, draw(st.floats(1e-3, 1e6)), draw(WHOLE), missing)
    ngrams = draw(st.sampled_from([(1, 1), (1, 2), (2, 3)]))
    return Text(name, draw(st.integers(1, 10)), ngrams, draw(st.booleans()), True, missing)


@st.composite
def tables(draw):
    """Draw a schema and a table of columns as lists, None for missing."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    n_rows = draw(st.integers(2, 12))
    columns = {}
    chosen = []
    for i, kind in enumerate(kinds):
        name = f"{kind}{i}"
        columns[name] = draw(st.lists(st.none() | VALUES[kind], min_size=n_rows, max_size=n_rows))
        chosen.append(draw(parts(name, kind)))
    kinds = [Schema((part,)).to_json()["parts"][0]["kind"] for part in chosen]
    found = zip(chosen, kinds, strict=True)
    coded = [part.columns[0] for part, kind in found if kind in CODED]
    paired = len(coded) >= 2 and draw(st.booleans())
    if len(coded) >= 2:
        crossed = draw(st.lists(st.sampled_from(coded), min_size=2, max_size=3, unique=True))
        chosen.append(Cross(crossed, draw(st.none() | st.integers(1, 10))))
    if paired:
        chosen.append(Pairs())
    label = st.sampled_from(["no", "yes"])
    labels = ["no", "yes", *draw(st.lists(label, min_size=n_rows - 2, max_size=n_rows - 2))]
    missing = draw(st.sampled_from([(), ("Rome", "5")]))
    return Schema(chosen, "label", missing=missing), columns | {"label": labels}


ARROW = {"words": pa.string(), "whole": pa.int64(), "real": pa.float64(), "bool": pa.bool_(),
         "text": pa.string(), "day": pa.string(), "label": pa.string()}  # fmt: skip


def arrow(columns):
    kinds = {name: ARROW[name.rstrip("0123456789")] for name in columns}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def frame(columns):
    """Return the table as pandas has it: NaN and None for what is missing."""

    def kind(name, values):
        if name.startswith("real"):
            return "float64"
        return None if name.startswith(("whole", "bool")) and None not in values else object

    series = {name: pd.Series(held, dtype=kind(name, held)) for name, held in columns.items()}
    return pd.DataFrame(series)


def write(path, columns):
    """Write columns, lists or a pyarrow.Table, in the kind of file that the name says."""
    kind = path.suffixes[0]
    if kind in (".parquet", ".arrow"):
        return write_table(path, columns if isinstance(columns, pa.Table) else arrow(columns))
    lists = columns.to_pydict() if isinstance(columns, pa.Table) else columns
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    text = io.StringIO(newline="")
    if kind == ".jsonl":
        text.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(text, list(lists), delimiter="\t" if kind == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
