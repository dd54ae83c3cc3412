"""From a model file to a fitted estimator of the family that it is of."""

import os

from dplasso.errors import ModelFileError
from dplasso.estimators.fitting import method_of, set_fitted
from dplasso.estimators.lasso import DPLassoClassifier
from dplasso.estimators.lasso_regression import DPLasso
from dplasso.estimators.linear import DPLinearRegression
from dplasso.estimators.logistic import DPLogisticRegression
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.model import read_model
from dplasso.model.staged import StagedRelease

Estimator = DPLassoClassifier | DPLasso | DPLogisticRegression | DPLinearRegression

# By what a fit releases, and whether it is a regression.
_ESTIMATORS: dict[tuple[str, bool], type[Estimator]] = {
    (VertexRelease.kind, False): DPLassoClassifier,
    (StagedRelease.kind, False): DPLassoClassifier,
    (VertexRelease.kind, True): DPLasso,
    (StagedRelease.kind, True): DPLasso,
    (NoisyWeights.kind, False): DPLogisticRegression,
    (NoisyWeights.kind, True): DPLinearRegression,
}


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save` of an estimator wrote.

    Returns
    -------
    DPLassoClassifier, DPLasso, DPLogisticRegression or DPLinearRegression
        Fitted, with the same weights. A seed is never stored: `random_state` is ``None``, and
        `privacy_` says whether there was one.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or of another version of the format.
    OSError
        If there is no such file or it cannot be read.
    """
    model = read_model(path)
    try:
        kind = model.release.kind, "target_bounds" in model.params
        if kind not in _ESTIMATORS:
            raise ValueError(f"a {kind[0]} is not a complete fit")
        if kind[1] == bool(model.classes.size):
            raise ValueError("it has labels and an interval of targets, or neither")
        estimator = _ESTIMATORS[kind](**model.params)
        method_of(estimator)
        set_fitted(estimator, model)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no usable model: {reason}.") from error
    return estimator
