"""Fit an estimator and set its fitted attributes: the one place where a model becomes them."""

from typing import Any

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.model import Model
from dplasso.training.inputs import check_inputs
from dplasso.training.settings import lasso_settings
from dplasso.training.train import Hooks, train

# Fitted attributes that not every fit has.
_OPTIONAL = ("history_", "work_", "feature_names_in_")


def fit_estimator(estimator: Any, X: Any, y: Any = None, hooks: Hooks | None = None) -> Any:
    """Fit an estimator in place; if the fit is refused, it stays as it was.

    Parameters
    ----------
    estimator : DPLassoClassifier
        Fitted in place.
    X, y
        As in its `fit`.
    hooks : Hooks, optional
        Progress, times, replay, checkpoints.

    Returns
    -------
    DPLassoClassifier
        The estimator itself.
    """
    settings = lasso_settings(estimator.get_params(deep=False))
    model, work = train(settings, check_inputs(estimator, X, y), hooks or Hooks())
    set_fitted(estimator, model)
    if work is not None:
        estimator.work_ = work
    return estimator


def set_fitted(estimator: Any, model: Model) -> None:
    """Set the fitted attributes, all of them functions of the release and public values.

    Parameters
    ----------
    estimator : DPLassoClassifier
        Fitted in place.
    model : Model
        What a fit released, or a model file holds.
    """
    for name in _OPTIONAL:
        estimator.__dict__.pop(name, None)
    estimator.model_ = model
    estimator.coef_, estimator.intercept_ = model.release.coefficients()
    estimator.classes_ = model.classes
    estimator.n_iter_ = len(model.release)
    estimator.n_features_in_ = model.n_features
    estimator.privacy_ = model.statement
    if isinstance(model.release, VertexRelease):
        estimator.transcript_ = model.release.transcript
    if model.feature_names is not None:
        estimator.feature_names_in_ = model.feature_names
    if model.history is not None:
        estimator.history_ = model.history
