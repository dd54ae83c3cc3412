"""Entries of a privacy statement: what each may be, and how a file holds it as JSON."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dplasso.privacy import wording
from dplasso.privacy.parameters import RELATIONS

# Mechanisms with a guarantee; "stated" is another package's, which states its cost.
PRIVATE_MECHANISMS = ("exponential", "gaussian", "exponential and gaussian", "stated")


class StatedRelease(NamedTuple):
    """A release that a statement is about: name, words, and numbers such as "sensitivity"."""

    name: str
    words: str
    numbers: Mapping[str, float]


def _number(value: Any) -> bool:
    return isinstance(value, float) and value >= 0


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _interval(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and [type(end) for end in value] == [float, float]
        and -math.inf < value[0] < value[1] < math.inf
    )


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _released(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(one, StatedRelease)
        and _text(one.name)
        and _text(one.words)
        and isinstance(one.numbers, Mapping)
        and all(_text(name) and _number(number) for name, number in one.numbers.items())
        for one in value
    )


def _one_of(*choices: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: value in choices, f"one of {', '.join(choices)}"


# What an entry may be, and how to say so.
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("epsilon", "epsilon_requested", "mu", "sampling_delta"), (_number, "a number >= 0")
    ),
    **dict.fromkeys(
        ("is_private", "many_labels"), (lambda value: isinstance(value, bool), "true or false")
    ),
    **dict.fromkeys(("steps", "rows_per_person"), (_whole(1), "a whole number >= 1")),
    **dict.fromkeys(("accountant", "prior", "public_rows"), (_text, "text")),
    "n_classes": (_whole(0), "a whole number >= 0"),
    "delta": (lambda value: _number(value) and 0 < value < 1, "in (0, 1)"),
    "target_bounds": (
        lambda value: value is None or _interval(value),
        "two increasing numbers, or none",
    ),
    "weight_bound": (
        lambda value: value is None or (_number(value) and 0.0 < value < math.inf),
        "a number > 0, or none",
    ),
    "epsilon_by_rows": (
        lambda value: isinstance(value, dict) and all(map(_number, value.values())),
        "numbers >= 0 by rows",
    ),
    "reasons": (
        lambda value: isinstance(value, tuple) and all(map(_text, value)),
        "a list of texts",
    ),
    "releases": (_released, "a list of releases, each with name, words and numbers"),
    "neighbors": _one_of(*RELATIONS),
    "mechanism": _one_of(*PRIVATE_MECHANISMS, "paper", "none"),
    "records": _one_of(
        *(wording.COUNT_UNUSED, wording.COUNT_PUBLIC, wording.COUNT_PRIVATE),
        wording.COUNT_BY_CLASS,
    ),
    "randomness": _one_of(wording.FROM_SYSTEM, wording.SEEDED, wording.NOT_RANDOM),
    "classes": _one_of(wording.CLASSES_DECLARED, wording.CLASSES_FROM_Y, wording.CLASSES_NONE),
    "about": _one_of("model", "score", "edges"),
}


def to_json_value(value: Any) -> Any:
    """Return an entry as JSON holds it; infinity becomes "inf"."""
    if isinstance(value, tuple | list):
        return [to_json_value(one) for one in value]
    if isinstance(value, Mapping):
        return {name: to_json_value(one) for name, one in value.items()}
    return "inf" if value == math.inf else value


def from_json_value(name: str, value: Any) -> Any:
    """Return the entry that `to_json_value` was given."""
    if name == "releases":
        try:
            return tuple(
                StatedRelease(one["name"], one["words"], _numbers(one["numbers"])) for one in value
            )
        except (TypeError, KeyError, AttributeError):
            raise ValueError("The privacy statement holds releases of no known form.") from None
    if isinstance(value, list):
        return tuple(float(one) if type(one) is int else one for one in value)
    if isinstance(value, Mapping):
        return _numbers(value)
    if name in ("epsilon", "epsilon_requested", "delta", "mu", "sampling_delta", "weight_bound"):
        return _numbers({name: value})[name]
    return value


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers as they are: infinity for "inf", floats for whole ones."""
    return {
        name: math.inf if one == "inf" else float(one) if type(one) is int else one
        for name, one in values.items()
    }
