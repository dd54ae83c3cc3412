"""The privacy statement of a fit: what is guaranteed, to whom, and on what assumptions.

A statement is made of public parameters alone, so it can be released with the model.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import ROUND_UP, Context
from importlib.metadata import version
from typing import Any

from dplasso.privacy.mechanisms import Mechanism
from dplasso.privacy.parameters import NEIGHBOR_RELATIONS

FROM_SYSTEM = "operating system"
SEEDED = "seeded"
NOT_RANDOM = "none"
CLASSES_DECLARED = "declared"
CLASSES_FROM_Y = "taken from y, treated as public"

_ALLOWED = {
    "neighbors": NEIGHBOR_RELATIONS,
    "mechanism": ("exponential", "paper", "none"),
    "randomness": (FROM_SYSTEM, SEEDED, NOT_RANDOM),
    "classes": (CLASSES_DECLARED, CLASSES_FROM_Y),
}
_NUMBERS = (
    "epsilon",
    "epsilon_requested",
    "delta",
    "eps0",
    "sensitivity",
    "feature_bound",
    "sampling_delta",
)
# Names of entries in files of version 0.1.0.
_FORMER_NAMES = {"draw_error": "sampling_delta"}


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fit guarantees about the records it was made from.

    Attributes
    ----------
    is_private : bool
        Whether the released model is (epsilon, delta)-differentially private.
    epsilon : float
        What the accountant reports as spent, natural logarithm units; infinite where there is no
        guarantee. For a seeded run: what the same run would have spent without the seed.
    epsilon_requested : float
        What was asked for; `epsilon` is never more.
    delta : float
        The probability that the guarantee allows for exceeding epsilon.
    neighbors : {"add-remove", "replace-one"}
        Which data sets the guarantee compares.
    mechanism : {"exponential", "paper", "none"}
        How each step was chosen.
    accountant : str
        How the steps' costs were added up; empty if they were not.
    steps : int
        Number of steps T.
    eps0 : float
        Bounded-range parameter of one step; infinite if not private.
    sensitivity : float
        How far one coordinate of the summed gradient can move between neighbours.
    feature_bound : float
        Public bound B on the magnitude of an entry; entries were clipped to it.
    sampling_delta : float
        The part of `delta` that covers the inexactness of the random draws.
    randomness : {"operating system", "seeded", "none"}
        Where the random numbers came from.
    classes : {"declared", "taken from y, treated as public"}
        Where the two class labels came from.
    reasons : tuple of str
        Why the fit is not private; empty if it is.
    """

    is_private: bool
    epsilon: float
    epsilon_requested: float
    delta: float
    neighbors: str
    mechanism: str
    accountant: str
    steps: int
    eps0: float
    sensitivity: float
    feature_bound: float
    sampling_delta: float
    randomness: str
    classes: str
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_claim(self)

    def to_dict(self) -> dict[str, Any]:
        """Give the statement as values that JSON can hold; infinity becomes "inf".

        Returns
        -------
        dict
            One entry per attribute, in their order.
        """
        values = asdict(self)
        for name in _NUMBERS:
            if math.isinf(values[name]):
                values[name] = "inf"
        values["reasons"] = list(self.reasons)
        return values

    def to_json(self, indent: int | None = 2) -> str:
        """Give the statement as JSON text.

        Parameters
        ----------
        indent : int or None, default=2
            As in `json.dumps`.

        Returns
        -------
        str
            One JSON object.
        """
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrivacyStatement":
        """Rebuild a statement from `to_dict`.

        Parameters
        ----------
        values : mapping
            Exactly the entries that `to_dict` gives.

        Returns
        -------
        PrivacyStatement
            Equal to the one that was written.

        Raises
        ------
        ValueError
            If an entry is missing, unknown, of the wrong kind, or contradicts another.
        """
        if not isinstance(values, Mapping):
            raise ValueError("A privacy statement must be a mapping of its entries.")
        names = {field.name for field in fields(cls)}
        entries = {_FORMER_NAMES.get(name, name): value for name, value in values.items()}
        if missing := sorted(names - set(entries)):
            raise ValueError(f"The privacy statement lacks {', '.join(missing)}.")
        if unknown := sorted(str(name) for name in set(entries) - names):
            raise ValueError(f"The privacy statement has unknown entries: {', '.join(unknown)}.")
        for name in _NUMBERS:
            if entries[name] == "inf":
                entries[name] = math.inf
            elif isinstance(entries[name], int) and not isinstance(entries[name], bool):
                entries[name] = float(entries[name])
        if isinstance(entries["reasons"], list):
            entries["reasons"] = tuple(entries["reasons"])
        return cls(**entries)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyStatement":
        """Rebuild a statement from `to_json`.

        Parameters
        ----------
        text : str
            One JSON object.

        Returns
        -------
        PrivacyStatement
            Equal to the one that was written.

        Raises
        ------
        ValueError
            If the text is not JSON, or not a statement.
        """
        return cls.from_dict(json.loads(text))

    def text(self) -> str:
        """Say in plain words what is guaranteed and what is not.

        Returns
        -------
        str
            A few short paragraphs.
        """
        paragraphs = [*_guarantee(self), _assumptions(self)]
        return "\n\n".join(paragraphs)

    def __str__(self) -> str:
        return self.text()


