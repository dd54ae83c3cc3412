"""Dates: months and weekdays, years and days in public bins, and words that are no dates."""

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from dplasso import DataError, PublicEncoder
from schemas import Date, Schema, schema_of

# Where a day begins before that of Greenwich.
EAST = timezone(timedelta(hours=9))
DAYS = [date(1969, 12, 31), date(1970, 1, 1), None, date(2024, 2, 29), date(1600, 3, 1)]


def codes(part, values):
    schema = Schema((part,))
    assert schema_of(schema.to_json()) == schema
    names = schema.names(range(schema.n_features))
    X = PublicEncoder(schema).transform(pa.table({"d": values})).tocoo()
    found = dict(zip(X.row.tolist(), X.col.tolist(), strict=True))
    return [names[found[row]] if row in found else None for row in range(len(values))]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(DAYS),
        pa.array(DAYS, pa.date64()),
        pa.array([d and datetime(d.year, d.month, d.day, 23, 59) for d in DAYS]),
        pa.array([d and datetime(d.year, d.month, d.day, 1, tzinfo=UTC) for d in DAYS]),
        pa.array([d and datetime(d.year, d.month, d.day, 0, tzinfo=EAST) for d in DAYS]),
        pa.array([d and f" {d}" for d in DAYS]),
        pa.array([str(d or "") for d in DAYS]).dictionary_encode(),
    ],
    ids=["days", "milliseconds", "times", "zoned", "east", "words", "dictionary"],
)
def test_what_is_taken_of_a_date(values):
    """As the standard library says it."""
    for take, code in (("month", "%b"), ("weekday", "%a")):
        expected = [f"{take}(d)={d:{code}}" if d else f"{take}(d) (missing)" for d in DAYS]
        assert codes(Date("d", take=take), values) == expected
        assert codes(Date("d", take=take, missing="ignore"), values)[2] is None
    assert codes(Date("d", take="year", edges=[1970, 2000]), values) == [
        *("year(d)<1970", "1970<=year(d)<2000", "year(d) (missing)", "year(d)>=2000"),
        "year(d)<1970",
    ]


def test_formats_and_what_is_no_date():
    spoken = pa.array(["31.12.2024 23:00", "01.02.2024 00:00"])
    found = codes(Date("d", take="month", format="%d.%m.%Y %H:%M"), spoken)
    assert found == ["month(d)=Dec", "month(d)=Feb"]
    assert (
        codes(Date("d", take="month"), pa.array([None, None], pa.null()))
        == ["month(d) (missing)"] * 2
    )
    for values, words in (
        (pa.array(["2024-01-01", "2024-13-01"]), "row 2: the value is not a date in the format"),
        (pa.array([1, 2]), "must hold dates, not int64"),
        (pa.array([["a"]]), "must hold dates, not list"),
    ):
        with pytest.raises(DataError, match=words):
            codes(Date("d", take="month"), values)
    with pytest.raises(DataError, match="row 3: the value is missing"):
        codes(Date("d", take="month", missing="error"), pa.array(DAYS))
