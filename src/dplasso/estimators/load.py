"""From a model file to a fitted estimator of the family that it is of."""

import os

from dplasso.errors import ModelFileError
from dplasso.estimators.fitting import set_fitted, settings_of
from dplasso.estimators.lasso import DPLassoClassifier
from dplasso.estimators.logistic import DPLogisticRegression
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.model import read_model
from dplasso.model.release import with_former_params
from dplasso.model.staged import StagedRelease

Estimator = DPLassoClassifier | DPLogisticRegression

# By what a fit releases.
_ESTIMATORS: dict[str, type[Estimator]] = {
    VertexRelease.kind: DPLassoClassifier,
    StagedRelease.kind: DPLassoClassifier,
    NoisyWeights.kind: DPLogisticRegression,
}


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save` of an estimator wrote.

    Returns
    -------
    DPLassoClassifier or DPLogisticRegression
        Fitted, with the same weights. A seed is never stored: `random_state` is ``None``, and
        `privacy_` says whether there was one.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or of a newer version of the format.
    OSError
        If there is no such file or it cannot be read.
    """
    model = read_model(path)
    try:
        kind = model.release.kind
        if kind not in _ESTIMATORS:
            raise ValueError(f"a {kind} is no complete fit")
        estimator = _ESTIMATORS[kind](**with_former_params(model.params))
        settings_of(estimator)
        set_fitted(estimator, model)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no usable model: {reason}.") from error
    return estimator
