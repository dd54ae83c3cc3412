"""``dplasso schema``: describe the columns of a table."""

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import typer

from dplasso.cli import output
from dplasso.cli.inputs import DialectOptions
from dplasso.cli.training import chosen_ledger
from dplasso.data.source_files import expand
from dplasso.encoding.contract import USUAL_MISSING
from dplasso.encoding.files import first_rows, read_records
from dplasso.encoding.parts import Bins
from dplasso.encoding.schema import Schema, read_schema
from dplasso.encoding.suggest import ABOUT, THE_REST, guess_label, suggest_schema
from dplasso.tuning.quantiles import EdgesBudget, quantile_grids, quantiles_of


def draft(
    table: Path,
    dialect: DialectOptions,
    label_column: str | None = None,
    rows: int | None = None,
    missing: str = ",".join(USUAL_MISSING),
) -> None:
    """Print a draft of a schema, as JSON.

    Arguments
    ---------
    table : TABLE
        CSV, JSON lines, Parquet or Arrow.

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
    dialect.say([table])
    with output.progress_bars() as bars, bars.task(f"reading {table.name}") as progress:
        found = first_rows(table, rows, dialect.asked, progress)
    label_column = label_column or _label_of(found)
    with output.progress_bars() as bars, bars.task("drafting") as progress:
        schema = suggest_schema(found, label_column, progress, missing.split(","))
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


def _label_of(table: object) -> str | None:
    """Guess the label, and say so."""
    guess = guess_label(table)
    if guess is None:
        output.warn("no column looks like the label; name it with --label-column")
    else:
        output.warn(f"the draft takes {guess!r} as the label; --label-column names another")
    return guess


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(EdgesBudget):
    """Options for the cost of private edges.

    Privacy
    -------
    epsilon : E
        The budget of edges and fit together, as the fit will be given it.
    share : X
        The part of it for the edges, of the squared mu of Gaussian differential privacy.
    """

    ledger: Path | None = None
    dataset: str | None = None
    purpose: str | None = None
    random_state: int | None = None

    def charged(self) -> EdgesBudget:
        """Return the same with the one ledger that the options name."""
        same = {one.name: getattr(self, one.name) for one in fields(EdgesBudget)}
        ledger = chosen_ledger(self.ledger, self.dataset, self.purpose)
        return EdgesBudget(**same | {"ledger": ledger})


def quantiles(
    data: list[str],
    *,
    schema: Path,
    bounds: list[str],
    out: Path,
    budget: BudgetOptions,
    dialect: DialectOptions,
    bins: int = 10,
    person_column: str | None = None,
    force: bool = False,
    explain: bool = False,
) -> None:
    """Put the edges of bins at private quantiles of a table.

    Arguments
    ---------
    data : TABLE...
        CSV, JSON lines, Parquet or Arrow; several files, or a quoted pattern, are one table.

    Options
    -------
    schema : FILE
        The schema whose bins get new edges.
    bounds : COLUMN=LOW,HIGH
        A column of bins, and the interval that its numbers are publicly known to lie in; give it
        once for each column.
    bins : N >= 2
        Bins of a column, at most.

    Output
    ------
    out : FILE
        Write the schema with the new edges here.

    Examples
    --------
    dplasso schema quantiles visits.csv --schema schema.json --bounds age=0,110
        --bounds income=0,1e6 --epsilon 1 --out edges.json
    dplasso fit visits.csv --schema edges.json --epsilon 1 --model model.npz

    A fit of the same records with these edges covers their cost by its own --epsilon: both
    together cost no more. All columns are released at once.
    """
    output.check_outputs([out], [schema, budget.ledger], force=force)
    files, declared = expand(data), read_schema(schema)
    known = dict(map(_bounds, bounds))
    if len(known) < len(bounds):
        raise ValueError("--bounds names a column twice")
    grids = quantile_grids(declared, known)
    dialect.say(files)
    with output.progress_bars() as bars, bars.task(f"reading {files[0].name}") as progress:
        rows = read_records(files, schema=grids, labelled=False, person_column=person_column,
                            dialect=dialect.asked, progress=progress)  # fmt: skip
    found = quantiles_of(rows.X, declared, grids, bins, rows.people, budget.charged())
    with output.uninterrupted():
        output.write_file(out, _text(found))
    assert found.edges is not None
    statement = found.edges.statement
    # Sums of the noise of half of a column's cells, from either end.
    cells = max(part.width(grids.coded) for part in grids.parts)
    sensitivity = statement.number("sensitivity") or 0.0
    off = sensitivity / statement.mu * math.sqrt(cells) / 2.0
    shown = {
        part.column: ", ".join(f"{edge:g}" for edge in part.edges)
        for part in found.parts
        if isinstance(part, Bins) and part.column in known
    }
    noise = f"an edge differs from its quantile by about {off:,.0f} records or fewer"
    output.facts({**shown, "noise": noise, "written": str(out)})
    output.text()
    output.promise(statement, explain=explain)


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    """Read ``COLUMN=LOW,HIGH``."""
    column, _, interval = text.rpartition("=")
    try:
        low, high = (float(end) for end in interval.split(","))
    except ValueError:
        column = ""
    if not column:
        raise typer.BadParameter(f"{text!r} is not COLUMN=LOW,HIGH, for example age=0,110")
    return column, (low, high)


def _text(schema: Schema) -> str:
    """Write a schema with a line for each entry, and a few for each part; a draft explains them."""
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
