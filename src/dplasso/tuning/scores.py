"""Private scores: how well a model predicts, with noise that hides every single row."""

import math
import warnings
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dplasso.data.labels import encode_targets, refuse_strange
from dplasso.data.refusals import of_a_stranger
from dplasso.errors import DataError
from dplasso.estimators.record_wise import last_step
from dplasso.fit.records import LocalRecords, local_records
from dplasso.ledger import SCORE, charged, check_affordable, check_ledger_settings
from dplasso.model import Model
from dplasso.model.release import digest_of
from dplasso.privacy.cautions import warn_of
from dplasso.privacy.gaussian_noise import LARGEST_SCALE, SMALLEST_SCALE
from dplasso.privacy.mechanisms.gaussian import GaussianSteps, build_gaussian
from dplasso.privacy.parameters import check_choice, check_epsilon, check_neighbors, check_positive
from dplasso.privacy.randomness import RandomStream, random_stream, word_buffers
from dplasso.privacy.release import Gaussian, release
from dplasso.privacy.statement import PrivacyStatement, make_statement
from dplasso.tuning.metrics import (
    METRICS,
    UNIT,
    Bounds,
    CurvePoint,
    Estimate,
    Metric,
    calibration_curve,
    standard_errors,
)

# More sums than any metric has, for what the rounding of their noise may cost.
_SUMS = 64
# Sums of so many units stay below 2^63 with the noise.
_LARGEST_ROWS = 2**30


@dataclass(frozen=True)
class PrivateScore:
    """A score that may be released with its statement.

    Attributes
    ----------
    metric : str
        Which.
    value : float
        The score; for "calibration" the share of the second class.
    low, high : float
        Ends of a confidence interval that covers both the noise and the chance of the rows.
    confidence : float
        Its probability.
    curve : tuple of CurvePoint
        For "calibration" only.
    privacy : PrivacyStatement
        What the score guarantees about the rows that it was computed on.
    model : str
        Digest of what the scored model released; empty for another package's.
    """

    metric: str
    value: float
    low: float
    high: float
    confidence: float
    curve: tuple[CurvePoint, ...]
    privacy: PrivacyStatement
    model: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the score as values that JSON can hold."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        curve = [asdict(point) for point in self.curve]
        return values | {"curve": curve, "privacy": self.privacy.to_dict()}


def private_score(
    model: Any,
    X: Any,
    y: "ArrayLike | None" = None,
    epsilon: float = 0.1,
    delta: float = 1e-6,
    *,
    metric: str = "accuracy",
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    groups: "ArrayLike | None" = None,
    target_bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    random_state: Any = None,
    ledger: str | PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str | None = None,
) -> PrivateScore:
    """Score a fitted model on labelled rows, privately.

    The guarantee is about the rows given here. What the model's training cost is another matter,
    and adds up where the same people are in both.

    Parameters
    ----------
    model : estimator
        Fitted; it must predict each row by that row alone. Of a pipeline that ends in a model of
        this package, the other steps have to learn nothing (docs/howto-pipelines.md).
    X : sparse or dense matrix, shape (N, D), or a store
        The rows; of a pipeline whatever its first step takes.
    y : array-like, shape (N,), default=None
        Labels or targets. Only a store may go without.
    epsilon : float, default=0.1
        Privacy loss, positive and finite.
    delta : float, default=1e-6
        In (0, 1).
    metric : {"accuracy", "auc", "log_loss", "calibration", "mae", "r2"}, default="accuracy"
        "auc" is that of probabilities rounded to a public grid of 24 places; "log_loss" takes no
        probability below 0.01.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        The neighbour relation.
    rows_per_person : int, default=1
        Rows of one person, at most; the noise grows in proportion.
    groups : array-like, shape (N,), default=None
        The person each row belongs to: of each, the first `rows_per_person` rows enter.
    target_bounds : (float, float), default=None
        Public interval that targets and predictions are clipped to, for "mae" and "r2"; None takes
        the model's own `target_bounds`.
    confidence : float, default=0.95
        Of the interval.
    random_state : None, int, Generator or RandomState, default=None
        Anything but None is for experiments, and the statement says so.
    ledger, dataset, purpose : path, str, str, default=None
        The budget that is charged before anything is computed, and what for.

    Returns
    -------
    PrivateScore

    Raises
    ------
    ValueError
        For a parameter out of range, a label that the model does not know, or NaN in X; all found
        before anything is charged.
    BudgetError, LedgerError
        If the ledger has too little left or cannot be used; nothing is spent.
    """
    check_choice("metric", metric, tuple(METRICS))
    model, X = last_step(model, X)
    if METRICS[metric].classifies != (getattr(model, "classes_", None) is not None):
        fit = "classes" if METRICS[metric].classifies else "numbers"
        raise ValueError(f"metric={metric!r} is for models that predict {fit}; this one does not")
    settings = {"ledger": ledger, "dataset": dataset, "purpose": purpose}
    epsilon = check_positive("epsilon", check_epsilon(epsilon))
    check_ledger_settings(
        {**settings, "mechanism": "gaussian", "epsilon": epsilon, "random_state": random_state}
    )
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must lie between 0.5 and 1, got {confidence!r}")
    chosen, bounds = METRICS[metric], checked_bounds(metric, target_bounds, model)
    mechanism = score_mechanism(
        chosen, epsilon, delta, neighbors=neighbors, rows_per_person=rows_per_person
    )
    sigma = mechanism.sensitivity / mechanism.mu
    scorer = Scorer(chosen, bounds, mechanism.sensitivity, sigma, confidence)
    stream = random_stream(random_state)
    inputs = local_records(model, X, y)
    if groups is not None:
        inputs = inputs.limited(groups, rows_per_person)
    _check_names(getattr(model, "feature_names_in_", None), inputs.feature_names)
    check_scored(chosen, getattr(model, "classes_", None), inputs.y)
    statement = make_statement(mechanism, seeded=random_state is not None, classes_declared=True)
    released, scored = getattr(model, "model_", None), ""
    if isinstance(released, Model):
        scored = digest_of(released.release)
    statement = replace(statement, release="score")
    warn_of(statement.cautions(), stacklevel=3)
    check_affordable(ledger, dataset, mechanism, SCORE)
    with charged(ledger, dataset, mechanism, notes={"purpose": purpose, "kind": SCORE}):
        sums = scorer.sums(model, inputs, stream)
    curve = calibration_curve(sums, sigma, scorer.z) if metric == "calibration" else ()
    return PrivateScore(
        metric,
        *scorer.estimate(sums),
        float(confidence),
        curve,
        statement,
        scored,
    )


