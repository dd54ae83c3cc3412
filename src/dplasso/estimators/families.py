"""What tells the two families apart, for the estimators of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from dplasso.estimators.margins import decision_margins, unit_margins
from dplasso.fit.descent import GradientDescent
from dplasso.fit.lasso import Lasso
from dplasso.fit.method import Method
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.plan import CONSTANT
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.losses.clipped_multinomial import ClippedMultinomial
from dplasso.losses.multinomial import Multinomial, norm_bound
from dplasso.model.staged import StagedRelease


@dataclass(frozen=True)
class Family:
    """What estimators of one method share.

    `method`: from an estimator's parameters to the method, checked.
    `margins`: ``margins(estimator, X)`` of a fitted one, shape (N,) or (N, K).
    `probabilities`: ``probabilities(estimator, margins)`` of K > 2 classes, shape (N, K).
    `column_bytes`: memory that a fit takes for each column, as measured, without any entry in it.
    `releases`: kinds of what a complete fit releases.
    """

    method: Callable[[Mapping[str, Any]], Method]
    margins: Callable[[Any, Any], NDArray[np.float64]]
    probabilities: Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]
    column_bytes: int
    releases: tuple[str, ...]


def _gradient_margins(fitted: Any, X: Any) -> NDArray[np.float64]:
    """Compute the margins of unit rows."""
    params = fitted.model_.params
    dense = fitted.coef_ if isinstance(fitted.coef_, np.ndarray) else fitted.coef_.toarray()
    single = dense.shape[0] == 1
    return unit_margins(
        fitted,
        X,
        dense.ravel() if single else np.ascontiguousarray(dense.T),
        float(fitted.intercept_[0]) if single else fitted.intercept_,
        CONSTANT if params["fit_intercept"] else 0.0,
        None if params["row_norm"] == "unit" else float(params["row_norm"]),
        effective_n_jobs(fitted.n_jobs),
    )


def _lasso_margins(fitted: Any, X: Any) -> NDArray[np.float64]:
    """Compute the margins of clipped rows, or of a refit those of unit rows."""
    release, bound = fitted.model_.release, fitted.privacy_.feature_bound
    offset = float(fitted.intercept_[0])
    refitted, several = release.refitted is not None, fitted.coef_.shape[0] > 1
    if refitted or several:
        kept = release.columns if refitted else np.unique(fitted.coef_.indices)
        return unit_margins(
            fitted,
            X,
            fitted.coef_[:, kept].toarray().T.copy() if several else fitted.coef_.data,
            fitted.intercept_ if several else offset,
            CONSTANT if fitted.model_.params["fit_intercept"] else 0.0,
            None,
            effective_n_jobs(fitted.n_jobs),
            kept=kept,
            bound=None if refitted else bound,
        )
    return decision_margins(fitted, X, fitted.coef_.indices, fitted.coef_.data, bound, offset)


def _gradient_probabilities(fitted: Any, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    return Multinomial(margins.shape[1], fitted.privacy_.residual_bound).link(margins)


def _lasso_probabilities(fitted: Any, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    bound = fitted.privacy_.residual_bound
    if fitted.model_.release.refitted is not None:
        n_classes = margins.shape[1]
        return Multinomial(n_classes, norm_bound(n_classes, bound)).link(margins)
    return ClippedMultinomial(bound, np.zeros(margins.shape[1])).link(margins)


LASSO = Family(
    Lasso.from_params,
    _lasso_margins,
    _lasso_probabilities,
    12,
    (VertexRelease.kind, StagedRelease.kind),
)
GRADIENT_DESCENT = Family(
    GradientDescent.from_params,
    _gradient_margins,
    _gradient_probabilities,
    48,
    (NoisyWeights.kind,),
)
