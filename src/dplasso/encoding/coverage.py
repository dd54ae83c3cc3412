"""What a curator should know of records beside a schema: columns that tell nothing of them."""

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.contract import Part
from dplasso.encoding.levels import Levels
from dplasso.encoding.parts import Bins, Categories
from dplasso.encoding.schema import Schema


def coverage_notes(schema: Schema, counts: NDArray[np.int64], n_rows: int) -> list[str]:
    """Say where all rows fell into one place, or none into a list: the schema may not fit them.

    `counts`, shape (D,): rows with an entry in each column.
    """
    found = []
    for part, first, last in zip(schema.parts, schema.offsets, schema.offsets[1:], strict=False):
        if words := _note(part, counts[first:last], n_rows):
            found.append(f"{part.columns[0]}: {words}")
    return found


def _note(part: Part, counts: NDArray[np.int64], n_rows: int) -> str:
    rows = f"all {n_rows:,} rows"
    if part.own_missing and len(part.columns) == 1 and counts[-1] == n_rows:
        return f"{rows} are missing"
    if isinstance(part, Categories):
        size = len(part.categories)
        if counts[:size].any():
            return ""
        if part.unknown == "column" and counts[size] == n_rows:
            return f"{rows} fell into 'unknown'"
        return f"none of {n_rows:,} rows is in one of its categories"
    if isinstance(part, Levels):
        counts = counts[part.starts[-2] : part.starts[-1]]
    elif isinstance(part, Bins) and not part.cumulative:
        counts = counts[: len(part.edges) + 1]
    else:
        return ""
    ends = n_rows in (counts[0], counts[-1])
    return f"{rows} are in the bin at one end of its range" if ends else ""
