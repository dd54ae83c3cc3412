"""Private scores: the quality of a model's predictions, with noise that protects every row."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dplasso.data.labels import encode_targets, label_matrix, numbers_of
from dplasso.errors import DataError, ParameterError, ParameterTypeError, is_ours, shown
from dplasso.estimators.record_wise import chosen, last_step
from dplasso.fit.method import checked_target_bounds
from dplasso.fit.records import LocalRecords, local_records
from dplasso.ledger import SCORE, Ledger, charged, check_affordable, checked_ledger
from dplasso.model import Model
from dplasso.privacy.parameters import check_epsilon, check_positive, check_rows_per_person
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import PrivacyStatement, StatedRelease, make_statement
from dplasso.privacy.wording import rounded_up, warn_of
from dplasso.tuning.estimates import (
    NUMBERS,
    Bounds,
    ClassScore,
    Metric,
    Scorer,
    Target,
    noisy_sums,
    of_rows,
    score_budget,
)
from dplasso.tuning.isolation import isolate
from dplasso.tuning.metrics import METRICS, chosen_metric

# With fewer rows, noisy sums stay below 2^63.
_LARGEST_ROWS = 2**30


@dataclass(frozen=True)
class PrivateScore:
    """A score that may be released with its statement.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float
        The score.
    low, high, confidence : float
        Confidence interval that covers both the noise and the sampling error.
    privacy : PrivacyStatement
        The guarantee for the rows that were scored.
    by_class : tuple of ClassScore
        For AUC and F1, the score of each of several classes or labels.
    model : str
        Digest of the scored model; empty for a third-party model.
    """

    metric: str
    value: float
    low: float
    high: float
    confidence: float
    privacy: PrivacyStatement
    by_class: tuple[ClassScore, ...] = ()
    model: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the score as JSON values."""
        return asdict(self) | {"privacy": self.privacy.to_dict()}

    def __str__(self) -> str:
        """Return the score in words, and the score of each class below it."""
        text = f"{self.metric} {self.value:.3f} ({self.confidence:.0%} interval {self.low:.3f} to "
        text += f"{self.high:.3f}, noise included), epsilon = {rounded_up(self.privacy.epsilon)}"
        each = (f"  {c.label}: {c.value:.3f} ({c.low:.3f} to {c.high:.3f})" for c in self.by_class)
        return "\n".join([text, *each])


def private_score(
    model: Any,
    X: Any,
    y: "ArrayLike | None" = None,
    epsilon: float = 0.1,
    delta: float = 1e-6,
    *,
    metric: str | None = None,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    groups: "ArrayLike | None" = None,
    target_bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    random_state: Any = None,
    ledger: "str | PathLike[str] | Ledger | None" = None,
) -> PrivateScore:
    """Score a fitted model on labelled rows, privately.

    The guarantee covers the rows passed here. The cost of training the model is separate; for
    people who are in both data sets, the two costs add up.

    Parameters
    ----------
    model : estimator
        A fitted model. Models of this package, and trees and forests of scikit-learn, predict
        quickly; others predict one row per call (docs/scores.md). In a pipeline with a model of
        this package, the other steps must not learn anything (docs/howto-pipelines.md).
    X : sparse or dense matrix, shape (N, D), or a store
        The rows; for a pipeline, the input of its first step.
    y : array-like, shape (N,) or (N, L), default=None
        Labels or targets, or 0 and 1 for each of L labels. Not needed for a store.
    epsilon : float, default=0.1
        Privacy loss, positive and finite.
    delta : float, default=1e-6
        In (0, 1).
    metric : str or None, default=None
        "accuracy", "auc", "f1", "f1_macro", "f1_weighted" or "log_loss" for classes and labels;
        also "auc_weighted" for several classes or labels; "mae" for numbers; or scikit-learn's
        name, such as "roc_auc" (docs/scores.md). The default is "auc" for two classes and for
        labels, "accuracy" for several classes, "mae" for numbers.
    neighbors : {"add-remove", "replace-one", "label"}, default="add-remove"
        The neighbour relation.
    rows_per_person : int, default=1
        Largest number of rows of a person; the noise is proportional to it.
    groups : array-like, shape (N,), default=None
        The person each row belongs to, as in `fit`.
    target_bounds : (float, float), default=None
        Public interval of the target, for "mae"; None for that of the model.
    confidence : float, default=0.95
        Confidence level of the interval.
    random_state : None, int, Generator or RandomState, default=None
        Any value other than None is for experiments, and the statement says so.
    ledger : path or Ledger, default=None
        The ledger to charge before noise is drawn.

    Returns
    -------
    PrivateScore

    Raises
    ------
    ValueError
        For a parameter out of range, a label that is not a class of the model, or NaN in X. Nothing
        is charged then.
    BudgetError, LedgerError
        If the ledger has too little left or cannot be used. Nothing is charged then.
    """
    scored = to_score(model, X, y, metric, target_bounds, groups, rows_per_person)
    chosen = METRICS[scored.metric]
    sums, scorer, statement = paid_sums(
        chosen,
        scored.target,
        lambda: of_rows(chosen.sums, scored.predicting, scored.rows, scored.target),
        "sums",
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        rows_per_person=rows_per_person,
        by_person=scored.rows.by_person,
        confidence=confidence,
        random_state=random_state,
        ledger=ledger,
    )
    return PrivateScore(
        scored.metric,
        *scorer.estimate(sums),
        float(confidence),
        privacy=statement,
        model=scored.digest,
        by_class=chosen.by_class(sums, scorer.sigma, scorer.z, scored.target),
    )


