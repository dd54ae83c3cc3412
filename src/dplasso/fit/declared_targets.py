"""What parameters say of the targets before there are data: classes, or an interval.

`Labels` says it of classes; for a regression the task itself, `Bounded`, is known.

=================  ==============================================================================
`is_declared`      whether the labels were named, not taken from the data
`takes_matrix`     whether y may have a column for each label
`is_balanced`      whether the counts of the classes are to weigh them
`task`             the task of some records; `of_classes`: of known classes; `of_size`: of so many,
                   None for as many as are declared, or 2
`written`          parameters as a file holds them
`in_order`         parameters with the weights in the order of the classes
=================  ==============================================================================
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dplasso.data.labels import classes_of
from dplasso.errors import ParameterError
from dplasso.fit.task import Binary, Bounded, ManyLabels, Multiclass, Task

# Of so many records, a label that one has is a mistake or a secret.
_MANY = 1_000


@dataclass(frozen=True)
class Labels:
    """Classes, as far as parameters tell: the labels, if declared, and weights of the classes."""

    declared: Any = None
    weight: Any = None

    bounds_allowed: ClassVar[tuple[float, float]] = (0.5, 1.0)
    takes_matrix: ClassVar[bool] = True

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
        # Asked for only where needed: partitions may have too many different labels.
        y = None if self.is_declared else records.labels
        classes = classes_of(y, self.declared)
        n_records = records.shape[0]
        if y is not None and n_records >= _MANY and (single := records.single_labels):
            labels = "a label occurs" if single == 1 else f"{single:,} labels occur"
            raise ParameterError(
                f"{labels} in one record of {n_records:,}, and would leave with the model: name "
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
            return ManyLabels(classes)
        if self.weight is None or self.is_balanced:
            return Binary(classes) if classes.size <= 2 else Multiclass(classes)
        if len(self.weight) != classes.size:
            raise ParameterError(
                f"`class_weight` must have a weight for each of the {classes.size} classes, got "
                f"{self.weight}"
            )
        weights = checked_class_weight(self.weight, classes.tolist())
        if classes.size <= 2:
            return Binary(classes, weights)
        return Multiclass(classes, np.array(weights))

    def of_size(self, n_classes: int | None) -> Task:
        if n_classes is None:
            n_classes = len(self.declared) if self.is_declared else 2
        return Labels().of_classes(np.arange(n_classes))

    def written(self, params: Mapping[str, Any]) -> dict[str, Any]:
        # Labels may be an Index, a Series or a range.
        plain, weight = dict(params), self.weight
        if self.is_declared:
            plain["classes"] = np.asarray(self.declared).tolist()
            if isinstance(weight, Mapping):
                weight = [weight[label] for label in self.declared]
        if weight is not None and not isinstance(weight, Mapping | str):
            plain["class_weight"] = tuple(float(one) for one in weight)
        return plain

    def in_order(self, params: Mapping[str, Any], classes: NDArray[Any]) -> Mapping[str, Any]:
        if not isinstance(params.get("class_weight"), Mapping):
            return params
        return {**params, "class_weight": tuple(self.weight[one] for one in classes.tolist())}


def targets_of(params: Mapping[str, Any]) -> Labels | Bounded:
    """Return what an estimator's parameters say of its targets; ValueError if they are invalid."""
    if "target_bounds" in params:
        return Bounded(checked_target_bounds(params["target_bounds"]))
    labels = Labels(params.get("classes"), params.get("class_weight"))
    if not labels.is_balanced:
        checked_class_weight(labels.weight, labels.declared)
    return labels


def checked_target_bounds(bounds: Any) -> tuple[float, float]:
    """Return the ends of a regression's interval; ValueError if it is missing or not finite."""
    if bounds is None:
        raise ParameterError(
            "`target_bounds` is missing: give the interval (low, high) that the targets are "
            "publicly known to lie in; it must not be taken from the data"
        )
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(
            f"`target_bounds` must be two finite numbers (low, high), low < high, got {bounds!r}"
        )
    return low, high


def checked_class_weight(class_weight: Any, classes: Any) -> tuple[float, ...]:
    """Return the weights of the classes in their order, scaled so that the largest is 1.

    They may be given by label or in the order of the classes; None stands for equal weights. By
    label and without `classes`, they keep their own order.

    Raises ValueError for anything else, and for other labels.
    """
    if class_weight is None:
        return 1.0, 1.0
    weights = class_weight
    if isinstance(weights, Mapping):
        labels = list(weights if classes is None else classes)
        if set(weights) != set(labels):
            raise ParameterError(
                f"`class_weight` must have a weight for each label of `classes`, {labels}, and no "
                f"other; got {class_weight!r}"
            )
        weights = [weights[label] for label in labels]
    if not isinstance(weights, list | tuple) or len(weights) < 2:
        raise ParameterError(
            "`class_weight` must be None, 'balanced', weights in the order of the classes, or a "
            f"mapping of each label to a weight; got {class_weight!r}"
        )
    if not all(isinstance(one, Real) and 0.0 < float(one) < math.inf for one in weights):
        raise ParameterError(f"`class_weight` must hold positive numbers, got {class_weight!r}")
    weights = [float(one) for one in weights]
    return tuple(weight / max(weights) for weight in weights)
