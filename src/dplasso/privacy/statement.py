"""The privacy statement of a fit, made of public parameters alone."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from dplasso.files.json_values import json_safe
from dplasso.privacy import wording
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import RELATIONS

# Mechanisms with a guarantee.
PRIVATE_MECHANISMS = ("exponential", "gaussian", "exponential and gaussian")
# Rows of one person for whom the statement gives an epsilon too.
_ROWS = (2, 5, 10)
_SEED_REASON = (
    "a seed was given, and whoever knows or guesses it can repeat the random draws and remove the "
    "noise"
)


class StatedRelease(NamedTuple):
    """A release that a statement is about: name, words, and numbers such as "sensitivity"."""

    name: str
    words: str
    numbers: Mapping[str, float]


def of_people(rows_per_person: int) -> StatedRelease:
    """Return the first entry of a statement about people, some of whose rows enter."""
    first = wording.first_rows(rows_per_person)
    return StatedRelease("people", f"only {first} of each person entered", {})


_WHOLE = ("steps", "rows_per_person", "n_classes")
_CHOICES = {
    "neighbors": tuple(RELATIONS),
    "mechanism": (*PRIVATE_MECHANISMS, "paper", "none"),
    "records": (
        *(wording.COUNT_UNUSED, wording.COUNT_PUBLIC, wording.COUNT_PRIVATE),
        wording.COUNT_BY_CLASS,
    ),
    "randomness": (wording.FROM_SYSTEM, wording.SEEDED, wording.NOT_RANDOM),
    "classes": (wording.CLASSES_DECLARED, wording.CLASSES_FROM_Y, wording.CLASSES_NONE),
    "about": ("model", "score", "edges"),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_release(value: Any) -> bool:
    return (
        isinstance(value, StatedRelease)
        and _is_text(value.name)
        and _is_text(value.words)
        and isinstance(value.numbers, Mapping)
        and all(_is_text(name) and _is_number(value.numbers[name]) for name in value.numbers)
    )


def _fits(name: str, value: Any) -> bool:
    """Return whether a file may hold a value in the entry of this name."""
    if name in _CHOICES:
        return value in _CHOICES[name]
    if name in _WHOLE:
        return type(value) is int and value >= (name != "n_classes")
    match name:
        case "is_private" | "many_labels":
            return isinstance(value, bool)
        case "accountant" | "prior" | "public_rows":
            return _is_text(value)
        case "delta":
            return _is_number(value) and 0.0 < value < 1.0
        case "target_bounds":
            floats = isinstance(value, tuple) and [type(end) for end in value] == [float, float]
            return value is None or (floats and -math.inf < value[0] < value[1] < math.inf)
        case "epsilon_by_rows":
            return isinstance(value, dict) and all(map(_is_number, value.values()))
        case "reasons":
            return isinstance(value, tuple) and all(map(_is_text, value))
        case "releases":
            return isinstance(value, tuple) and all(map(_is_release, value))
    return _is_number(value)


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fit guarantees about the records it was made from.

    Attributes
    ----------
    is_private : bool
        Whether the released model is (epsilon, delta)-differentially private.
    epsilon : float
        What was spent; infinite without a guarantee. For a seeded run, what it would have spent
        without the seed.
    epsilon_requested, delta : float
        What was asked for; `epsilon` is never more.
    neighbors : {"add-remove", "replace-one", "label"}
        Which data sets the guarantee compares.
    mechanism : {"exponential", "gaussian", "exponential and gaussian", "paper", "none"}
        How each step was chosen or made noisy.
    accountant : str
        How the costs were added up; empty if they were not.
    mu : float
        What all releases together spend: ``mu``-GDP if all noise is Gaussian and nothing was
        searched, else ``mu**2 / 2``-zCDP. Infinite if not private.
    steps : int
        Number of steps of all releases together, at most.
    sampling_delta : float
        The part of `delta` that covers the inexactness of the draws.
    randomness : {"operating system", "seeded", "none"}
        Where the random numbers came from.
    classes : {"declared", "taken from y, treated as public", "none"}
        Where the class labels came from.
    releases : tuple of StatedRelease
        What is released, in order: a name, words and numbers each.
    reasons : tuple of str
        Why the fit is not private; empty if it is.
    rows_per_person : int
        Rows of one person that the guarantee covers.
    records : {"not used", "given as public", "counted privately", "counted privately by class"}
        How the number of records entered the settings.
    n_classes : int
        Number of classes, 0 for a regression.
    target_bounds : tuple of float or None
        Public interval of the targets of a regression.
    epsilon_by_rows : dict of str to float
        The epsilon of a person with 2, 5 or 10 times as many rows as the guarantee covers; empty if
        it covers all rows of a person.
    about : {"model", "score", "edges"}
        What the statement is about.
    prior, public_rows : str
        The public model and the public rows that the fit used, with digests; empty for none.
    many_labels : bool
        Whether a record may have any subset of `n_classes` labels.
    """

    is_private: bool
    epsilon: float
    epsilon_requested: float
    delta: float
    neighbors: str
    mechanism: str
    accountant: str
    mu: float
    steps: int
    sampling_delta: float
    randomness: str
    classes: str
    releases: tuple[StatedRelease, ...]
    reasons: tuple[str, ...] = ()
    rows_per_person: int = 1
    records: str = wording.COUNT_UNUSED
    n_classes: int = 2
    target_bounds: tuple[float, float] | None = None
    epsilon_by_rows: dict[str, float] = field(default_factory=dict)
    about: str = "model"
    prior: str = ""
    public_rows: str = ""
    many_labels: bool = False

    def __post_init__(self) -> None:
        _check_claim(self)

    @property
    def by_person(self) -> bool:
        """Whether it protects all rows of a person together, however many there are."""
        return self.find("people") is not None

    @property
    def protected(self) -> str:
        """Who is protected, in a few words."""
        relation, rows = RELATIONS[self.neighbors], self.rows_per_person
        return f"{relation.part(2)}each person" if self.by_person else relation.protected(rows)

    def find(self, name: str) -> StatedRelease | None:
        """Return the first release of a name, such as "gradients"; None if there is none."""
        return next((item for item in self.releases if item.name == name), None)

    def number(self, name: str) -> float | None:
        """Return the first number that a release states by a name, such as "sensitivity"."""
        return next((item.numbers[name] for item in self.releases if name in item.numbers), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, in their order, as JSON can hold them; infinity becomes "inf"."""
        held = asdict(replace(self, releases=()))
        held["releases"] = [item._asdict() for item in self.releases]
        return {name: json_safe(value) for name, value in held.items()}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the statement as the text of one JSON object; `indent` as in `json.dumps`."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrivacyStatement":
        """Return the statement from which `to_dict` made these entries.

        Raises
        ------
        ValueError
            If an entry is missing, unknown, of the wrong kind, or contradicts another.
        """
        if not isinstance(values, Mapping):
            raise ValueError("A privacy statement must be a mapping of its entries.")
        names = {field.name for field in fields(cls)}
        if missing := sorted(names - set(values)):
            raise ValueError(f"The privacy statement lacks {', '.join(missing)}.")
        if unknown := sorted(map(str, set(values) - names)):
            raise ValueError(f"The privacy statement has unknown entries: {', '.join(unknown)}.")
        entries = {name: _from_json(name, value) for name, value in values.items()}
        for name, value in entries.items():
            if not _fits(name, value):
                raise ValueError(f"{name} of a privacy statement cannot be {value!r}.")
        return cls(**entries)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyStatement":
        """Return the statement that `to_json` wrote; ValueError as `from_dict`."""
        return cls.from_dict(json.loads(text))

    def text(self) -> str:
        """Return in a few short paragraphs what is guaranteed and what is not."""
        cautions = self.cautions() if self.is_private else []
        sentences = [f"Caution: {caution.sentence}." for caution in cautions]
        return "\n\n".join([*wording.guarantee(self), *sentences, wording.assumptions(self)])

    cautions = wording.cautions_of
    __str__ = text


def _from_json(name: str, value: Any) -> Any:
    """Return the entry that `json_safe` was called with; whole numbers become floats."""
    if name == "releases":
        try:
            return tuple(
                StatedRelease(item["name"], item["words"], _from_json("", item["numbers"]))
                for item in value
            )
        except (TypeError, KeyError):
            raise ValueError("The privacy statement holds releases of no known form.") from None
    if isinstance(value, list):
        return tuple(_from_json(name, item) for item in value)
    if isinstance(value, Mapping):
        return {key: _from_json(name, item) for key, item in value.items()}
    if value == "inf":
        return math.inf
    return float(value) if type(value) is int and name not in _WHOLE else value


def make_statement(
    budget: Budget,
    releases: Sequence[StatedRelease],
    *,
    seeded: bool,
    classes_declared: bool,
    n_classes: int = 2,
    by_person: bool = False,
    **public: Any,
) -> PrivacyStatement:
    """Return what a fit with this budget guarantees; `public` are other attributes.

    `by_person`: whether the rows of each person were limited.
    """
    drawn, source = budget.name != "none", wording.SEEDED if seeded else wording.FROM_SYSTEM
    reasons = [budget.leak] if budget.leak else []
    people, by_rows = [], dict[str, float]()
    if by_person:
        people = [of_people(budget.rows_per_person)]
    elif not reasons:
        by_rows = {str(rows): budget.epsilon_of_rows(rows) for rows in _ROWS}
    accountant = "" if reasons else budget.accountant
    if seeded and drawn:
        reasons.append(_SEED_REASON)
    return PrivacyStatement(
        is_private=not reasons,
        epsilon=budget.epsilon_spent,
        epsilon_requested=budget.epsilon,
        delta=budget.delta,
        neighbors=budget.neighbors,
        mechanism=budget.name,
        accountant=accountant,
        mu=budget.whole,
        steps=budget.n_iter,
        sampling_delta=budget.sampling_delta,
        randomness=source if drawn else wording.NOT_RANDOM,
        classes=_source_of_classes(classes_declared, numbers=n_classes == 0),
        releases=(*people, *releases),
        reasons=tuple(reasons),
        rows_per_person=budget.rows_per_person,
        n_classes=n_classes,
        epsilon_by_rows=by_rows,
        **public,
    )


def _source_of_classes(declared: bool, *, numbers: bool) -> str:
    if numbers:
        return wording.CLASSES_NONE
    return wording.CLASSES_DECLARED if declared else wording.CLASSES_FROM_Y


def state_search(
    fit: PrivacyStatement, cost: Any, *, classes_declared: bool, by_person: bool
) -> PrivacyStatement:
    """Return what a search with a `dplasso.tuning.search_cost.SearchCost` guarantees.

    `fit`: the statement of a try.
    """
    people = [of_people(fit.rows_per_person)] if by_person else []
    tries = StatedRelease(
        "search",
        f"the best of a random number of tries (logarithmic law, {cost.tries.mean:g} expected), "
        "each fitted on a part of the records and scored with noise on the others; their number "
        "and the results of the others are not released",
        {"tries": float(cost.tries.mean)},
    )
    return replace(
        fit,
        releases=(*people, tries, *fit.releases),
        epsilon=cost.epsilon_spent,
        epsilon_requested=cost.epsilon,
        delta=cost.delta,
        accountant="Renyi divergences of repeated selection (arXiv 2110.03620)",
        mu=math.sqrt(2.0 * float(cost.rho)),
        sampling_delta=cost.sampling_delta,
        classes=_source_of_classes(classes_declared, numbers=fit.target_bounds is not None),
        # Those of the fit are about one try.
        epsilon_by_rows={},
    )


def _check_claim(statement: PrivacyStatement) -> None:
    """Refuse a statement that claims more than its own entries support."""
    numbers = [statement.n_classes == 0, statement.target_bounds is not None]
    if len({*numbers, statement.classes == wording.CLASSES_NONE}) > 1:
        raise ValueError("A privacy statement has either classes or an interval of the targets.")
    if statement.many_labels and statement.n_classes < 2:
        raise ValueError("A privacy statement of many labels has two or more of them.")
    if statement.is_private == bool(statement.reasons):
        raise ValueError("A privacy statement gives reasons exactly when it is not private.")
    has_bound = math.isfinite(statement.epsilon) and math.isfinite(statement.mu)
    if (statement.mechanism in PRIVATE_MECHANISMS) != has_bound:
        raise ValueError("Only a mechanism that is private has a finite epsilon.")
    if has_bound and statement.epsilon > statement.epsilon_requested:
        raise ValueError("A privacy statement cannot have spent more epsilon than was asked for.")
    if statement.is_private and not (has_bound and statement.randomness == wording.FROM_SYSTEM):
        raise ValueError(
            "A private statement needs a private mechanism and operating-system randomness."
        )
