"""What tells the two families apart, for the estimators of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.fit.descent import GradientDescent
from dplasso.fit.lasso import Lasso
from dplasso.fit.method import Method
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.energies import halvings_of, shrinking
from dplasso.gradient_descent.plan import CONSTANT
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.losses.clipped_multinomial import ClippedMultinomial
from dplasso.losses.multinomial import Multinomial, norm_bound
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
    `probabilities`: ``probabilities(estimator, margins)`` of K > 2 classes, shape (N, K).
    `column_bytes`: memory that a fit takes for each column, as measured, without any entry in it.
    `releases`: kinds of what a complete fit releases.
    """

    method: Callable[[Mapping[str, Any]], Method]
    reading: Callable[[Any], Reading]
    probabilities: Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]
    column_bytes: int
    releases: tuple[str, ...]


def _constant(fitted: Any) -> float:
    return CONSTANT if fitted.model_.params["fit_intercept"] else 0.0


def _descent_reading(fitted: Any) -> Reading:
    norm, release = fitted.model_.params["row_norm"], fitted.model_.release
    bound, energies = None if norm == "unit" else float(norm), release.energies
    if bound is not None and energies.size:
        bound *= shrinking(energies)
    # The rows of a short list are those of its columns alone.
    short = isinstance(fitted.model_.params["max_weights"], int) and release.columns.size
    kept = release.columns if short else None
    return Reading(kept, None, bound, _constant(fitted), halvings_of(energies))


def _lasso_reading(fitted: Any) -> Reading:
    release = fitted.model_.release
    if release.refitted is not None:
        halvings = halvings_of(release.refitted.energies)
        return Reading(release.columns, None, None, _constant(fitted), halvings)
    kept = np.unique(fitted.coef_.indices)
    # Where no column has a weight, one is looked at all the same: a matrix has to have one.
    return Reading(kept if kept.size else np.arange(1), fitted.privacy_.feature_bound, None, 0.0)


def _descent_probabilities(fitted: Any, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    return Multinomial(margins.shape[1], fitted.privacy_.residual_bound).link(margins)


def _lasso_probabilities(fitted: Any, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    bound, n_classes = fitted.privacy_.residual_bound, margins.shape[1]
    if fitted.model_.release.refitted is not None:
        return Multinomial(n_classes, norm_bound(n_classes, bound)).link(margins)
    return ClippedMultinomial(bound, np.zeros(n_classes)).link(margins)


LASSO = Family(
    Lasso.from_params,
    _lasso_reading,
    _lasso_probabilities,
    12,
    (VertexRelease.kind, StagedRelease.kind),
)
GRADIENT_DESCENT = Family(
    GradientDescent.from_params,
    _descent_reading,
    _descent_probabilities,
    48,
    (NoisyWeights.kind,),
)