def make_statement(
    mechanism: Mechanism, *, seeded: bool, classes_declared: bool
) -> PrivacyStatement:
    """State what a fit with this mechanism guarantees.

    Parameters
    ----------
    mechanism : Mechanism
        The private step that was used.
    seeded : bool
        Whether the random numbers can be repeated (`random_state` was given).
    classes_declared : bool
        Whether the two class labels were named by the user, not taken from the data.

    Returns
    -------
    PrivacyStatement
        Made of public parameters alone.
    """
    reasons = []
    if mechanism.name == "none":
        reasons.append("epsilon is infinite: every step was chosen exactly, without noise")
    elif mechanism.name == "paper":
        reasons.append(
            "the step published in arXiv 2310.19978 moves along the true sign of a gradient entry, "
            "which is a noiseless bit of the data"
        )
    if seeded and mechanism.name != "none":
        reasons.append(
            "random_state was given: whoever knows or guesses it can repeat the random draws and "
            "take the noise away"
        )
    accountant = ""
    if mechanism.name == "exponential":
        accountant = (
            "RDP of zCDP, eps0^2/8 for each eps0-bounded-range step "
            f"(dp-accounting {version('dp-accounting')})"
        )
    randomness = NOT_RANDOM if mechanism.name == "none" else SEEDED if seeded else FROM_SYSTEM
    return PrivacyStatement(
        is_private=not reasons,
        epsilon=mechanism.epsilon_spent,
        epsilon_requested=mechanism.epsilon,
        delta=mechanism.delta,
        neighbors=mechanism.neighbors,
        mechanism=mechanism.name,
        accountant=accountant,
        steps=mechanism.n_iter,
        eps0=mechanism.eps0,
        sensitivity=mechanism.sensitivity,
        feature_bound=mechanism.feature_bound,
        sampling_delta=mechanism.sampling_delta,
        randomness=randomness,
        classes=CLASSES_DECLARED if classes_declared else CLASSES_FROM_Y,
        reasons=tuple(reasons),
    )


def _check_kinds(statement: PrivacyStatement) -> None:
    """Refuse entries of the wrong kind or out of range."""
    if not isinstance(statement.is_private, bool):
        raise ValueError("is_private of a privacy statement must be true or false.")
    steps = statement.steps
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise ValueError(
            f"steps of a privacy statement must be a whole number >= 1, got {steps!r}."
        )
    for name in _NUMBERS:
        number = getattr(statement, name)
        if not isinstance(number, float) or not number >= 0:
            raise ValueError(
                f"{name} of a privacy statement must be a number >= 0, got {number!r}."
            )
    if not 0 < statement.delta < 1:
        raise ValueError(
            f"delta of a privacy statement must be in (0, 1), got {statement.delta!r}."
        )
    for name, allowed in _ALLOWED.items():
        value = getattr(statement, name)
        if value not in allowed:
            raise ValueError(
                f"{name} of a privacy statement must be one of {', '.join(allowed)}, got {value!r}."
            )
    if not isinstance(statement.accountant, str):
        raise ValueError("accountant of a privacy statement must be text.")
    reasons = statement.reasons
    if not isinstance(reasons, tuple) or not all(isinstance(reason, str) for reason in reasons):
        raise ValueError("reasons of a privacy statement must be a list of texts.")


