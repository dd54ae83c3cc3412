"""``dplasso schema``: what the columns of a table are."""

import json
import sys
from pathlib import Path

from dplasso.cli import output
from dplasso.cli.reading import DialectOptions
from dplasso.cli.schema_edit import Asker, edited
from dplasso.encoding.schema import Schema, read_schema
from dplasso.encoding.source import first_rows
from dplasso.encoding.suggest import NOTE, guess_label, suggest_schema


def draft(
    table: Path,
    dialect: DialectOptions,
    label_column: str | None = None,
    rows: int = 1 << 16,
) -> None:
    """Print a draft of a schema, as JSON.

    Arguments
    ---------
    table : TABLE
        CSV, JSON lines, Parquet or Arrow.

    Options
    -------
    label_column : NAME
        Where the label is. Default: asked for on a terminal, elsewhere guessed, and said.
    rows : N >= 1
        Rows to look at.

    Examples
    --------
    dplasso schema draft visits.csv --label-column readmitted > schema.json
    dplasso schema edit schema.json
    dplasso fit visits.csv --schema schema.json --epsilon 1 --model model.npz

    The first rows are looked at. What is drafted from records is not private: replace it by what
    was known without them. Parts that were taken from records are marked with "confirm".
    """
    dialect.say([table])
    found = first_rows(table, rows, dialect.asked)
    if label_column is None:
        label_column = _label_of(found)
    schema = suggest_schema(found, label_column)
    output.write_out(_text(schema))
    output.warn(NOTE[0].upper() + NOTE[1:])
    if marked := sum(map(bool, schema.confirm)):
        output.note(
            f"{marked} of {len(schema.parts)} parts are marked with what a person has to confirm; "
            "dplasso schema edit asks about each"
        )


def _label_of(table: object) -> str | None:
    """Ask for the label on a terminal; elsewhere guess it, and say so."""
    guess = guess_label(table)
    if on_terminal():
        answer = ask("Which column is the label?", guess or "none")
        return None if answer == "none" else answer
    if guess is None:
        output.warn("no column looks like the label; name it with --label-column")
    else:
        output.warn(f"the label is taken to be {guess!r}; --label-column names another")
    return guess


def on_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin.isatty() and output.err.is_terminal


def ask(question: str, default: str) -> str:
    """Ask on standard error, for standard output may be a file; EOFError without an answer."""
    output.err.print(f"{question} [{default}]: ", end="", markup=False, highlight=False,
                     soft_wrap=True)  # fmt: skip
    answer = sys.stdin.readline()
    if not answer:
        output.note("")
        raise EOFError(f"{question} has no answer")
    return answer.strip() or default


def edit(schema: Path, out: Path | None = None, force: bool = False) -> None:
    """Go through a schema column by column, with questions; Enter leaves things as they are.

    Arguments
    ---------
    schema : SCHEMA
        A JSON file, such as schema draft prints.

    Output
    ------
    out : FILE
        Write the edited schema here. Default: where it was.

    Examples
    --------
    dplasso schema edit schema.json
    dplasso schema edit draft.json --out schema.json

    The file is replaced when the last question is answered, and not before.
    """
    if out is not None:
        output.check_outputs([out], [schema], force=force)
    before = read_schema(schema)
    try:
        after = edited(before, Asker(ask, lambda line: output.note(line, "")))
    except EOFError:
        raise ValueError(f"the questions ended early: {schema} is as it was") from None
    place = schema if out is None else out
    if after != before or out is not None:
        with output.uninterrupted():
            output.write_file(place, _text(after))
    state = "still a draft, of which fits warn" if after.is_unedited_draft else "ready to fit with"
    changed = "" if after != before else "nothing was changed; "
    output.facts({"schema": f"{place} ({changed}{state})"})


def _text(schema: Schema) -> str:
    return json.dumps(schema.to_json(), indent=1, ensure_ascii=False) + "\n"
