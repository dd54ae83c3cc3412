"""From a model file to a fitted estimator."""

import os

from dplasso.errors import ModelFileError
from dplasso.estimators.fitting import set_fitted
from dplasso.estimators.lasso import DPLassoClassifier
from dplasso.model import read_model


def load(path: str | os.PathLike[str]) -> DPLassoClassifier:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `DPLassoClassifier.save` wrote.

    Returns
    -------
    DPLassoClassifier
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
        estimator = DPLassoClassifier(**model.params)
        set_fitted(estimator, model)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no usable model: {reason}.") from error
    return estimator
