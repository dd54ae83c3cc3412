"""What a fit learns: one of two classes, one of several, or a number of a public interval.

A task answers every question whose answer depends on that (DESIGN.md section 13). `Labels` and
`Bounded` are what the parameters of an estimator say of it before there are data; of a regression
that is all there is to know.

=================  ==============================================================================
`classes`          the labels, of two the negative first; none for a regression
`target_bounds`    the interval of a regression's targets
`n_outputs`        margins of a record: K for more than two classes, otherwise 1
`kappa`            how far noise may move the margin of a unit row in a dense run
`refit_kappa`      likewise in a refit
`column_step`      weight of each drawn column before the refit, times the square root of their
                   number
`calibration`      share of the budget that sets the margins right in the end
`encode`           labels as the losses take them
`residual_bound`   what "auto" stands for where columns are drawn: bound C on each residual; of
                   private fits of classes one that clips nothing at zero weights
`gradient_bound`   likewise in a dense run: bound on the length of a record's residuals
`norm_bound`       the length that goes with a bound C on each
`vertex_loss`      the loss that columns are drawn by, its margins starting at an offset
`gradient_loss`    the loss of a dense run
`refit_loss`       the loss of the refit that follows draws by `vertex_loss`
=================  ==============================================================================
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.data.labels import classes_of, encode_targets, numbers_of
from dplasso.gradient_descent.schedule import KAPPA
from dplasso.losses.clipped_multinomial import ClippedMultinomial
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import Multinomial, norm_bound, residual_norm_at_zero
from dplasso.losses.squared import Squared
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE

NO_CLASSES = np.zeros(0)


@dataclass(frozen=True)
class Binary:
    """Two classes, as targets 0 and 1."""

    classes: NDArray[Any]
    class_weights: tuple[float, ...] = (1.0, 1.0)

    target_bounds: ClassVar[None] = None
    n_outputs: ClassVar[int] = 1
    kappa: ClassVar[float] = KAPPA
    refit_kappa: ClassVar[float] = 1.0
    column_step: ClassVar[float] = 0.8
    calibration: ClassVar[float] = CALIBRATION_SHARE

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return numbers_of(y, self.classes)

    def residual_bound(self, *, private: bool) -> float:
        return 0.5 if private else 1.0

    gradient_bound = residual_bound

    def norm_bound(self, residual_bound: float) -> float:
        return residual_bound

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        return Logistic(residual_bound, offset or 0.0, *self.class_weights)

    gradient_loss = vertex_loss

    def refit_loss(self, norm_bound: float, vertex_loss: Any) -> Any:  # noqa: ARG002
        return vertex_loss


@dataclass(frozen=True)
class Multiclass:
    """Three classes or more, as targets 0 to K - 1; `class_weights` of shape (K,) or none."""

    classes: NDArray[Any]
    class_weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    target_bounds: ClassVar[None] = None
    kappa: ClassVar[float] = KAPPA
    refit_kappa: ClassVar[float] = 1.0
    column_step: ClassVar[float] = 0.8
    calibration: ClassVar[float] = CALIBRATION_SHARE

    @property
    def n_outputs(self) -> int:
        return int(self.classes.size)

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return numbers_of(y, self.classes)

    def residual_bound(self, *, private: bool) -> float:
        return 0.5 if private else 1.0

    def gradient_bound(self, *, private: bool) -> float:
        return residual_norm_at_zero(self.n_outputs) if private else math.sqrt(2.0)

    def norm_bound(self, residual_bound: float) -> float:
        return norm_bound(self.n_outputs, residual_bound)

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        offset = np.zeros(self.n_outputs) if offset is None else offset
        return ClippedMultinomial(residual_bound, offset, self.class_weights)

    def gradient_loss(self, bound: float) -> Any:
        return Multinomial(self.n_outputs, bound, self.class_weights)

    def refit_loss(self, norm_bound: float, vertex_loss: Any) -> Any:  # noqa: ARG002
        return self.gradient_loss(norm_bound)


@dataclass(frozen=True)
class Bounded:
    """Numbers of a public interval, as targets in [-1, 1]."""

    target_bounds: tuple[float, float]

    classes: ClassVar[NDArray[Any]] = NO_CLASSES
    n_outputs: ClassVar[int] = 1
    # A score of a regression pays for every error, that of a classification only for exchanged
    # ranks.
    kappa: ClassVar[float] = 0.1
    refit_kappa: ClassVar[float] = 0.2
    column_step: ClassVar[float] = 0.2
    calibration: ClassVar[float] = 0.0
    # What `residual_bound` may be.
    bounds_allowed: ClassVar[tuple[float, float]] = (0.01, 2.0)
    is_declared: ClassVar[bool] = False

    def task(self, records: Any) -> "Bounded":  # noqa: ARG002
        return self

    of_classes = task

    def of_size(self, n_classes: int | None) -> "Bounded":  # noqa: ARG002
        return self

    def written(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {**params, "target_bounds": self.target_bounds}

    def in_order(self, params: Mapping[str, Any], classes: NDArray[Any]) -> Mapping[str, Any]:  # noqa: ARG002
        return params

    def encode(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return encode_targets(y, self.target_bounds)

    def residual_bound(self, *, private: bool) -> float:
        """Return C in halves of the interval.

        Of a private fit what measured best at epsilon up to 1 (docs/regression.md); without privacy
        nothing is clipped while predictions stay in the interval.
        """
        return 0.25 if private else 2.0

    gradient_bound = residual_bound

    def norm_bound(self, residual_bound: float) -> float:
        return residual_bound

    def vertex_loss(self, residual_bound: float, offset: Any = None) -> Any:
        return Squared(residual_bound, offset or 0.0)

    gradient_loss = vertex_loss

    def refit_loss(self, norm_bound: float, vertex_loss: Any) -> Any:  # noqa: ARG002
        return vertex_loss


Task = Binary | Multiclass | Bounded


@dataclass(frozen=True)
class Labels:
    """Classes, as far as parameters tell: the labels, if declared, and weights of the classes."""

    declared: Any = None
    weight: Any = None

    bounds_allowed: ClassVar[tuple[float, float]] = (0.5, 1.0)

    @property
    def is_declared(self) -> bool:
        """Whether the labels were named, not taken from the data."""
        return self.declared is not None

    def task(self, records: Any) -> Binary | Multiclass:
        """Return the task of the labels that were declared, or else of those of the records.

        Raises ValueError as `dplasso.data.labels.classes_of` and `of_classes`.
        """
        # Only asked for where they are needed: partitions may have too many to be classes.
        y = None if self.is_declared else records.labels
        return self.of_classes(classes_of(y, self.declared))

    def of_classes(self, classes: NDArray[Any]) -> Binary | Multiclass:
        """Return the task of known classes.

        Raises ValueError for weights of other classes.
        """
        if self.weight is None:
            return Binary(classes) if classes.size <= 2 else Multiclass(classes)
        if len(self.weight) != classes.size:
            raise ValueError(
                f"class_weight must have a weight for each of the {classes.size} classes, got "
                f"{self.weight}"
            )
        weights = checked_class_weight(self.weight, classes.tolist())
        if classes.size <= 2:
            return Binary(classes, weights)
        return Multiclass(classes, np.array(weights))

    def of_size(self, n_classes: int | None) -> Binary | Multiclass:
        """Return the task of so many classes, whatever their names: for its cost.

        `n_classes`: None for as many as were declared, or 2.
        """
        if n_classes is None:
            n_classes = len(self.declared) if self.is_declared else 2
        return Labels().of_classes(np.arange(n_classes))

    def written(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters as a file holds them: labels may be an Index, a Series or a range."""
        plain, weight = dict(params), self.weight
        if self.is_declared:
            plain["classes"] = np.asarray(self.declared).tolist()
            if isinstance(weight, Mapping):
                weight = [weight[label] for label in self.declared]
        if weight is not None and not isinstance(weight, Mapping):
            plain["class_weight"] = tuple(float(one) for one in weight)
        return plain

    def in_order(self, params: Mapping[str, Any], classes: NDArray[Any]) -> Mapping[str, Any]:
        """Return parameters with the weights in the order of the classes, now that it is known."""
        if not isinstance(params.get("class_weight"), Mapping):
            return params
        return {**params, "class_weight": tuple(self.weight[one] for one in classes.tolist())}


