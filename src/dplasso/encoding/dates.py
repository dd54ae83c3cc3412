"""Dates as months or weekdays, or as years or days in public bins."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from dplasso.encoding.columns import TableColumns
from dplasso.encoding.contract import Coded, Codes, OfOneColumn
from dplasso.encoding.parts import Bins

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMES = {"month": _MONTHS, "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")}
_TAKEN = ("year", "month", "weekday", "days")
_TRIED = datetime(2001, 2, 13, 4, 5, 6)


@dataclass(frozen=True)
class Date(OfOneColumn, Coded):
    """One column for each month or weekday, or for each public bin of years or days.

    `column`: column of dates or times, or of words that are dates.
    `take`: "year", "month", "weekday" or "days".
    `edges`: of years or days, ascending and public, as those of `Bins`.
    `since`: the day, as 2026-01-31, from which days are counted.
    `format`: how words are dates, in the codes of `datetime.strptime`.
    `missing`: what a missing date becomes.
    """

    take: str
    edges: tuple[float, ...] = ()
    since: str | None = None
    format: str = "%Y-%m-%d"
    missing: str = "column"

    def __post_init__(self) -> None:
        about = f"the date in column {self.column!r}"
        if self.take not in _TAKEN:
            raise ValueError(f"of {about} take one of {', '.join(_TAKEN)}, not {self.take!r}")
        object.__setattr__(self, "edges", () if self._names else self._bins.edges)
        if (self.take == "days") != (self.since is not None):
            raise ValueError(f"{about} needs since, a day, exactly where days are taken")
        try:
            date.fromisoformat(self.since or "2026-01-31")
            read = datetime.strptime(_TRIED.strftime(self.format), self.format)
        except (TypeError, ValueError):
            read = None
        if read is None or read.date() != _TRIED.date():
            raise ValueError(
                f"{about}: since is a day as 2026-01-31, and format says where year, month and day "
                "are, as %Y-%m-%d does"
            )
        self._check_words("missing")

    @property
    def _names(self) -> tuple[str, ...]:
        return _NAMES.get(self.take, ())

    @property
    def _bins(self) -> Bins:
        return Bins(f"{self.take}({self.column})", self.edges, False, self.missing)

    @property
    def codes(self) -> int:
        return len(self._names) + self.own_missing if self._names else self._bins.codes

    def code_names(self, codes: Codes, column: str) -> list[str]:
        if not self._names:
            return self._bins.code_names(codes, column)
        shown = [f"{self.take}({column})={name}" for name in self._names]
        return [[*shown, f"{self.take}({column}) (missing)"][code] for code in codes.tolist()]

    def described(self) -> str:
        if self._names:
            return f"the {self.take} of a date"
        since = "" if self.since is None else f" since {self.since}"
        return f"{self.take}{since} of a date, {self._bins.described()}"

    def codes_of(self, table: TableColumns, column: str) -> Codes:
        days: Any = table.dates(column, self.format, self.missing)
        missing = np.isnat(days)
        counted = np.where(missing, np.datetime64(0, "D"), days)
        if self.take == "days":
            numbers = (counted - np.datetime64(self.since, "D")).astype(np.int64)
        elif self.take == "year":
            numbers = counted.astype("M8[Y]").astype(np.int64) + 1970
        elif self.take == "month":
            numbers = counted.astype("M8[M]").astype(np.int64) % 12
        else:
            # The first day of 1970 was a Thursday.
            numbers = (counted.astype(np.int64) + 3) % 7
        if not self._names:
            numbers = np.searchsorted(self.edges, numbers, side="right")
        found: Codes = np.where(missing, self.missing_code, numbers).astype(np.int64)
        return found
