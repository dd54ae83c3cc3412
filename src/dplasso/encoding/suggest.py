"""Draft a schema from data, for a person to edit. The draft is not private."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.labels import as_number
from dplasso.data.source_files import Progress
from dplasso.data.table_batches import alike, check_columns, decimal_of_groups
from dplasso.encoding.contract import USUAL_MISSING, Part, as_arrow
from dplasso.encoding.hashed import Hashed, Text
from dplasso.encoding.levels import Levels
from dplasso.encoding.parts import Categories, Date
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError

NOTE = (
    "this draft is not private: its columns, categories and ranges come from the records. Replace "
    'the values of parts marked "confirm" by what you know without the records. Then set '
    '"confirmed", at the end, to true'
)
ABOUT: dict[type[Part], str] = {
    Categories: "one feature for each category; unknown and missing: column, ignore or error",
    Levels: "bins at several resolutions from low to high; the outer bins include all beyond",
    Date: "take: year, month or weekday; edges: bins of years",
    Hashed: "each word is hashed to one of 2^bits columns",
    Text: "each word of the text is hashed to one of 2^bits columns",
}
"""The explanation of each kind of part in a draft."""

THE_REST = ", the rest "
"""In the mark of a part whose column may hold words for missing values."""

_MOST_CATEGORIES = 30
# Share of numbers from which a column counts as numeric.
_NUMBERS = 0.9
_WORDS_SHOWN = 3
_MOST_NUMBERS = 12
_WORDS_OF_TEXT = 4.0
_EDGES = 10
_COLUMNS_AT_ONCE = 100
_RESOLUTIONS = (4, 16, 64)
# Ratios of the 99 % quantile to the 1 % quantile and to the median, from which bins are log-spaced.
_WIDE, _SKEWED = 50.0, 5.0
_LABELS = ("label", "target", "outcome", "class", "response", "y")
# Columns with these words in their names hold codes, not amounts.
_CODES = ("code", "zip", "postcode", "postal", "plz", "icd", "sku", "iban")
# Columns with these names hold ids if they have many values.
_ID = re.compile("(.*[-_ ])?id([-_ ].*)?|patient|person|customer|member|user|subject", re.I)
# Pairs that are complete by common knowledge, so proposing both reveals nothing about the records.
_PAIRS = (
    *(("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"), ("off", "on")),
    *(("nein", "ja"), ("non", "oui"), ("0", "1")),
)
_FORMATS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y"),
    *("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M"),
    *("%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M"),
)
_EITHER = ("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M")
_SEEN = {
    Categories: "these values occur in the records: list all possible values",
    Levels: "the range comes from the records: set low and high that you know without them",
    Date: "the range comes from the records: set edges that you know without them",
    Hashed: "the number of bits depends on the number of distinct values in the records",
}


def guess_label(table: Any) -> str | None:
    """Guess the label column by its name, or else the last column if it has few values."""
    named = [name for word in _LABELS for name in table.column_names if name.lower() == word]
    if named:
        return str(named[0])
    last = table.column_names[-1]
    few = table.num_columns > 1 and 2 <= len(table.column(last).unique()) <= _MOST_NUMBERS
    return str(last) if few else None


def suggest_schema(
    table: Any,
    label: str | None,
    progress: Progress | None = None,
    missing: Sequence[str] = USUAL_MISSING,
) -> Schema:
    """Draft a schema from a pyarrow table, or from a sample of it.

    The draft marks what comes from the records. Its note names the columns that it leaves out.
    """
    names = table.column_names
    if label is None and "label" in names:
        label = "label"
    if label is not None:
        check_columns(names, [label], "the table has")
    parts: list[Part] = []
    marks: list[str] = []
    left_out = []
    grouped: dict[str, list[str]] = {}
    for number, name in enumerate(names):
        if progress is not None and number % _COLUMNS_AT_ONCE == 0:
            progress(number, len(names))
        if name != label:
            drafts, remark, decimal = _drafted(name, table.column(name), missing)
            parts += drafts
            marks += ["; ".join(filter(None, (remark, _mark(part)))) for part in drafts]
            left_out += [] if drafts else [name or "a column without a name"]
            grouped.setdefault(decimal, []).append(name)
    for decimal in filter(None, grouped):
        raise DataError(
            f"numbers in {', '.join(grouped[decimal])} have thousands separators; draft the "
            f"schema, and read the table, with --decimal {decimal}"
        )
    if not parts:
        raise DataError("the table has no column of numbers, text, dates or bools to encode")
    left = f" (left out: {', '.join(left_out)}; ids of people belong in --person-column)"
    note = NOTE + left * bool(left_out)
    return Schema(tuple(parts), label, note, tuple(marks), missing=tuple(missing), confirmed=False)


def _mark(part: Part) -> str:
    if isinstance(part, Categories) and tuple(map(alike, part.categories)) in _PAIRS:
        return ""
    if isinstance(part, Date) and part.format in _EITHER:
        return f"check which number is the month: the draft reads dates as {part.format}"
    if isinstance(part, Date) and not part.edges:
        return ""
    return _SEEN.get(type(part), "")


def _drafted(name: str, values: Any, missing: Sequence[str]) -> tuple[list[Part], str, str]:
    """Return a column's parts, a remark on missing values, and the decimal mark it needs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = as_arrow(values, f"column {name!r}")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if pa.types.is_boolean(kind):
        return [Categories(name, (False, True))], "", ""
    values = values.drop_null()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _of_dates(name, values, _FORMATS[0]), "", ""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _of_numbers(name, values.cast(pa.float64(), safe=False).to_numpy()), "", ""
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return [], "", ""
    values = pc.utf8_trim_whitespace(values)
    values = values.filter(pc.not_equal(values, ""))
    words = pa.array(list(map(alike, missing)), values.type)
    is_absent, n_values = pc.is_in(pc.utf8_lower(values), words), len(values)
    absent, values = values.filter(is_absent), values.filter(pc.invert(is_absent))
    if not len(values):
        return [], "", ""
    parts, what, strange = _of_texts(name, values)
    if any(map(decimal_of_groups, strange)):
        return parts, "", str(next(filter(None, map(decimal_of_groups, strange))))
    remark = ""
    if rest := sorted(set(strange or absent.unique().to_pylist())):
        shown = ", ".join(map(repr, rest[:_WORDS_SHOWN])) + ", ..." * (len(rest) > _WORDS_SHOWN)
        share = math.floor(100.0 * (len(values) - len(strange)) / n_values)
        cure = "which counts as missing"
        if strange:
            cure = 'words: list those that stand for a missing value under "missing"'
        remark = f"{share} % {what}{THE_REST}{shown}, {cure}"
    return parts, remark, ""


