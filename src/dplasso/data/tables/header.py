"""Whether the first line of a text table is a header or a record.

A record that is taken for a header leaves with the model: its values become the names of columns.
Messages quote nothing of the first line.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dplasso.errors import DataError

_NUMBER = re.compile(r"[+-]?\d[\d.,]*([eE][+-]?\d+)?")
_WHOLE = re.compile(r"\d+")
_SENTENCE = re.compile(r"(\S+\s+){3,}\S+[.!]|(\S+\s+){11,}\S*[^\s?]", re.DOTALL)


def refuse_record(path: Path, first: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Raise `DataError` if the first line of a table looks like one of the records below it.

    `records`: some of them.
    """
    if (why := _why_record(first, records)) is not None:
        raise DataError(
            f"{path}: the first line looks like a record, not like names of columns: {why}. If it "
            "is a record, name the columns with --columns NAME,NAME,... or let --no-header number "
            "them; if it holds the names, say so with --header"
        )


def _why_record(first: Sequence[str], records: Iterable[Sequence[str]]) -> str | None:
    fields = [field for field in first if field]
    numbers = [field for field in fields if _NUMBER.fullmatch(field)]
    # Columns that are counted, or called after years, have numbers for names.
    whole = [int(field) for field in fields if _WHOLE.fullmatch(field)]
    counted = len(whole) == len(fields) and whole == [*range(whole[0], whole[0] + len(whole))]
    if fields and len(numbers) == len(fields) and not counted:
        return "all its fields are numbers"
    if fractions := sum(not _WHOLE.fullmatch(field) for field in numbers):
        return f"{fractions:,} of its {len(first):,} fields are numbers with a sign or a fraction"
    if sentences := sum(_SENTENCE.fullmatch(field) is not None for field in fields):
        return f"{sentences:,} of its {len(first):,} fields are sentences"
    again = set[int]()
    for record in records:
        held = [field.strip() for field in record]
        # A header that stands in the middle of a file says nothing.
        if held != list(first):
            pairs = enumerate(zip(held, first, strict=False))
            again |= {place for place, (field, name) in pairs if field and field == name}
    if again:
        return f"{len(again):,} of its {len(first):,} fields occur again in their column"
    return None


def refuse_wrong_names(path: Path, first: Sequence[str], names: Sequence[str]) -> None:
    """Raise `DataError` if declared names do not fit the first line, or are what it holds."""
    if len(names) != len(first):
        raise DataError(
            f"{path}: --columns names {len(names):,} columns, but the first line has "
            f"{len(first):,} fields; name each column, and say what stands between fields with "
            "--delimiter"
        )
    if [name.lower() for name in names] == [field.lower() for field in first]:
        raise DataError(
            f"{path}: the first line is a header, because it holds the names of --columns; leave "
            "--columns out"
        )
