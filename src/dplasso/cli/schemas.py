"""``dplasso schema draft``: describe the columns of a table."""

import json
from typing import Any

from dplasso.cli import output
from dplasso.cli.inputs import DialectOptions
from dplasso.data.source_files import expand
from dplasso.encoding.contract import USUAL_MISSING, Coded
from dplasso.encoding.data_files import first_rows
from dplasso.encoding.schema import Schema
from dplasso.encoding.suggest import ABOUT, THE_REST, guess_label, suggest_schema


def draft(
    table: str,
    dialect: DialectOptions,
    label_column: str | None = None,
    rows: int | None = None,
    missing: str = ",".join(USUAL_MISSING),
) -> None:
    """Print a draft of a schema, as JSON.

    Arguments
    ---------
    table : TABLE
        CSV, JSON lines, Parquet or Arrow. Of a quoted pattern, the first file.

    Options
    -------
    label_column : NAME
        Where the label is. Default: a guess, which is printed.
    rows : N >= 1
        Rows to look at. Default: 65,536, or fewer of a table with more than 256 columns.
    missing : WORD,WORD,...
        Words that stand for a missing value; the schema keeps the list.

    Examples
    --------
    dplasso schema draft visits.csv --label-column readmitted > schema.json
    dplasso fit visits.csv --schema schema.json --epsilon 1 --model model.npz

    Edit the draft before you fit with it. It is not private: categories, ranges and numbers of bits
    come from the first rows. Where a part says "confirm", write what was known without the records.
    Then set "confirmed", at the end, to true.
    """
    first = expand(table)[0]
    dialect.say([first])
    with output.progress_bars() as bars, bars.task(f"reading {first.name}") as progress:
        records = first_rows(first, rows, dialect, progress)
    if not label_column:
        label_column = guess_label(records)
        guess = f"the draft takes {label_column!r} as the label; --label-column names another"
        none = "no column looks like the label; name it with --label-column"
        output.warn(none if label_column is None else guess)
    with output.progress_bars() as bars, bars.task("drafting") as progress:
        schema = suggest_schema(records, label_column, progress, missing.split(","))
    output.write_out(_text(schema))
    output.warn(schema.note[0].upper() + schema.note[1:])
    for part, mark in zip(schema.parts, schema.confirm, strict=True):
        if THE_REST in mark:
            output.note(f"{part.columns[0]}: {mark.partition(';')[0]}")
    if marked := sum(map(bool, schema.confirm)):
        output.note(
            f'{marked} of {len(schema.parts)} parts say "confirm": edit them in the file, then set '
            '"confirmed" to true'
        )
    if sum(isinstance(part, Coded) for part in schema.parts) > 1:
        output.note(
            'if columns act together, add {"kind": "pairs"} to "parts": a fit chooses the pairs'
        )


def _text(schema: Schema) -> str:
    """Write a schema with a line for each entry; the parts of a draft have explanations."""
    document = schema.to_json()
    parts = document.pop("parts")
    lines = [f" {_json(name)}: {_json(value)}" for name, value in document.items()]
    place = 1 + list(document).index("missing" if "missing" in document else "label")
    drafted = schema.confirmed is False
    written = []
    for part, own in zip(schema.parts, parts, strict=True):
        notes = {"confirm": own.pop("confirm")} if "confirm" in own else {}
        if drafted and type(part) in ABOUT:
            notes = {"about": ABOUT[type(part)]} | notes
        more = (f",\n   {_json(name)}: {_json(value)}" for name, value in notes.items())
        written.append(f"  {_json(own)[:-1]}{''.join(more)}}}")
    lines.insert(place, ' "parts": [\n' + ",\n".join(written) + "\n ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
