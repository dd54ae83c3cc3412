"""The contract of a part of a schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import Rows
from dplasso.encoding.columns import Slot, TableColumns

if TYPE_CHECKING:
    from dplasso.encoding.schema import Schema

_MISSING = ("column", "ignore", "error")
Codes = NDArray[np.int64]


class Part:
    """The contract of a part.

    It takes `columns` of the table and makes `width` columns: `names` returns the names of some of
    them, `entries` yields the entries of a table in their order. `described` says in words what it
    declares of the table.
    """

    missing: str = "ignore"

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[str, ...]: ...
        def width(self, schema: "Schema") -> int: ...
        def names(self, schema: "Schema", columns: Codes) -> list[str]: ...
        def described(self) -> str: ...
        def entries(
            self, schema: "Schema", table: TableColumns, offset: int
        ) -> Iterator[Slot | Rows]: ...

    @property
    def own_missing(self) -> int:
        """1 if a missing value has a column of its own, else 0."""
        return int(self.missing == "column")

    def _check_words(self, *names: str) -> None:
        for name in names:
            if (given := getattr(self, name)) not in _MISSING:
                raise ValueError(f"{name} must be one of {', '.join(_MISSING)}, got {given!r}")

    def _check_bools(self, *names: str) -> None:
        for name in names:
            if not isinstance(given := getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, got {given!r}")


class Coded(Part):
    """A part that encodes a column to one of `codes` values, which a cross may take.

    `codes_of` returns each record's code, -1 for none; `code_names` the names of codes. Unless a
    part says otherwise, each code is a column.
    """

    if TYPE_CHECKING:

        @property
        def codes(self) -> int: ...
        def codes_of(self, table: TableColumns, column: str) -> Codes: ...
        def code_names(self, codes: Codes, column: str) -> list[str]: ...

    def width(self, schema: "Schema") -> int:
        return self.codes

    def names(self, schema: "Schema", columns: Codes) -> list[str]:
        return self.code_names(columns, self.columns[0])

    def entries(self, schema: "Schema", table: TableColumns, offset: int) -> Iterator[Slot]:
        yield Slot.of(table.codes(self, self.columns[0]), offset)

    @property
    def missing_code(self) -> int:
        """The code of a missing value."""
        return self.codes - 1 if self.own_missing else -1

    def _looked_up(self, places: Codes, words: Codes) -> Codes:
        """Return each record's place by the number of its word."""
        # The number -1, of a missing value, finds the last place.
        return np.append(places, self.missing_code)[words]


@dataclass(frozen=True)
class OfOneColumn:
    """What takes one column of the table."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the table that it takes."""
        return (self.column,)
