"""What tells the two families apart, for the estimators of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.fit.descent import GradientDescent
from dplasso.fit.lasso import Lasso
from dplasso.fit.method import Method
from dplasso.fit.targets import Labels
from dplasso.fit.task import Task
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.energies import halvings_of, shrinking
from dplasso.gradient_descent.plan import CONSTANT
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.matrix.starting import spread
from dplasso.matrix.unit_rows import NO_HALVINGS
from dplasso.model.staged import StagedRelease


class Reading(NamedTuple):
    """How a model reads rows: clipped, or scaled.

    `kept`, shape (k,): columns that rows are looked at in, ascending; None for all.
    `bound`: entries are clipped to [-bound, bound]; None for scaled rows.
    `norm_bound`: what longer rows are scaled down to and all divided by; None for unit rows.
    `constant`: the constant entry of a scaled row, as a part of its unit length.
    `halvings`, shape (k,) or (D,): how often the entries of these columns are halved before rows
    are scaled; empty for never.
    """

    kept: NDArray[np.integer] | None
    bound: float | None
    norm_bound: float | None
    constant: float
    halvings: NDArray[np.int8] = NO_HALVINGS


@dataclass(frozen=True)
class Family:
    """What estimators of one method share.

    `method`: from an estimator's parameters to the method, checked.
    `reading`: ``reading(estimator)`` of a fitted one.
    `loss`: ``loss(estimator, task)`` of a fitted classifier: its link makes probabilities.
    `many_labels`: whether y may have a column for each label.
    `column_bytes`: memory that a fit takes for each column, as measured, without any entry in it.
    `releases`: kinds of what a complete fit releases.
    """

    method: Callable[[Mapping[str, Any]], Method]
    reading: Callable[[Any], Reading]
    loss: Callable[[Any, Task], Any]
    column_bytes: int
    releases: tuple[str, ...]
    many_labels: bool = False


def _constant(fitted: Any) -> float:
    return CONSTANT if fitted.model_.params["fit_intercept"] else 0.0


def _descent_reading(fitted: Any) -> Reading:
    norm, release = fitted.model_.params["row_norm"], fitted.model_.release
    bound, energies = None if norm == "unit" else float(norm), release.energies
    if bound is not None and energies.size:
        bound *= shrinking(energies)
    # The rows of a short list are those of its columns alone.
    short = isinstance(fitted.model_.params["max_weights"], int) and release.columns.size
    kept = release.columns if short and fitted.model_.prior is None else None
    return Reading(kept, None, bound, _constant(fitted), halvings_of(energies))


def _lasso_reading(fitted: Any) -> Reading:
    release = fitted.model_.release
    if release.refitted is not None:
        halvings = halvings_of(release.refitted.energies)
        kept: NDArray[np.integer] | None = release.columns
        if fitted.model_.prior is not None:
            # Rows have their unit length in all columns.
            halvings = spread(halvings, release.columns, release.vertices.n_features)
            kept = None
        return Reading(kept, None, None, _constant(fitted), halvings)
    kept = np.unique(fitted.coef_.indices)
    # Where no column has a weight, one is looked at all the same: a matrix has to have one.
    return Reading(kept if kept.size else np.arange(1), fitted.privacy_.feature_bound, None, 0.0)


def task_of(fitted: Any) -> Task:
    """Return what a fitted classifier has learnt."""
    return Labels().of_classes(fitted.classes_, many_labels=fitted.privacy_.many_labels)


def loss_of(fitted: Any) -> Any:
    """Return the loss whose link makes probabilities of a fitted classifier's margins."""
    return fitted.family.loss(fitted, task_of(fitted))


def _descent_loss(fitted: Any, task: Task) -> Any:
    return task.gradient_loss(fitted.privacy_.residual_bound)


def _lasso_loss(fitted: Any, task: Task) -> Any:
    bound = fitted.privacy_.residual_bound
    if fitted.model_.release.refitted is None:
        return task.vertex_loss(bound)
    return task.gradient_loss(task.norm_bound(bound))


LASSO = Family(
    Lasso.from_params,
    _lasso_reading,
    _lasso_loss,
    12,
    (VertexRelease.kind, StagedRelease.kind),
)
GRADIENT_DESCENT = Family(
    GradientDescent.from_params,
    _descent_reading,
    _descent_loss,
    48,
    (NoisyWeights.kind,),
    many_labels=True,
)
