"""What the entries of a privacy statement may be, alone and together, and how JSON holds them."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from dplasso.privacy import wording
from dplasso.privacy.mechanisms import gaussian, signed_exponential, staged
from dplasso.privacy.mechanisms.contract import Words
from dplasso.privacy.parameters import NEIGHBOR_RELATIONS

if TYPE_CHECKING:
    from dplasso.privacy.statement import PrivacyStatement

# The mechanisms that are private; "stated" is another package's, which states its cost.
WORDS = {
    "exponential": signed_exponential.WORDS,
    "gaussian": gaussian.WORDS,
    wording.STAGED: staged.WORDS,
    "stated": Words(lambda _: "at the cost that its estimator states", clips_entries=False),
}
_NUMBERS = (
    *("epsilon", "epsilon_requested", "delta", "eps0", "sensitivity", "feature_bound"),
    *("sampling_delta", "residual_bound", "mu", "rho", "tries", "edges_mu"),
)


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


# What an entry may be, and how to say so.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(_NUMBERS, (_number, "a number >= 0")),
    **dict.fromkeys(
        ("is_private", "counted", "many_labels"),
        (lambda value: isinstance(value, bool), "true or false"),
    ),
    **dict.fromkeys(("steps", "rows_per_person"), (_whole(1), "a whole number >= 1")),
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
    **dict.fromkeys(
        ("accountant", "prior", "edges"), (lambda value: isinstance(value, str), "text")
    ),
    "reasons": (
        lambda value: isinstance(value, tuple) and all(isinstance(text, str) for text in value),
        "a list of texts",
    ),
}
_CHOICES = {
    "neighbors": NEIGHBOR_RELATIONS,
    "mechanism": (*WORDS, "paper", "none"),
    "records": (
        *(wording.COUNT_UNUSED, wording.COUNT_PUBLIC, wording.COUNT_PRIVATE),
        wording.COUNT_BY_CLASS,
    ),
    "randomness": (wording.FROM_SYSTEM, wording.SEEDED, wording.NOT_RANDOM),
    "classes": (wording.CLASSES_DECLARED, wording.CLASSES_FROM_Y, wording.CLASSES_NONE),
    "release": ("model", "score", "edges"),
    "tries_law": ("", "poisson", "geometric", "logarithmic"),
}


def to_json(value: Any) -> Any:
    """Return an entry as JSON holds it; infinity becomes "inf"."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return {name: to_json(one) for name, one in value.items()}
    return "inf" if value == math.inf else value


def from_json(name: str, value: Any) -> Any:
    """Return the entry that `to_json` was given."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return {rows: math.inf if one == "inf" else one for rows, one in value.items()}
    if name in _NUMBERS and value == "inf":
        return math.inf
    return float(value) if name in _NUMBERS and type(value) is int else value


def check_kinds(statement: "PrivacyStatement") -> None:
    """Refuse entries of the wrong kind or out of range."""
    for one in fields(statement):
        value = getattr(statement, one.name)
        if one.name in _KINDS:
            (holds, kind) = _KINDS[one.name]
            fitting = holds(value)
        else:
            choices = _CHOICES[one.name]
            fitting, kind = value in choices, f"one of {', '.join(choices)}"
        if not fitting:
            raise ValueError(f"{one.name} of a privacy statement must be {kind}, got {value!r}.")


def check_claim(statement: "PrivacyStatement") -> None:
    """Refuse a statement that claims more than its own entries support."""
    if bool(statement.edges_mu) and not statement.edges:
        raise ValueError("A privacy statement says which edges were released before the fit.")
    if bool(statement.tries) != bool(statement.tries_law):
        raise ValueError("A privacy statement gives the tries of a search and their law, or none.")
    numbers = [statement.n_classes == 0, statement.target_bounds is not None]
    if len({*numbers, statement.classes == wording.CLASSES_NONE}) > 1:
        raise ValueError("A privacy statement has either classes or an interval of the targets.")
    if statement.many_labels and statement.n_classes < 2:
        raise ValueError("A privacy statement of many labels has two or more of them.")
    if statement.is_private == bool(statement.reasons):
        raise ValueError("A privacy statement gives reasons exactly when it is not private.")
    has_bound = math.isfinite(statement.epsilon) and math.isfinite(statement.eps0)
    if (statement.words is not None) != has_bound:
        raise ValueError("Only a mechanism that is private has a finite epsilon.")
    if has_bound and statement.epsilon > statement.epsilon_requested:
        raise ValueError("A privacy statement cannot have spent more epsilon than was asked for.")
    if statement.is_private and not (has_bound and statement.randomness == wording.FROM_SYSTEM):
        raise ValueError(
            "A private statement needs a private mechanism and operating-system randomness."
        )
