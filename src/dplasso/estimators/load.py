"""From a model file to a fitted estimator of the family that it is of."""

import os
from inspect import signature
from typing import get_args

from dplasso.errors import ModelFileError
from dplasso.estimators.fitting import method_of, set_fitted
from dplasso.estimators.linear_models import Estimator
from dplasso.model import read_model


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
        # A model is of the estimator whose parameters its file names.
        kinds = [
            kind
            for kind in get_args(Estimator)
            if model.params.keys() <= signature(kind).parameters.keys()
            and model.release.kind in kind.family.releases
        ]
        if not kinds:
            raise ValueError(
                f"no estimator with its parameters makes a model of the kind {model.release.kind!r}"
            )
        estimator: Estimator = kinds[0](**model.params, prior=model.prior)
        known = method_of(estimator).targets
        task = known.of_classes(model.classes, many_labels=model.statement.many_labels)
        if bool(task.target_bounds) == bool(model.classes.size):
            raise ValueError("it has labels and an interval of targets, or neither")
        set_fitted(estimator, model)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no usable model: {reason}.") from error
    return estimator