@dataclass(frozen=True)
class Scored:
    """A model that predicts each row separately, and the rows to score, checked."""

    predicting: Any
    rows: LocalRecords
    target: Target
    metric: str
    digest: str


def to_score(
    model: Any,
    X: Any,
    y: "ArrayLike | None",
    metric: str | None,
    target_bounds: tuple[float, float] | None = None,
    groups: "ArrayLike | None" = None,
    rows_per_person: int = 1,
    allowed: tuple[str, ...] = tuple(METRICS),
) -> Scored:
    """Check a model, rows and a metric; None for the default of the target among `allowed`."""
    if not hasattr(model, "predict"):
        raise ParameterTypeError(
            f"only a fitted model can be scored, got {shown(model)}",
            advice="read a model file with dplasso.load",
        )
    whole, raw = model, X
    model, X = last_step(model, X)
    own = chosen(model)
    if is_ours(own) or type(own).__module__.startswith("sklearn."):
        check_is_fitted(own)
    labels = getattr(model, "classes_", None)
    inputs = local_records(model, X, y, takes_matrix=labels is not None)
    predicting, inputs = isolate(whole, raw, inputs)
    target = target_of(model, labels, inputs.n_labels)
    metric = chosen_metric(metric, target, allowed)
    target = replace(target, bounds=checked_bounds(metric, target_bounds, model))
    inputs = inputs.limited(groups, check_rows_per_person(rows_per_person))
    names: Any = getattr(model, "feature_names_in_", inputs.feature_names)
    if inputs.feature_names is not None and list(names) != list(inputs.feature_names):
        raise DataError("X must have the columns of the fitted model, in the same order")
    check_scored(target, inputs.labels)
    released = getattr(model, "model_", None)
    digest = released.digest if isinstance(released, Model) else ""
    return Scored(predicting, inputs, target, metric, digest)


def paid_sums(
    metric: Metric,
    target: Target,
    compute: Callable[[], NDArray[np.int64]],
    words: str,
    *,
    epsilon: float,
    delta: float,
    neighbors: str,
    rows_per_person: int,
    by_person: bool,
    confidence: float = 0.95,
    random_state: Any,
    ledger: "str | PathLike[str] | Ledger | None",
) -> tuple[NDArray[np.float64], Scorer, PrivacyStatement]:
    """Compute sums and charge the ledger; return the noisy sums, the scorer and the statement."""
    epsilon = check_positive("epsilon", check_epsilon(epsilon))
    paid = checked_ledger(ledger, epsilon=epsilon, random_state=random_state)
    if not 0.5 <= confidence < 1.0:
        raise ParameterError(f"`confidence` must lie between 0.5 and 1, got {shown(confidence)}")
    asked = {"epsilon": epsilon, "delta": delta, "rows_per_person": rows_per_person}
    budget, moved = score_budget(metric, target, neighbors=neighbors, **asked)
    scorer = Scorer(metric, target, moved, moved / budget.mu, confidence)
    stream = random_stream(random_state)
    stated = StatedRelease(
        "score", f"Gaussian noise on {words} over all rows", {"sensitivity": moved}
    )
    statement = make_statement(
        budget,
        [stated],
        seeded=random_state is not None,
        classes_declared=True,
        by_person=by_person,
        about="score",
    )
    warn_of(statement.cautions(), stacklevel=4)
    check_affordable(paid, budget, SCORE)
    # A model that refuses a row does so before the charge.
    exact = compute()
    with charged(paid, budget, notes={"kind": SCORE}):
        sums = noisy_sums(exact, moved, scorer.sigma, stream)
    return sums, scorer, statement


def checked_bounds(metric: str, bounds: Any, estimator: Any) -> Bounds:
    """Return the public interval of the target, (0, 1) for a metric without one."""
    if NUMBERS not in METRICS[metric].kinds:
        if bounds is not None:
            raise ParameterError(f"`target_bounds` cannot be combined with `metric={metric!r}`")
        return 0.0, 1.0
    if bounds is None:
        bounds = getattr(estimator, "target_bounds", None)
    if bounds is None:
        raise ParameterError(f"`metric={metric!r}` needs `target_bounds`, a public interval")
    return checked_target_bounds(bounds)


def target_of(model: Any, classes: Any, n_labels: int = 0) -> Target:
    """Return the target of a model with these classes; `DataError` if y has another shape."""
    if classes is None:
        return Target()
    names = tuple(np.asarray(classes).tolist())
    # A third-party model is assumed to match y; its predictions are checked later.
    many = getattr(getattr(model, "privacy_", None), "many_labels", bool(n_labels))
    expected = len(names) if many else 0
    if n_labels != expected:
        counts = [f"{count} labels" if count else "one label" for count in (expected, n_labels)]
        raise DataError(f"the model predicts {counts[0]} for each row, but `y` has {counts[1]}")
    return Target(names, bool(n_labels))


def check_scored(target: Target, y: NDArray[Any]) -> None:
    """Raise `DataError` for rows that cannot be scored."""
    if len(y) >= _LARGEST_ROWS:
        raise DataError(f"{len(y):,} rows are too many for one score")
    if target.kind == NUMBERS:
        encode_targets(y, (0.0, 1.0))
        return
    if target.many_labels:
        label_matrix(y, len(target.classes))
        return
    numbers_of(y, np.asarray(target.classes), "the model's classes")
