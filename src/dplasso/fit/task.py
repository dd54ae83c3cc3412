"""What a fit learns: a class, of two or of several, many labels, or a number of an interval.

`Labels` and `Bounded` hold what the parameters say about the targets before there are data.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from dplasso.data.labels import (
    checked_class_weight,
    classes_of,
    encode_targets,
    label_matrix,
    numbers_of,
)
from dplasso.errors import DataError, ParameterError
from dplasso.fit.public_model import PublicModel, text_of
from dplasso.gradient_descent.schedule import CALIBRATION_SHARE, KAPPA
from dplasso.losses.logistic import Logistic, ManyLogistic
from dplasso.losses.multinomial import (
    ClippedMultinomial,
    Multinomial,
    norm_bound,
)
from dplasso.losses.squared import Squared
from dplasso.phases.count import COUNT_SHARE

# Weights, intercepts, and standard errors of the weights or None.
LinearParts = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a fit learns; `classes`: the labels, of two the negative first."""

    classes: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    target_bounds: tuple[float, float] | None = None

    many_labels: ClassVar[bool] = False
    # Bound C on each residual where columns are drawn; wider if nothing need be clipped.
    bound: float = 0.5
    # How far noise may move the margin of a unit row in a dense run, and in a refit.
    kappa: float = KAPPA
    refit_kappa: float = 1.0
    # Weight of each drawn column before the refit, times the root of their number.
    column_step: float = 0.8
    # Whether a fit first finds how far targets spread.
    spreads: bool = False
    # Share of the budget that calibrates the margins at the end.
    calibration: ClassVar[float] = CALIBRATION_SHARE
    # Share of the budget for counts that say where margins start.
    counting: ClassVar[float] = COUNT_SHARE
    # The longest list whose rows keep their lengths: in few columns, directions say little.
    most_with_lengths: ClassVar[float] = 12
    # Bound on each residual for intervals.
    inference_bound: ClassVar[float] = 1.0
    learns: ClassVar[str] = "classes"

    @property
    def n_outputs(self) -> int:
        """Margins of a record."""
        return 1

    def keeps_lengths(self, length: int) -> bool:
        """Return whether rows in a list of so many columns keep their lengths; 0 for no list."""
        return (length or math.inf) <= self.most_with_lengths

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return numbers_of(y, self.classes)

    def spread(self, deviation: float, signal: float) -> "Task":  # noqa: ARG002
        """Return the task once the deviation of its targets is released; `signal` is N mu."""
        return self

    @property
    def gradient_bound(self) -> float:
        """Bound on a record's residuals in a dense run, which clips none at zero weights."""
        return self.norm_bound(self.bound)

    def norm_bound(self, residual_bound: float) -> float:
        """Return the bound on that length that goes with a bound on each residual."""
        return residual_bound

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        """Return the loss that columns are drawn by; its margins start at an offset."""
        raise NotImplementedError

    def gradient_loss(self, bound: float) -> Any:
        return self.vertex_loss(bound)

    def refit_loss(self, vertex_loss: Any) -> Any:
        """Return the loss of the refit, which bounds the length of a record's residuals."""
        return vertex_loss

    def decided(self, margins: NDArray[np.float64]) -> NDArray[Any]:
        raise NotImplementedError

    def margins_of(self, model: PublicModel) -> LinearParts:
        """Return weights, intercepts and errors of the margins, from those of a public model."""
        weights, intercept, error = model.weights, model.intercept, model.error
        intercept = np.zeros(weights.shape[0]) if intercept is None else intercept
        ours, n_rows = [text_of(label) for label in self.classes.tolist()], weights.shape[0]
        theirs = ours if model.labels is None else [text_of(label) for label in model.labels]
        if sorted(theirs) != sorted(ours) or n_rows not in (len(ours), self.n_outputs):
            difference = f"has {n_rows} weight{'' if n_rows == 1 else 's'} for each column"
            if model.labels is not None:
                difference = f"is of the classes {', '.join(theirs)}"
            raise ParameterError(
                f"`prior` {difference}, and the data have the classes {', '.join(ours)}; they must "
                "be the same"
            )
        if n_rows == 1:
            sign = 1.0 if theirs == ours else -1.0
            return sign * weights, sign * intercept, error
        order = [theirs.index(label) for label in ours]
        weights, intercept = weights[order], intercept[order]
        error = None if error is None else error[order]
        if self.n_outputs > 1:
            return weights, intercept, error
        # The margin of two classes is the difference.
        combined = None if error is None else np.hypot(error[:1], error[1:])
        return weights[1:] - weights[:1], intercept[1:] - intercept[:1], combined

    def plain_model(self) -> tuple[Any, str, str]:
        """Return a model for public rows, the name of its strength, and its score."""
        return LogisticRegression(max_iter=1_000), "C", "neg_log_loss"

    def plain_labels(self, y: NDArray[Any]) -> NDArray[Any]:
        kinds = {self.classes.dtype.kind, y.dtype.kind}
        if "b" in kinds <= set("biuf") and np.isin(y, self.classes).all():
            # 0 and 1 are the same labels as False and True.
            y = y.astype(self.classes.dtype)
        theirs, ours = np.unique(y).tolist(), self.classes.tolist()
        if len(theirs) < 2 or set(map(text_of, theirs)) != set(map(text_of, ours)):
            raise DataError(
                f"`y` holds the classes {', '.join(map(text_of, theirs))}, and the data have "
                f"{', '.join(map(text_of, ours))}; they must be the same"
            )
        return y

    def folds(self, labels: NDArray[Any], most: int) -> Any:
        count = min(most, int(np.unique(labels, return_counts=True)[1].min()))
        return StratifiedKFold(count, shuffle=True, random_state=0) if count > 1 else None


