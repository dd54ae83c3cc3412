"""``dplasso schema``: what the columns of a table are, drafted for a person to edit."""

import json
from typing import Annotated

from dplasso.cli import options
from dplasso.cli.commands import add_command, command_group
from dplasso.cli.options import DATA, argument, option
from dplasso.cli.output import print_note, write_out

app = command_group("schema", "What the columns of a table are: draft a schema to edit.")

EXAMPLES = options.examples(
    "dplasso schema draft visits.csv --label-column readmitted > schema.json",
    "dplasso fit visits.csv --schema schema.json --epsilon 1 --model model.npz    (after editing)",
    note="The first rows are looked at. What is drafted from records is not private: replace it by "
    "what was known without them.",
)


def draft(
    data: Annotated[str, argument("TABLE", "CSV, JSON lines, Parquet or Arrow.")],
    label_column: Annotated[
        str | None,
        option("--label-column", "Where the label is. Default: label.", "NAME", DATA),
    ] = None,
    rows: Annotated[int, option("--rows", "Rows to look at.", "N", min=1)] = 1 << 16,
) -> None:
    """Print a draft of a schema, as JSON."""
    from dplasso.encoding.source import first_rows
    from dplasso.encoding.suggest import NOTE, suggest_schema

    schema = suggest_schema(first_rows(data, rows), label_column)
    write_out(json.dumps(schema.to_json(), indent=1, ensure_ascii=False) + "\n")
    print_note(NOTE[0].upper() + NOTE[1:], style="yellow")


add_command(app, "draft", draft, EXAMPLES)
