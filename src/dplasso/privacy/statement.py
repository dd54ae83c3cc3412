"""The privacy statement of a fit: what is guaranteed, to whom, and on what assumptions.

A statement is made of public parameters alone, so it can be released with the model.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any

from dplasso.privacy.mechanisms import Mechanism, StagedSteps
from dplasso.privacy.mechanisms.gaussian import GaussianSteps
from dplasso.privacy.parameters import NEIGHBOR_RELATIONS
from dplasso.privacy.wording import (
    CLASSES_DECLARED,
    CLASSES_FROM_Y,
    CLASSES_NONE,
    COUNT_PRIVATE,
    COUNT_PUBLIC,
    COUNT_UNUSED,
    FROM_SYSTEM,
    NOT_RANDOM,
    SEEDED,
    STAGED,
    assumptions,
    cautions,
    guarantee,
)

_ALLOWED = {
    "neighbors": NEIGHBOR_RELATIONS,
    "mechanism": ("exponential", "gaussian", STAGED, "stated", "paper", "none"),
    "records": (COUNT_UNUSED, COUNT_PUBLIC, COUNT_PRIVATE),
    "randomness": (FROM_SYSTEM, SEEDED, NOT_RANDOM),
    "classes": (CLASSES_DECLARED, CLASSES_FROM_Y, CLASSES_NONE),
    "release": ("model", "score"),
    "tries_law": ("", "poisson", "geometric", "logarithmic"),
}
# The mechanisms that have an accountant; "stated" is another package's, which states its cost.
_PRIVATE = ("exponential", "gaussian", STAGED, "stated")
_NUMBERS = (
    "epsilon",
    "epsilon_requested",
    "delta",
    "eps0",
    "sensitivity",
    "feature_bound",
    "sampling_delta",
    "residual_bound",
    "mu",
    "rho",
    "tries",
)

Accounted = Mechanism | GaussianSteps | StagedSteps

# Rows of one person for whom the statement gives an epsilon too.
_ROWS = (2, 5, 10)
_SEED_REASON = (
    "random_state was given: whoever knows or guesses it can repeat the random draws and take the "
    "noise away"
)


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
    mechanism : {"exponential", "gaussian", "exponential and gaussian", "stated", "paper", "none"}
        How each step was chosen or made noisy; "stated" by another estimator, at a stated cost.
    accountant : str
        How the steps' costs were added up; empty if they were not.
    steps : int
        Number of steps T; the most there can be, where it follows from a noisy count.
    eps0 : float
        Bounded-range parameter of one step; infinite if not private, 0 where steps have no common
        one.
    sensitivity : float
        How far one coordinate of the summed gradient can move between neighbours; with Gaussian
        noise, how far the whole of it can, in L2.
    feature_bound : float
        Public bound B on the magnitude of an entry; entries were clipped to it.
    sampling_delta : float
        The part of `delta` that covers the inexactness of the random draws.
    randomness : {"operating system", "seeded", "none"}
        Where the random numbers came from.
    classes : {"declared", "taken from y, treated as public", "none"}
        Where the class labels came from.
    reasons : tuple of str
        Why the fit is not private; empty if it is.
    residual_bound : float
        Public bound C on the magnitude of a record's residual.
    mu : float
        Gaussian differential privacy of the whole fit; 0 without Gaussian noise.
    rows_per_person : int
        Rows of one person that the guarantee covers together.
    records : {"not used", "given as public", "counted privately"}
        How the number of records entered the settings.
    n_classes : int
        Number of classes, 0 for a regression.
    target_bounds : tuple of float or None
        Public interval of the targets of a regression; they were clipped to it.
    rho : float
        zCDP of the whole fit, where vertices and gradients share a budget; otherwise 0.
    epsilon_by_rows : dict of str to float
        The epsilon of somebody with 2, 5 or 10 times as many rows as the guarantee covers, at the
        same delta.
    release : {"model", "score"}
        What the statement is about.
    tries : float
        Expected number of tries, where the model is the best of a random number of them; 0 where
        there was no choice.
    tries_law : {"", "poisson", "geometric", "logarithmic"}
        The law of their number.
    weight_bound : float or None
        Public bound on the weight of a record, which is what counts 1; weights were clipped to it.
        None where records had none, or nothing is private.
    counted : bool
        Whether a fit that draws columns and refits them began with noisy counts; true of others.
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
    residual_bound: float = 1.0
    mu: float = 0.0
    rows_per_person: int = 1
    records: str = COUNT_UNUSED
    n_classes: int = 2
    target_bounds: tuple[float, float] | None = None
    rho: float = 0.0
    epsilon_by_rows: dict[str, float] = field(default_factory=dict)
    release: str = "model"
    tries: float = 0.0
    tries_law: str = ""
    weight_bound: float | None = None
    counted: bool = True

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_claim(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as values that JSON can hold; infinity becomes "inf".

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
        if self.target_bounds is not None:
            values["target_bounds"] = list(self.target_bounds)
        values["epsilon_by_rows"] = {
            rows: "inf" if math.isinf(epsilon) else epsilon
            for rows, epsilon in self.epsilon_by_rows.items()
        }
        return values

    def to_json(self, indent: int | None = 2) -> str:
        """Return the statement as JSON text.

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
        names = {one.name for one in fields(cls)}
        entries = dict(values)
        required = {
            one.name
            for one in fields(cls)
            if one.default is MISSING and one.default_factory is MISSING
        }
        required.add("reasons")
        if missing := sorted(required - set(entries)):
            raise ValueError(f"The privacy statement lacks {', '.join(missing)}.")
        if unknown := sorted(str(name) for name in set(entries) - names):
            raise ValueError(f"The privacy statement has unknown entries: {', '.join(unknown)}.")
        for name in _NUMBERS:
            if name not in entries:
                continue
            if entries[name] == "inf":
                entries[name] = math.inf
            elif isinstance(entries[name], int) and not isinstance(entries[name], bool):
                entries[name] = float(entries[name])
        for name in ("reasons", "target_bounds"):
            if isinstance(entries.get(name), list):
                entries[name] = tuple(entries[name])
        by_rows = entries.get("epsilon_by_rows")
        if isinstance(by_rows, dict):
            entries["epsilon_by_rows"] = {
                rows: math.inf if epsilon == "inf" else epsilon for rows, epsilon in by_rows.items()
            }
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
        """Return in plain words what is guaranteed and what is not.

        Returns
        -------
        str
            A few short paragraphs.
        """
        return "\n\n".join([*guarantee(self), *self.cautions(), assumptions(self)])

    def cautions(self, n_records: float | None = None) -> list[str]:
        """Say what of the promise means little.

        `n_records`: the number of records, public or counted privately.

        Returns: a sentence each; empty for a promise that is worth its words.
        """
        return cautions(self, n_records)

    def __str__(self) -> str:
        return self.text()