@dataclass(frozen=True)
class Binary(Task):
    """Two classes, as targets 0 and 1."""

    classes: NDArray[Any]
    class_weights: tuple[float, ...] = (1.0, 1.0)

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        return Logistic(residual_bound, offset or 0.0, *self.class_weights)

    def decided(self, margins: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self.classes[(margins > 0).astype(np.intp)])


@dataclass(frozen=True)
class Multiclass(Task):
    """Three classes or more, as targets 0 to K - 1; `class_weights` of shape (K,) or empty."""

    classes: NDArray[Any]
    class_weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def n_outputs(self) -> int:
        return int(self.classes.size)

    def norm_bound(self, residual_bound: float) -> float:
        return norm_bound(self.n_outputs, residual_bound)

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        offset = np.zeros(self.n_outputs) if offset is None else offset
        return ClippedMultinomial(residual_bound, offset, self.class_weights)

    def gradient_loss(self, bound: float) -> Any:
        return Multinomial(self.n_outputs, bound, self.class_weights)

    def refit_loss(self, vertex_loss: Any) -> Any:
        return self.gradient_loss(self.norm_bound(vertex_loss.residual_bound))

    def decided(self, margins: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self.classes[margins.argmax(axis=1)])


@dataclass(frozen=True)
class ManyLabels(Task):
    """Labels that a record has or has not: targets 0 and 1, shape (N, L); `classes` names them."""

    classes: NDArray[Any]

    many_labels: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        return int(self.classes.size)

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return label_matrix(y, self.n_outputs)

    plain_labels = encode

    def norm_bound(self, residual_bound: float) -> float:
        # Each label may reach its own bound.
        return math.sqrt(self.n_outputs) * residual_bound

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:  # noqa: ARG002
        raise ValueError(
            f"`y` has a column for each of {self.n_outputs} labels, and only DPLogisticRegression "
            "learns several labels of a row"
        )

    def gradient_loss(self, bound: float) -> Any:
        return ManyLogistic(self.n_outputs, bound)

    def decided(self, margins: NDArray[np.float64]) -> NDArray[Any]:
        return (margins > 0).astype(np.int64)


# The bound on residuals is the standard deviation of the targets if N mu is this. How far noise may
# move margins, and the weight of a drawn column, over that deviation (docs/multiclass.md).
_UNCLIPPED, _KAPPA, _REFIT_KAPPA, _COLUMN_STEP = 4000.0, 0.22, 0.5, 0.5