def _of_texts(name: str, values: Any) -> tuple[list[Part], str, list[str]]:
    """Return the parts of a text column, the kind of its values, and those of another kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Numbers first: no date format matches a number.
    try:
        return _of_numbers(name, values.cast(pa.float64()).to_numpy()), "numbers", []
    except pa.ArrowInvalid:
        pass
    # Every date contains a digit.
    for format in _FORMATS if any(map(str.isdigit, values[0].as_py())) else ():
        if not pc.strptime(values, format=format, unit="s", error_is_null=True).null_count:
            dates = _of_dates(name, pc.strptime(values, format=format, unit="s"), format)
            return dates, "dates", []
    texts = values.to_pylist()
    numbers = [number for number in map(as_number, texts) if number is not None]
    strange = [word for word in texts if as_number(word) is None]
    grouped = sum(decimal_of_groups(word) is not None for word in strange)
    if len(numbers) + grouped >= _NUMBERS * len(texts):
        return _of_numbers(name, np.array(numbers)), "numbers", strange
    distinct = sorted(values.unique().to_pylist())
    if len(distinct) <= _MOST_CATEGORIES:
        return [Categories(name, _completed(distinct))], "words", []
    n_words = pc.mean(pc.add(pc.count_substring(values, " "), 1)).as_py()
    if n_words >= _WORDS_OF_TEXT:
        return [Text(name)], "texts", []
    return _hashed(name, len(distinct), len(values)), "words", []


def _hashed(name: str, n_distinct: int, n_records: int) -> list[Part]:
    """Draft a column of many words or codes; leave out ids, and a new value in every record."""
    if n_distinct == n_records > 1 or _ID.fullmatch(name):
        return []
    return [Hashed((name,), bits=min(max(math.ceil(math.log2(n_distinct)) + 3, 8), 20))]


def _completed(words: list[str]) -> tuple[str, ...]:
    """Return the words, completed to a well-known pair such as yes and no in the same case."""
    for pair in _PAIRS:
        for write in (str.lower, str.upper, str.title):
            written = tuple(map(write, pair))
            if set(words) <= set(written):
                return written
    return tuple(words)


def _of_dates(name: str, values: Any, format: str) -> list[Part]:
    """Draft a column of dates: years and months; months and weekdays if there are few years."""
    if not len(values):
        return []
    days = values.to_numpy().astype("M8[D]")
    years = days.astype("M8[Y]").astype(np.int64) + 1970
    low, high = int(years.min()), int(years.max())
    if high - low < 2:
        return [Date(name, take, format=format) for take in ("month", "weekday")]
    edges = _steps(low, high, 1.0)
    return [Date(name, "year", edges, format=format), Date(name, "month", format=format)]


def _of_numbers(name: str, numbers: NDArray[np.float64]) -> list[Part]:
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return []
    distinct = np.unique(numbers)
    whole = bool((distinct == np.rint(distinct)).all())
    if whole and set(distinct.tolist()) <= {0.0, 1.0}:
        return [Categories(name, (0, 1))]
    if whole and distinct.size <= _MOST_NUMBERS:
        return [Categories(name, tuple(int(value) for value in distinct))]
    words = set(name.lower().replace("-", "_").replace(" ", "_").split("_"))
    if whole and not words.isdisjoint(_CODES):
        return _hashed(name, distinct.size, numbers.size)
    counted = distinct.size == numbers.size > _MOST_NUMBERS and bool((np.diff(distinct) == 1).all())
    if whole and (counted or (distinct.size > _MOST_CATEGORIES and _ID.fullmatch(name))):
        return []
    return [_levels(name, numbers, whole=whole)]


def _levels(name: str, numbers: NDArray[np.float64], *, whole: bool) -> Levels:
    """Draft bins at several resolutions over a range of round numbers."""
    low, high, sizes = float(numbers.min()), float(numbers.max()), np.abs(numbers[numbers != 0])
    few, middle, most = np.quantile(sizes, (0.01, 0.5, 0.99)).tolist()
    if most / few >= _WIDE and most / middle >= _SKEWED:
        low = 0.0 if low >= 0 else -round_up(-low)
        high = 0.0 if high <= 0 else round_up(high)
        return Levels(name, low, high, _RESOLUTIONS, "signed-log", linear=True)
    edges = _steps(*np.quantile(numbers, (0.01, 0.99)).tolist())
    if len(edges) == 1:
        edges = edges[0], edges[0] + max(1.0, abs(edges[0]))
    # With more bins than whole numbers, most bins would stay empty.
    most_bins = 2.0 * (edges[-1] - edges[0]) if whole else math.inf
    levels = tuple(bins for bins in _RESOLUTIONS if bins <= most_bins)
    return Levels(name, edges[0], edges[-1], levels, linear=True)


def round_up(number: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= number)


def _steps(low: float, high: float, least: float = 1e-300) -> tuple[float, ...]:
    """Return edges from below `low` to above `high` at a step of 1, 2 or 5 times 10^k."""
    step = round_up(0.999 * max((high - low) / _EDGES, abs(high) * 1e-7, least))
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(float(f"{k * step:.12g}") for k in range(first, last + 1))


def coverage_notes(schema: Schema, counts: NDArray[np.int64], n_rows: int) -> list[str]:
    """Return notes on columns that may not fit: no row has an entry, or all are at one end.

    `counts`, shape (D,): the entries of each feature.
    """
    notes = {}
    for part, first, last in zip(schema.parts, schema.offsets, schema.offsets[1:], strict=False):
        if not counts[first:last].any():
            notes[part.columns[0]] = f"no row of {n_rows:,} has a value that it declares"
    full = np.flatnonzero(counts == n_rows)
    for feature, name in zip(full.tolist(), schema.names(full), strict=True):
        columns = schema.columns_of(feature)
        at_end = name.endswith((" (missing)", " (unknown)")) or len(re.findall("[<>]", name)) == 1
        if at_end and len(columns) == 1:
            # Of several levels, the finest comes last.
            notes[columns[0]] = f"all {n_rows:,} rows have {name}"
    return [f"{column}: {note}" for column, note in notes.items()]
