"""The privacy statement of a fit: what is guaranteed, to whom, and on what assumptions.

A statement is made of public parameters alone, so it can be released with the model.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from dplasso.privacy import wording
from dplasso.privacy.cautions import Caution, cautions_of
from dplasso.privacy.mechanisms import Accounted
from dplasso.privacy.mechanisms.contract import Words
from dplasso.privacy.statement_entries import WORDS, check_claim, check_kinds, from_json, to_json

__all__ = ["Accounted", "PrivacyStatement", "make_statement", "state_search", "use_of_count"]

# Entries that stand in JSON only where there is something to say.
_WHERE_THERE_IS_ONE = ("prior", "many_labels", "edges", "edges_mu")
# Entries that are what the mechanism says of itself.
_AS_THEY_STAND = (
    *("delta", "neighbors", "eps0", "sensitivity", "feature_bound", "sampling_delta"),
    *("residual_bound", "rows_per_person"),
)
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
    epsilon_requested, delta : float
        What was asked for: `epsilon` is never more, and may be exceeded with probability `delta`.
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
        The part of `delta` that covers the inexactness of the draws.
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
    records : {"not used", "given as public", "counted privately", "counted privately by class"}
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
    release : {"model", "score", "edges"}
        What the statement is about.
    tries : float
        Expected number of tries, where the model is the best of a random number of them; otherwise
        0.
    tries_law : {"", "poisson", "geometric", "logarithmic"}
        The law of their number.
    weight_bound : float or None
        Public bound on the weight of a record, which is what counts 1; weights were clipped to it.
        None where records had none, or nothing is private.
    counted : bool
        Whether a fit that draws columns and refits them began with noisy counts; true of others.
    prior : str
        The public model that the fit started from, and its digest; empty for none.
    many_labels : bool
        Whether a record has or has not each of `n_classes` labels; otherwise it is in one class.
    edges : str
        The bins whose edges were released from the same records before the fit, which `epsilon`
        covers too; empty for none.
    edges_mu : float
        Gaussian differential privacy of that release.
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
    records: str = wording.COUNT_UNUSED
    n_classes: int = 2
    target_bounds: tuple[float, float] | None = None
    rho: float = 0.0
    epsilon_by_rows: dict[str, float] = field(default_factory=dict)
    release: str = "model"
    tries: float = 0.0
    tries_law: str = ""
    weight_bound: float | None = None
    counted: bool = True
    prior: str = ""
    many_labels: bool = False
    edges: str = ""
    edges_mu: float = 0.0

    def __post_init__(self) -> None:
        check_kinds(self)
        check_claim(self)

    @property
    def words(self) -> Words | None:
        """What its mechanism says of itself; None if that is not private."""
        return WORDS.get(self.mechanism)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, in their order, as JSON can hold them; infinity becomes "inf".

        Without a prior, many labels, or edges that were released before, there is no such entry.
        """
        held = {name: to_json(value) for name, value in asdict(self).items()}
        absent = {name for name in _WHERE_THERE_IS_ONE if not held[name]}
        return {name: value for name, value in held.items() if name not in absent}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the statement as the text of one JSON object.

        Parameters
        ----------
        indent : int or None, default=2
            As in `json.dumps`.
        """
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrivacyStatement":
        """Return the statement that `to_dict` was asked for.

        Parameters
        ----------
        values : mapping
            Exactly the entries that `to_dict` gives.

        Raises
        ------
        ValueError
            If an entry is missing, unknown, of the wrong kind, or contradicts another.
        """
        if not isinstance(values, Mapping):
            raise ValueError("A privacy statement must be a mapping of its entries.")
        names = [one.name for one in fields(cls)]
        # Older files lack what was added since, which has a default.
        required = names[: names.index("reasons") + 1]
        if missing := sorted(set(required) - set(values)):
            raise ValueError(f"The privacy statement lacks {', '.join(missing)}.")
        if unknown := sorted(map(str, set(values) - set(names))):
            raise ValueError(f"The privacy statement has unknown entries: {', '.join(unknown)}.")
        return cls(**{name: from_json(name, value) for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> "PrivacyStatement":
        """Return the statement that `to_json` was asked for.

        Parameters
        ----------
        text : str
            One JSON object.

        Raises
        ------
        ValueError
            If the text is not JSON, or not a statement.
        """
        return cls.from_dict(json.loads(text))

    def text(self) -> str:
        """Return in a few short paragraphs what is guaranteed and what is not."""
        told = self.cautions() if self.is_private else []
        cautions = [f"Caution: {one.sentence}." for one in told]
        return "\n\n".join([*wording.guarantee(self), *cautions, wording.assumptions(self)])

    def cautions(self, n_records: float | None = None, *, draft: bool = False) -> list[Caution]:
        """Return why the promise means less than it seems to.

        Parameters
        ----------
        n_records : float, optional
            The number of records, public or counted privately.
        draft : bool, default=False
            Whether the columns were made by a schema that was drafted from the data, and unedited.

        Returns
        -------
        list of Caution
            Level ("red" or "amber"), sentence, and what a fit in Python warns with; red ones first.
        """
        return cautions_of(self, n_records, draft=draft)

    def __str__(self) -> str:
        return self.text()


def use_of_count(mechanism: Accounted, n_records: int | None) -> str:
    """Return how the number of records, which may be given as public, enters the settings of a fit.

    Where rows are replaced one by one their number is public by that.
    """
    moved = mechanism.count_sensitivity
    # Without a count, one that is given still says how far a row's gradient may lag.
    if mechanism.leak or (moved is None and n_records is None):
        return wording.COUNT_UNUSED
    if mechanism.by_class and n_records is None:
        return wording.COUNT_BY_CLASS
    return wording.COUNT_PRIVATE if n_records is None and moved else wording.COUNT_PUBLIC


def make_statement(
    mechanism: Accounted,
    *,
    seeded: bool,
    classes_declared: bool,
    records: str = wording.COUNT_UNUSED,
    n_classes: int = 2,
    target_bounds: tuple[float, float] | None = None,
    weight_bound: float | None = None,
    prior: str = "",
    many_labels: bool = False,
    edges: str = "",
) -> PrivacyStatement:
    """Return what a fit with this mechanism guarantees, from public parameters alone."""
    drawn = mechanism.name != "none"
    reasons = [mechanism.leak] if mechanism.leak else []
    by_rows = {} if reasons else {str(rows): mechanism.epsilon_of_rows(rows) for rows in _ROWS}
    accountant = "" if reasons else mechanism.accountant
    if seeded and drawn:
        reasons.append(_SEED_REASON)
    return PrivacyStatement(
        is_private=not reasons,
        epsilon=mechanism.epsilon_spent,
        epsilon_requested=mechanism.epsilon,
        mechanism=mechanism.name,
        accountant=accountant,
        steps=mechanism.n_iter,
        randomness=_source_of_words(seeded) if drawn else wording.NOT_RANDOM,
        classes=_source_of_classes(classes_declared, numbers=n_classes == 0),
        reasons=tuple(reasons),
        records=records,
        n_classes=n_classes,
        target_bounds=target_bounds,
        epsilon_by_rows=by_rows,
        weight_bound=weight_bound,
        prior=prior,
        many_labels=many_labels,
        edges=edges,
        edges_mu=mechanism.before,
        **{name: getattr(mechanism, name) for name in _AS_THEY_STAND},
        **mechanism.stated,
    )


def _source_of_words(seeded: bool) -> str:
    return wording.SEEDED if seeded else wording.FROM_SYSTEM


def _source_of_classes(declared: bool, *, numbers: bool) -> str:
    if numbers:
        return wording.CLASSES_NONE
    return wording.CLASSES_DECLARED if declared else wording.CLASSES_FROM_Y


def state_search(
    fit: PrivacyStatement | None,
    cost: Any,
    *,
    seeded: bool,
    classes_declared: bool,
    target_bounds: tuple[float, float] | None = None,
    n_labels: int = 0,
) -> PrivacyStatement:
    """Return what a search of a `dplasso.tuning.cost.SearchCost` guarantees.

    `fit`: the statement of the best try by itself; None for an estimator that makes none.
    `n_labels`: of each row, where it may have several.
    """
    known = {
        "epsilon": cost.epsilon_spent,
        "epsilon_requested": cost.epsilon,
        "delta": cost.delta,
        "accountant": "Renyi divergences of repeated selection (arXiv 2110.03620)",
        "sampling_delta": cost.sampling_delta,
        "classes": _source_of_classes(classes_declared, numbers=target_bounds is not None),
        # Those of the fit are about one try.
        "epsilon_by_rows": {},
        "tries": cost.tries.mean,
        "tries_law": cost.tries.law,
    }
    if fit is not None:
        return replace(fit, **known)
    return PrivacyStatement(
        **known,
        is_private=not seeded,
        neighbors=cost.neighbors,
        mechanism="stated",
        steps=1,
        eps0=0.0,
        sensitivity=0.0,
        feature_bound=1.0,
        randomness=_source_of_words(seeded),
        n_classes=n_labels or (2 if target_bounds is None else 0),
        many_labels=n_labels > 0,
        target_bounds=target_bounds,
        reasons=(_SEED_REASON,) if seeded else (),
    )
