"""Checks of the public parameters of a guarantee, and the neighbour relations.

With "label", neighbours differ in one label or target. What depends on features alone does not
move.
"""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

from dplasso.errors import DataError, ParameterError, ParameterTypeError, shown

# Beyond these the fixed-point scale 2**32 / B or the exponent scale could leave the range of a
# double; no real feature does.
SMALLEST_BOUND = 1e-100
LARGEST_BOUND = 1e100
# Weights grow like T^2 in integers; up to here 64-bit margins keep 21 bits behind feature_bound.
LARGEST_N_ITER = 2_000_000
# Of a record's share of a sum, see `share_bits`: a cost holds for any number of records.
FEWEST_BITS = 29


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterTypeError(f"`{name}` must be a number, got {shown(value)}.")
    return float(value)


def check_whole(name: str, value: Any, right: str, most: float = math.inf) -> int:
    """Return a parameter that is a whole number from 1 to `most`, `right` in words."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterTypeError(f"`{name}` must be a whole number, got {shown(value)}.")
    if not 1 <= int(value) <= most:
        raise ParameterError(f"`{name}` must be {right}, got {shown(value)}.")
    return int(value)


def check_epsilon(epsilon: Any) -> float:
    """Return the privacy parameter epsilon, which is positive; infinity asks for no privacy."""
    value = _number("epsilon", epsilon)
    if not value > 0:
        raise ParameterError(
            f"`epsilon` must be greater than 0 (infinity for no privacy), got {shown(epsilon)}."
        )
    return value


def check_delta(delta: Any) -> float:
    """Return the privacy parameter delta, which lies strictly between 0 and 1."""
    value = _number("delta", delta)
    if not 0 < value < 1:
        raise ParameterError(f"`delta` must lie strictly between 0 and 1, got {shown(delta)}.")
    return value


def check_rows_per_person(rows: Any) -> int:
    """Return how many rows of a person are protected together, at least 1."""
    return check_whole("rows_per_person", rows, "at least 1")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return a parameter that is one of a few words."""
    if not isinstance(value, str):
        raise ParameterTypeError(f"`{name}` must be a string, got {shown(value)}.")
    if value not in choices:
        names = " or ".join(repr(choice) for choice in choices)
        raise ParameterError(f"`{name}` must be {names}, got {shown(value)}.")
    return value


def check_feature_bound(feature_bound: Any) -> float:
    """Return the public bound on the magnitude of an entry, which is from 1e-100 to 1e100."""
    value = check_positive("feature_bound", feature_bound)
    if not SMALLEST_BOUND <= value <= LARGEST_BOUND:
        raise ParameterError(
            f"`feature_bound` must lie between {SMALLEST_BOUND:g} and {LARGEST_BOUND:g}, "
            f"got {shown(feature_bound)}."
        )
    return value


def check_positive(name: str, value: Any) -> float:
    """Return a parameter that must be positive and finite."""
    number = _number(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ParameterError(f"`{name}` must be positive and finite, got {shown(value)}.")
    return number


def share_bits(n_records: float | None) -> int:
    """Return the bits of a record's share of a sum: 32 for up to 2^30 records or an unknown number.

    Otherwise `FEWEST_BITS`. `check_records` refuses more records than 64-bit sums have room for.
    """
    return 32 if n_records is None or n_records <= 2.0**30 else FEWEST_BITS


def check_records(n_records: int, bits: int) -> None:
    """Refuse more records than 64-bit sums of shares of `bits` bits can hold."""
    most = 2 ** (63 - bits) - 1
    if n_records > most:
        raise DataError(
            f"the data have {n_records:,} rows; at most {most:,} are possible"
            + ("" if bits < 32 else ", unless their number is public: declare it with `n_records`")
        )


class Relation(NamedTuple):
    """A neighbour relation: a sum moves by `times` contributions of one record.

    `changed`, `exchanged`: what happens to records, in words of a statement and of a report.
    """

    times: float
    hides_features: bool
    changed: str
    exchanged: str

    def part(self, rows_per_person: int = 1) -> str:
        """Return the words for the labels alone of one or several rows; none for whole rows."""
        if self.hides_features:
            return ""
        return "the label of " if rows_per_person == 1 else "the labels of "

    def protected(self, rows_per_person: int = 1) -> str:
        """Return the words for what is protected."""
        whom = f"each person with up to {rows_per_person:,} rows"
        return self.part(rows_per_person) + ("each row" if rows_per_person == 1 else whom)


RELATIONS = {
    "add-remove": Relation(1.0, True, "added or removed", "left out"),
    "replace-one": Relation(2.0, True, "replaced by {others}", "exchanged for others"),
    "label": Relation(2.0, False, "given {labels}", "given other labels"),
}


def check_neighbors(neighbors: Any) -> str:
    """Return the name of the neighbour relation."""
    return check_choice("neighbors", neighbors, tuple(RELATIONS))
