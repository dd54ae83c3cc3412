"""A first schema from data, for a person to edit: the draft itself is not private."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.contract import Part
from dplasso.encoding.parts import Bins, Categories, Hashed, Text
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError

NOTE = (
    "this draft is not private, because its columns, categories and ranges were taken from the "
    "records; replace them by what was known without the data, then delete this note"
)

_MOST_CATEGORIES = 30
_MOST_NUMBERS = 12
_WORDS_OF_TEXT = 4.0


def suggest_schema(table: Any, label: str | None) -> Schema:
    """Draft a schema from a pyarrow table; a sample will do.

    Few distinct values become categories, other numbers bins with round edges, other words hashed
    categories, longer texts hashed words. What is neither, or differs in every record as an
    identifier does, is left out and named in the note. `label` None takes a column of that name.

    Raises DataError if there is no such label, or no column to encode.
    """
    names = table.column_names
    if label is None and "label" in names:
        label = "label"
    if label is not None and label not in names:
        raise DataError(f"no column {label!r}; there are {', '.join(map(repr, names))}")
    parts: list[Part] = []
    left_out = []
    for name in names:
        if name != label:
            part = draft_part(name, table.column(name))
            if part is None:
                left_out.append(name)
            else:
                parts.append(part)
    if not parts:
        raise DataError("the table has no column of numbers, words or bools to encode")
    note = NOTE if not left_out else f"{NOTE} (left out: {', '.join(left_out)})"
    return Schema(tuple(parts), label, note)


def draft_part(name: str, values: Any) -> Part | None:
    """Draft what a column of a pyarrow table is; None if it is to be left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if pa.types.is_boolean(kind):
        return Categories(name, (False, True))
    values = values.drop_null()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _of_numbers(name, values.cast(pa.float64(), safe=False).to_numpy())
    if pa.types.is_string_view(kind):
        values, kind = values.cast(pa.string()), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    values = values.filter(pc.not_equal(values, ""))
    if not len(values):
        return None
    try:
        return _of_numbers(name, pc.utf8_trim_whitespace(values).cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        pass
    found = sorted(values.unique().to_pylist())
    if len(found) <= _MOST_CATEGORIES:
        return Categories(name, tuple(found))
    n_words = pc.mean(pc.add(pc.count_substring(values, " "), 1)).as_py()
    if n_words >= _WORDS_OF_TEXT:
        return Text(name)
    if len(found) == len(values):
        return None
    return Hashed((name,), bits=min(max(math.ceil(math.log2(len(found))) + 3, 8), 20))


def _of_numbers(name: str, numbers: NDArray[np.float64]) -> Part | None:
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return None
    found = np.unique(numbers)
    if found.size <= _MOST_NUMBERS and (found == np.rint(found)).all():
        return Categories(name, tuple(int(value) for value in found))
    low, high = np.quantile(numbers, [0.01, 0.99])
    if low > 0 and high / low >= 1000:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        edges = [float(f"{digit}e{power}") for power in powers for digit in (1, 3)]
    else:
        width = max(high - low, abs(high) * 1e-6, 1e-300) / 10
        power = 10.0 ** math.floor(math.log10(width))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= width * 0.999)
        first, last = math.floor(low / step), math.ceil(high / step)
        edges = [float(f"{k * step:.12g}") for k in range(first, last + 1)]
    return Bins(name, tuple(edges))