def targets_of(params: Mapping[str, Any]) -> Labels | Bounded:
    """Return what an estimator's parameters say of its targets.

    Raises ValueError if the interval or the weights of the classes are not what they have to be.
    """
    if "target_bounds" in params:
        return Bounded(checked_target_bounds(params["target_bounds"]))
    weight = params.get("class_weight")
    checked_class_weight(weight, params.get("classes"))
    return Labels(params.get("classes"), weight)


def checked_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the ends of a regression's interval.

    Raises ValueError if it is missing or no finite interval.
    """
    if bounds is None:
        raise ValueError(
            "target_bounds is missing: give the interval (low, high) that the targets are publicly "
            "known to lie in; it must not be taken from the data"
        )
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"target_bounds must be two finite numbers (low, high), low < high, got {bounds!r}"
        )
    return low, high


def checked_class_weight(class_weight: Any, classes: Any) -> tuple[float, ...]:
    """Return the weights of the classes in their order, the largest of them 1.

    `class_weight`: a positive weight for each label, by name or in the order of the classes; None
    for 1.
    `classes`: the labels; without them, weights by name are only looked at and 1 is returned.

    Raises ValueError if it is neither, or names other labels.
    """
    if class_weight is None:
        return 1.0, 1.0
    if isinstance(class_weight, Mapping) and classes is None and len(class_weight) > 1:
        checked_class_weight(list(class_weight.values()), None)
        return 1.0, 1.0
    if isinstance(class_weight, Mapping) and classes is not None:
        labels = list(classes)
        if set(class_weight) != set(labels):
            raise ValueError(
                f"class_weight must have a weight for each label of classes, {labels}, and no "
                f"other; got {class_weight!r}"
            )
        class_weight = [class_weight[label] for label in labels]
    if not isinstance(class_weight, list | tuple) or len(class_weight) < 2:
        raise ValueError(
            "class_weight must be None, weights in the order of the classes, or a mapping of each "
            f"label to a weight; got {class_weight!r}"
        )
    if not all(isinstance(one, Real) and 0.0 < float(one) < math.inf for one in class_weight):
        raise ValueError(f"class_weight must hold positive numbers, got {class_weight!r}")
    weights = [float(one) for one in class_weight]
    return tuple(weight / max(weights) for weight in weights)