@dataclass(frozen=True)
class Bounded(Task):
    """Numbers in a public interval, as targets in [-1, 1]."""

    target_bounds: tuple[float, float]

    # The bound on each residual of a private fit, in units of half the interval.
    bound: float = 0.25
    # A regression's score suffers from every error, a classification's only from a wrong ranking.
    kappa: float = 0.1
    refit_kappa: float = 0.2
    column_step: float = 0.2
    spreads: bool = True
    calibration: ClassVar[float] = 0.0
    # What classes spend on the constants of the calibration.
    counting: ClassVar[float] = CALIBRATION_SHARE
    # Numbers depend on how long rows are.
    most_with_lengths: ClassVar[float] = math.inf
    learns: ClassVar[str] = "numbers"
    is_declared: ClassVar[bool] = False
    is_balanced: ClassVar[bool] = False

    def task(self, *_: Any, **__: Any) -> "Bounded":
        return self

    of_classes = of_size = task

    def written(self, params: Mapping[str, Any], classes: NDArray[Any]) -> dict[str, Any]:  # noqa: ARG002
        return {**params, "target_bounds": self.target_bounds}

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return encode_targets(y, self.target_bounds)

    def spread(self, deviation: float, signal: float) -> "Bounded":
        """Suit noise and clipping to targets that fill a small part of their interval.

        With more signal, fewer residuals are clipped, because a regression predicts their mean.
        """
        if not self.spreads:
            return self
        return replace(
            self,
            bound=min(1.0, deviation * (signal / _UNCLIPPED) ** 0.25),
            kappa=_KAPPA * deviation,
            refit_kappa=_REFIT_KAPPA * deviation,
            column_step=_COLUMN_STEP * deviation,
        )

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        return Squared(residual_bound, offset or 0.0)

    def margins_of(self, model: PublicModel) -> LinearParts:
        weights, intercept, error = model.weights, model.intercept, model.error
        (low, high), n_rows = self.target_bounds, weights.shape[0]
        half, middle = 0.5 * high - 0.5 * low, 0.5 * low + 0.5 * high
        if n_rows != 1:
            raise ParameterError(
                f"`prior` has weights of {n_rows} classes; a regression has one weight for each "
                "column"
            )
        # Without an intercept, predictions start in the middle of the interval.
        start = np.zeros(1) if intercept is None else (intercept - middle) / half
        return weights / half, start, None if error is None else error / half

    def plain_model(self) -> tuple[Any, str, str]:
        return Ridge(), "alpha", "neg_mean_squared_error"

    def plain_labels(self, y: NDArray[Any]) -> NDArray[Any]:
        self.encode(y)  # Refuses what a fit refuses.
        return np.clip(np.asarray(y, dtype=np.float64), *self.target_bounds)

    def folds(self, labels: NDArray[Any], most: int) -> Any:
        count = min(most, labels.size)
        return KFold(count, shuffle=True, random_state=0) if count > 1 else None


# Among this many records, a label of a single one, or of one person, is a mistake or a secret.
_MANY = 1_000


@dataclass(frozen=True)
class Labels:
    """Classes as declared: labels or None, their weights, and how many records a person has.

    `clips`: whether residuals are clipped, as in all private fits but those of the paper.
    """

    declared: Any = None
    weight: Any = None
    rows_per_person: int = 1
    clips: bool = True

    @property
    def is_declared(self) -> bool:
        return self.declared is not None

    @property
    def is_balanced(self) -> bool:
        return isinstance(self.weight, str) and self.weight == "balanced"

    def task(self, records: Any) -> Task:
        if records.n_labels:
            declared = classes_of(None, self.declared) if self.is_declared else None
            names = np.arange(records.n_labels) if declared is None else declared
            if names.size != records.n_labels:
                raise ParameterError(
                    f"`y` has {records.n_labels} columns, and `classes` names {names.size} labels; "
                    "name one for each column"
                )
            return self.of_classes(names, many_labels=True)
        # Read only where needed: partitions may have too many different labels.
        y = None if self.is_declared else records.labels
        classes = classes_of(y, self.declared)
        counts = np.zeros(0) if y is None else records.label_counts
        n_records = int(counts.sum())
        most = self.rows_per_person
        if n_records >= _MANY and (rare := int(np.sum(counts <= most))):
            labels = "a label occurs" if rare == 1 else f"{rare:,} labels occur"
            few = "one record" if most == 1 else f"at most {most} records, perhaps of one person,"
            raise ParameterError(
                f"{labels} in {few} of {n_records:,}, and the model would show it: declare "
                "the classes with `classes`, or correct the label"
            )
        return self.of_classes(classes)

    def of_classes(self, classes: NDArray[Any], *, many_labels: bool = False) -> Task:
        if many_labels:
            if self.weight is not None:
                raise ParameterError(
                    "`class_weight` is for one label in each row, and `y` has a column for each of "
                    f"{classes.size}; leave it out"
                )
            task: Task = ManyLabels(classes)
        elif self.weight is None or self.is_balanced:
            task = Binary(classes) if classes.size <= 2 else Multiclass(classes)
        else:
            weights = checked_class_weight(self.weight, classes.tolist())
            few = classes.size <= 2
            task = Binary(classes, weights) if few else Multiclass(classes, np.array(weights))
        return task if self.clips else replace(task, bound=1.0)

    def of_size(self, n_classes: int | None = None) -> Task:
        if n_classes is None:
            n_classes = len(self.declared) if self.is_declared else 2
        return Labels(clips=self.clips).of_classes(np.arange(n_classes))

    def written(self, params: Mapping[str, Any], classes: NDArray[Any]) -> dict[str, Any]:
        # Labels may be an Index, a Series or a range.
        plain, weight = dict(params), self.weight
        if self.is_declared:
            plain["classes"] = np.asarray(self.declared).tolist()
        if isinstance(weight, Mapping):
            weight = [weight[label] for label in classes.tolist()]
        if weight is not None and not isinstance(weight, str):
            plain["class_weight"] = tuple(map(float, weight))
        return plain
