"""``dplasso schema``: what the columns of a table are."""

import json

from dplasso.cli import output
from dplasso.encoding.source import first_rows
from dplasso.encoding.suggest import NOTE, suggest_schema


def draft(table: str, label_column: str | None = None, rows: int = 1 << 16) -> None:
    """Print a draft of a schema, as JSON.

    Arguments
    ---------
    table : TABLE
        CSV, JSON lines, Parquet or Arrow.

    Options
    -------
    label_column : NAME
        Where the label is. Default: label.
    rows : N >= 1
        Rows to look at.

    Examples
    --------
    dplasso schema draft visits.csv --label-column readmitted > schema.json
    dplasso fit visits.csv --schema schema.json --epsilon 1 --model model.npz    (after editing)

    The first rows are looked at. What is drafted from records is not private: replace it by what
    was known without them.
    """
    schema = suggest_schema(first_rows(table, rows), label_column)
    output.write_out(json.dumps(schema.to_json(), indent=1, ensure_ascii=False) + "\n")
    output.warn(NOTE[0].upper() + NOTE[1:])