def _check_claim(statement: PrivacyStatement) -> None:
    """Refuse a statement that claims more than its own entries support."""
    if statement.is_private == bool(statement.reasons):
        raise ValueError("A privacy statement gives reasons exactly when it is not private.")
    has_bound = math.isfinite(statement.epsilon) and math.isfinite(statement.eps0)
    if (statement.mechanism == "exponential") != has_bound:
        raise ValueError("Only the exponential mechanism has a finite epsilon.")
    if has_bound and statement.epsilon > statement.epsilon_requested:
        raise ValueError("A privacy statement cannot have spent more epsilon than was asked for.")
    if statement.is_private and not (has_bound and statement.randomness == FROM_SYSTEM):
        raise ValueError(
            "A private statement needs the exponential mechanism and operating-system randomness."
        )


def rounded_up(value: float, digits: int = 4) -> str:
    """Write a privacy loss or a delta in a few digits, never as less than it is.

    Parameters
    ----------
    value : float
        At least 0; may be infinite.
    digits : int, default=4
        Significant digits.

    Returns
    -------
    str
        As the format ``g`` writes it. A part in 10^12 is forgiven, so that 0.1 stays 0.1.
    """
    if math.isinf(value):
        return "inf"
    # Values that print exactly, 0.1 say, must not be pushed up by their own rounding, and what
    # the accountant misses of the epsilon asked for by a billionth is not worth five digits.
    up = Context(prec=digits, rounding=ROUND_UP).create_decimal(value * (1 - 1e-12))
    return f"{float(up):.{digits}g}"


def _unit(statement: PrivacyStatement) -> str:
    if statement.neighbors == "add-remove":
        return "any one record were added or removed"
    return "any one record were replaced by any other"


def _guarantee(statement: PrivacyStatement) -> list[str]:
    """Word the first paragraphs: what is protected and how strongly, or why nothing is."""
    if not statement.is_private:
        return [
            "NOT differentially private: " + "; and ".join(statement.reasons) + ".",
            "Treat this model like the records it was trained on.",
        ]
    epsilon, delta = rounded_up(statement.epsilon), rounded_up(statement.delta)
    factor = ""
    if statement.epsilon < 20:
        factor = f" = {rounded_up(math.exp(statement.epsilon))}"
    return [
        f"Differentially private with epsilon = {epsilon} and delta = {delta}.",
        "What is protected: each single record (one row of the training data). "
        f"If {_unit(statement)}, the probability of any outcome, and so of anything anyone could "
        f"conclude from the model, would be at most e^epsilon{factor} times as large, plus "
        f"delta = {delta}; and the same the other way round. This holds whatever else is known "
        "about the other records. A person with several rows is protected less than a person with "
        "one.",
        f"How: {statement.steps:,} steps, each a random choice by the exponential mechanism "
        f"(a step is bounded range with eps0 = {rounded_up(statement.eps0)}). Added up by: "
        f"{statement.accountant}. Of delta, {rounded_up(statement.sampling_delta, 2)} covers the "
        "rounding of the random draws. Random numbers: a cryptographic generator keyed by the "
        "operating system.",
    ]


def _assumptions(statement: PrivacyStatement) -> str:
    """Word the last paragraph: what the statement takes as known to everybody."""
    labels = "the two class labels"
    if statement.classes == CLASSES_FROM_Y:
        labels += " (they were taken from the data)"
    if not statement.is_private:
        return (
            f"Settings: {statement.steps:,} steps, mechanism {statement.mechanism!r}, "
            f"randomness {statement.randomness!r}, feature_bound {statement.feature_bound:g}."
        )
    return (
        "Taken as public, and not protected: the number and meaning of the columns, "
        f"{labels}, feature_bound ({statement.feature_bound:g}; larger entries were clipped to "
        "it), l1_radius, n_iter and all other settings. Settings tuned on the same records, and "
        "other releases from them, cost privacy that is not counted here. Covered is the model "
        "with this statement, not logs, error messages, running times or test scores."
    )
