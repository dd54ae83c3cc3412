"""From a fitted estimator or pipeline to a model file and back, and to its largest weights."""

import os
from dataclasses import replace
from inspect import signature
from itertools import chain
from typing import Any

from sklearn.utils.validation import check_is_fitted

from dplasso.errors import ModelFileError
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.cost import METHODS
from dplasso.estimators.fitting import method_of, set_fitted
from dplasso.estimators.pipeline_steps import pipeline_of, row_steps_of
from dplasso.estimators.record_wise import check_record_wise, chosen, split
from dplasso.model import Model, read_model, write_model
from dplasso.model.weights import Weights, weights_of


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a pipeline that ends in one, to a file; no pickle in it.

    Parameters
    ----------
    model : estimator, PrivateSearch or Pipeline
        Fitted. The steps of a pipeline before the last have to learn nothing from the records
        (docs/howto-pipelines.md); the file holds their parameters, and functions and types of your
        own by the names under which they were declared (`record_wise`).
    path : str or path-like
        Replaced at once when everything is written, never left half-written.

    Raises
    ------
    ValueError
        If a step learns from the records, or the file cannot hold a parameter.
    TypeError
        If the last step is no model of this package.
    OSError
        If the file cannot be written.
    """
    write_model(whole_model(model), path)


def top_features(model: Any, count: int = 20) -> Weights:
    """Return the largest weights of a fitted model or pipeline by magnitude, largest first.

    Parameters
    ----------
    model : estimator, PrivateSearch or Pipeline
        Fitted, as `save` takes it.
    count : int, default=20
        How many, at most.

    Returns
    -------
    Weights
        Named by the steps of the pipeline where these have names: words of a vocabulary, declared
        categories. Hashed columns have numbers.

    Raises
    ------
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As `save`.
    """
    return weights_of(whole_model(model)).top(count)


def whole_model(model: Any) -> Model:
    """Return what was fitted, with the steps that make its rows."""
    model = chosen(model)
    parts = split(model)
    if parts is None:
        return _fitted(model)
    steps, last = parts
    check_record_wise(steps)
    found = _fitted(chosen(last))
    if not len(steps):
        return found
    held = row_steps_of(steps, model.steps[-1][0], found.n_features)
    if held.columns is None and found.row_steps is not None:
        # Steps from a file do not name columns; the model that came with them does.
        held = replace(held, columns=found.row_steps.columns)
    return replace(found, row_steps=held)


def _fitted(model: Any) -> Model:
    if not isinstance(model, PrivateLinearModel):
        raise TypeError(f"{type(model).__name__} is no model of dplasso")
    check_is_fitted(model, "coef_")
    found: Model = model.model_
    return found


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save` wrote, this function or an estimator's.

    Returns
    -------
    DPLassoClassifier, DPLasso, DPLogisticRegression, DPLinearRegression or Pipeline
        Fitted, with the same weights; a pipeline predicts on raw rows. A seed is never stored:
        `random_state` is ``None``, and `privacy_` says whether there was one.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or of another version of the format; or if its pipeline
        needs a type or function that was not declared before (`record_wise`).
    OSError
        If there is no such file or it cannot be read.
    """
    model = read_model(path)
    try:
        # A model is of the estimator whose parameters its file names.
        kinds = [
            kind
            for kind in filter(None, chain.from_iterable(METHODS.values()))
            if model.params.keys() <= signature(kind).parameters.keys()
        ]
        if not kinds:
            raise ValueError("no estimator has its parameters")
        prior = {} if model.prior is None else {"prior": model.prior}
        estimator: PrivateLinearModel = kinds[0](**model.params, **prior)
        known = method_of(estimator).targets
        task = known.of_classes(model.classes, many_labels=model.statement.many_labels)
        if bool(task.target_bounds) == bool(model.classes.size):
            raise ValueError("it has labels and an interval of targets, or neither")
        set_fitted(estimator, model)
        if model.row_steps is not None:
            return pipeline_of(model.row_steps, estimator)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no usable model: {reason}.") from error
    return estimator