@dataclass(frozen=True)
class Scorer:
    """How models are scored; public. `sensitivity` and `sigma`, of the noise, are in rows."""

    metric: Metric
    bounds: Bounds
    sensitivity: float
    sigma: float
    confidence: float

    @property
    def z(self) -> float:
        """Return how many standard errors an interval reaches to each side."""
        return standard_errors(self.confidence)

    def sums(self, model: Any, rows: LocalRecords, stream: RandomStream) -> NDArray[np.float64]:
        """Return the noisy sums of a model's predictions for rows."""
        with of_a_stranger(model), warnings.catch_warnings():
            # They were compared before.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            exact = self.metric.sums(model, rows.X, rows.y, self.bounds)
        return noisy_sums(exact, self.sensitivity, self.sigma, stream)

    def estimate(self, sums: NDArray[np.float64]) -> Estimate:
        """Return what noisy sums say."""
        return self.metric.estimate(sums, self.sigma, self.z, self.bounds)


def score_mechanism(
    metric: Metric,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
) -> GaussianSteps:
    """Return the noise of a score, calibrated."""
    mechanism = build_gaussian(
        epsilon=epsilon,
        delta=delta,
        n_iter=1,
        n_coordinates=_SUMS,
        neighbors=neighbors,
        residual_bound=share_bound(metric, neighbors),
        rows_per_person=rows_per_person,
    )
    check_noise(mechanism.sensitivity / mechanism.mu)
    return mechanism


def share_bound(metric: Metric, neighbors: str) -> float:
    """Return C such that one row moves the sums by at most C (`replace-one`: 2 C) in L2."""
    return metric.share if check_neighbors(neighbors) == "add-remove" else metric.exchange / 2.0


def check_noise(sigma: float) -> None:
    """Raise ValueError for noise, in rows, too large for 64 bits or finer than its units."""
    if not SMALLEST_SCALE <= sigma * UNIT <= LARGEST_SCALE:
        raise ValueError(
            f"epsilon leaves a score noise of standard deviation {sigma:.3g} rows; between "
            f"{SMALLEST_SCALE / UNIT:.3g} and {LARGEST_SCALE / UNIT:,.0f} can be drawn"
        )


def checked_bounds(metric: str, bounds: Any, estimator: Any) -> Bounds:
    """Return the public interval of the target; (0, 1) for a metric that has none.

    An estimator that declares one by its parameter `target_bounds` need not be told again.
    """
    if METRICS[metric].classifies:
        if bounds is not None:
            raise ValueError(f"target_bounds does not go with metric={metric!r}")
        return 0.0, 1.0
    if bounds is None:
        bounds = getattr(estimator, "target_bounds", None)
    if bounds is None:
        raise ValueError(f"metric={metric!r} needs target_bounds=(low, high), a public interval")
    low, high = (float(end) for end in bounds)
    if not (math.isfinite(high - low) and low < high):
        raise ValueError(f"target_bounds must be two finite numbers, low < high, got {bounds!r}")
    return low, high


def check_scored(metric: Metric, classes: Any, y: NDArray[Any]) -> None:
    """Raise DataError for rows that a metric cannot take."""
    if y.size >= _LARGEST_ROWS:
        raise DataError(f"{y.size:,} rows are too many for one score")
    if not metric.classifies:
        encode_targets(y, (0.0, 1.0))
        return
    if metric.two_classes and len(classes) != 2:
        raise DataError(f"this metric is for two classes; there are {len(classes)}")
    classes = np.asarray(classes)
    refuse_strange(~np.isin(y, classes), "the model's classes", classes)


def _check_names(model: Any, rows: NDArray[np.object_] | None) -> None:
    if model is not None and rows is not None and list(model) != list(rows):
        raise DataError("X has other columns than the model was fitted on, or in another order")


def noisy_sums(
    sums: NDArray[np.int64], sensitivity: float, sigma: float, stream: RandomStream
) -> NDArray[np.float64]:
    """Return sums, given in units of 2^-32, with integer Gaussian noise, in units of 1.

    The sensitivity, in L2, and the noise's standard deviation sigma are in units of 1.
    """
    noise = Gaussian(sigma * UNIT, word_buffers(stream, 1)[0])
    found: NDArray[np.float64] = release(sums.copy(), sensitivity * UNIT, noise) / UNIT
    return found