def use_of_count(mechanism: Accounted, n_records: int | None) -> str:
    """Return how the number of records enters the settings of a fit.

    `mechanism`: the private step.
    `n_records`: as given. Where rows are replaced one by one their number is public by that.
    """
    if mechanism.name == "none" or not isinstance(mechanism, GaussianSteps | StagedSteps):
        return COUNT_UNUSED
    return COUNT_PRIVATE if n_records is None and mechanism.count_sensitivity else COUNT_PUBLIC


def make_statement(
    mechanism: Accounted,
    *,
    seeded: bool,
    classes_declared: bool,
    records: str = COUNT_UNUSED,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    weight_bound: float | None = None,
) -> PrivacyStatement:
    """State what a fit with this mechanism guarantees.

    `mechanism`: the private step that was used.
    `seeded`: whether the random numbers can be repeated (`random_state` was given).
    `classes_declared`: whether the class labels were named by the user, not taken from the
    data.
    `records`: how the number of records entered the settings.
    `n_classes`: number of classes; 0 for a regression.
    `target_bounds`: public interval of the targets of a regression.
    `weight_bound`: public bound on the weights of the records, where they have any.

    Returns: made of public parameters alone.
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
        reasons.append(_SEED_REASON)
    accountant = ""
    if mechanism.name == "exponential":
        accountant = (
            "RDP of zCDP, eps0^2/8 for each eps0-bounded-range step "
            f"(dp-accounting {version('dp-accounting')})"
        )
    if mechanism.name == "gaussian":
        accountant = "the exact curve of Gaussian differential privacy"
    if isinstance(mechanism, StagedSteps) and not math.isinf(mechanism.rho):
        accountant = f"RDP of zCDP (dp-accounting {version('dp-accounting')})"
    by_rows = {}
    if mechanism.name in _PRIVATE:
        by_rows = {str(rows): mechanism.epsilon_of_rows(rows) for rows in _ROWS}
    randomness = NOT_RANDOM if mechanism.name == "none" else SEEDED if seeded else FROM_SYSTEM
    classes = CLASSES_DECLARED if classes_declared else CLASSES_FROM_Y
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
        classes=classes if n_classes else CLASSES_NONE,
        reasons=tuple(reasons),
        residual_bound=mechanism.residual_bound,
        mu=mechanism.mu if isinstance(mechanism, GaussianSteps) else 0.0,
        rows_per_person=mechanism.rows_per_person,
        records=records,
        n_classes=n_classes,
        target_bounds=target_bounds,
        rho=mechanism.rho if isinstance(mechanism, StagedSteps) else 0.0,
        epsilon_by_rows=by_rows,
        weight_bound=weight_bound,
        counted=not isinstance(mechanism, StagedSteps) or mechanism.counted,
    )


def state_search(
    fit: PrivacyStatement | None,
    cost: Any,
    *,
    seeded: bool,
    classes_declared: bool,
    target_bounds: tuple[float, float] | None = None,
) -> PrivacyStatement:
    """State what a search guarantees that released the best of its tries.

    Parameters
    ----------
    fit : PrivacyStatement or None
        Of the best try by itself; None for an estimator that makes no such statement.
    cost : SearchCost
        What the whole costs.
    seeded, classes_declared, target_bounds
        As in `make_statement`.

    Returns
    -------
    PrivacyStatement
        With the epsilon and delta of the whole.
    """
    classes = CLASSES_DECLARED if classes_declared else CLASSES_FROM_Y
    if target_bounds is not None:
        classes = CLASSES_NONE
    if fit is None:
        fit = PrivacyStatement(
            is_private=not seeded,
            epsilon=cost.epsilon_spent,
            epsilon_requested=cost.epsilon,
            delta=cost.delta,
            neighbors=cost.neighbors,
            mechanism="stated",
            accountant="",
            steps=1,
            eps0=0.0,
            sensitivity=0.0,
            feature_bound=1.0,
            sampling_delta=0.0,
            randomness=SEEDED if seeded else FROM_SYSTEM,
            classes=classes,
            n_classes=2 if target_bounds is None else 0,
            target_bounds=target_bounds,
            reasons=(_SEED_REASON,) if seeded else (),
        )
    return replace(
        fit,
        epsilon=cost.epsilon_spent,
        epsilon_requested=cost.epsilon,
        delta=cost.delta,
        accountant="Renyi divergences of repeated selection (arXiv 2110.03620)",
        sampling_delta=cost.sampling_delta,
        classes=classes,
        # Those of the fit are about one try.
        epsilon_by_rows={},
        tries=cost.tries.mean,
        tries_law=cost.tries.law,
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
    bounds, n_classes = statement.target_bounds, statement.n_classes
    if not isinstance(n_classes, int) or isinstance(n_classes, bool) or n_classes < 0:
        raise ValueError(
            f"n_classes of a privacy statement must be a whole number >= 0, got {n_classes!r}."
        )
    if bounds is not None and not (
        isinstance(bounds, tuple)
        and [type(end) for end in bounds] == [float, float]
        and -math.inf < bounds[0] < bounds[1] < math.inf
    ):
        raise ValueError(f"target_bounds of a privacy statement cannot be {bounds!r}.")
    if not isinstance(statement.counted, bool):
        raise ValueError("counted of a privacy statement must be true or false.")
    bound = statement.weight_bound
    if bound is not None and not (isinstance(bound, float) and 0.0 < bound < math.inf):
        raise ValueError(
            f"weight_bound of a privacy statement must be a number > 0, got {bound!r}."
        )
    by_rows = statement.epsilon_by_rows
    if not isinstance(by_rows, dict) or not all(
        isinstance(epsilon, float) and epsilon >= 0 for epsilon in by_rows.values()
    ):
        raise ValueError("epsilon_by_rows of a privacy statement must map rows to numbers >= 0.")
    if not isinstance(statement.accountant, str):
        raise ValueError("accountant of a privacy statement must be text.")
    reasons = statement.reasons
    if not isinstance(reasons, tuple) or not all(isinstance(reason, str) for reason in reasons):
        raise ValueError("reasons of a privacy statement must be a list of texts.")


def _check_claim(statement: PrivacyStatement) -> None:
    """Refuse a statement that claims more than its own entries support."""
    if bool(statement.tries) != bool(statement.tries_law):
        raise ValueError("A privacy statement gives the tries of a search and their law, or none.")
    numbers = [statement.n_classes == 0, statement.target_bounds is not None]
    if len({*numbers, statement.classes == CLASSES_NONE}) > 1:
        raise ValueError("A privacy statement has either classes or an interval of the targets.")
    if statement.is_private == bool(statement.reasons):
        raise ValueError("A privacy statement gives reasons exactly when it is not private.")
    has_bound = math.isfinite(statement.epsilon) and math.isfinite(statement.eps0)
    if (statement.mechanism in _PRIVATE) != has_bound:
        raise ValueError("Only a mechanism that is private has a finite epsilon.")
    if has_bound and statement.epsilon > statement.epsilon_requested:
        raise ValueError("A privacy statement cannot have spent more epsilon than was asked for.")
    if statement.is_private and not (has_bound and statement.randomness == FROM_SYSTEM):
        raise ValueError(
            "A private statement needs a private mechanism and operating-system randomness."
        )
