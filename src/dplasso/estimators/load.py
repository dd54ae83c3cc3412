"""Save and load fitted estimators and pipelines, and list their largest weights.

The steps of a pipeline are stored as JSON values, and types and functions by known names.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dplasso.encoding.encoder import PublicEncoder
from dplasso.encoding.origin import RowSteps
from dplasso.errors import DataError, ModelFileError, of_a_stranger
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.cost import METHODS
from dplasso.estimators.fitting import method_of, set_fitted
from dplasso.estimators.record_wise import (
    check_record_wise,
    chosen,
    name_of,
    named,
    record_wise_parts,
)
from dplasso.files.json_values import from_json, to_json
from dplasso.fit.public_model import names_after
from dplasso.fit.records import kind_of
from dplasso.model import Model, read_model, write_model
from dplasso.model.weights import Weights, weights_of

# More names would make the file large, and names of hashed columns are not useful.
_MOST_NAMES = 2**20


class FittedAnew(TransformerMixin, BaseEstimator):
    """A step from a model file, which learns nothing, so it is fitted on the rows it transforms.

    `inputs`: names of its input columns in order, or their number.
    """

    def __init__(self, step: Any, inputs: Any = None) -> None:
        self.step = step
        self.inputs = inputs

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the transformed rows; `DataError` if the columns differ from the original's."""
        with of_a_stranger(self.step):
            return clone(self.step).fit_transform(_with_columns(X, self.inputs))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def _with_columns(X: Any, inputs: Any) -> Any:
    # An encoder would cut its categories to the length of the longest bytes.
    if kind_of(X) == "S":
        X = X.astype(str)
    elif isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple):
        X = [[_text(value) for value in row] for row in X]
    if not isinstance(inputs, int | None) and hasattr(X, "columns"):
        if missing := [name for name in inputs if name not in X.columns]:
            raise DataError(f"the table has no column {missing[0]!r}, which the pipeline needs")
        return X[list(inputs)]
    count = inputs if isinstance(inputs, int | None) else len(inputs)
    if count is not None and getattr(X, "ndim", 0) == 2 and X.shape[1] != count:
        raise DataError(f"X has {X.shape[1]:,} columns, but the pipeline needs {count:,}")
    return X


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def row_steps_of(steps: Pipeline, model: str, n_features: int) -> RowSteps:
    """Return fitted steps in the form of a model file; ValueError if one cannot be stored."""
    first = steps.steps[0][1]
    if isinstance(first, FittedAnew):
        inputs = first.inputs
    else:
        names = getattr(first, "feature_names_in_", None)
        inputs = getattr(first, "n_features_in_", None) if names is None else map(str, names)
        inputs = None if isinstance(first, PublicEncoder) else inputs
    kept = inputs if inputs is None or isinstance(inputs, int) else tuple(inputs)
    every = tuple(_step_to_json(name, step) for name, step in steps.steps)
    # The file contains the schema, which names its own columns.
    named = n_features <= _MOST_NAMES and not isinstance(steps.steps[-1][1], PublicEncoder)
    return RowSteps(every, model, kept, names_after(steps) if named else None)


def pipeline_of(held: RowSteps, estimator: Any) -> Pipeline:
    """Return the pipeline of a model file, ready to predict; ValueError for steps that learn."""
    steps = [(step["name"], _step_from_json(step)) for step in held.steps]
    for place, (name, step) in enumerate(steps):
        inputs = held.inputs if place == 0 else None
        # A step that needs no fit and accepts any columns is used directly.
        if not isinstance(step, str) and (inputs is not None or get_tags(step).requires_fit):
            steps[place] = name, FittedAnew(step, inputs)
    pipeline = Pipeline([*steps, (held.model, estimator)])
    check_record_wise(pipeline[:-1])
    return pipeline


def _step_to_json(name: str, step: Any) -> dict[str, Any]:
    step = step.step if isinstance(step, FittedAnew) else step
    if step is None or isinstance(step, str):
        return {"name": name, "type": "passthrough", "params": {}}
    params = step.get_params(deep=False)
    if isinstance(step, PublicEncoder):
        params = {"schema": step.schema_}
    defaults = signature(type(step)).parameters
    written = {
        key: _to_json(value, f"{name}, {key}")
        for key, value in params.items()
        if not _is(value, defaults[key].default)
    }
    kind = name_of(type(step))
    if kind is None:
        raise ValueError(f"a model file cannot store the type of step {name!r}")
    output = getattr(step, "_sklearn_output_config", {}).get("transform")
    shown = {} if output is None else {"output": output}
    return {"name": name, "type": kind, "params": written, **shown}


def _is(value: Any, default: Any) -> bool:
    if not isinstance(default, bool | int | float | str | None):
        return value is default
    return type(value) is type(default) and value == default


def _to_json(value: Any, where: str) -> Any:
    return to_json(value, partial(_special_to_json, where))


def _special_to_json(where: str, value: Any) -> Any:
    if isinstance(value, slice):
        return {"slice": [_to_json(end, where) for end in (value.start, value.stop, value.step)]}
    if hasattr(value, "same_columns"):
        return {"schema": value.to_json()}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"step": _step_to_json("", value)}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"dtype": np.dtype(value).name}
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return {"array": [_to_json(array.tolist(), where), array.dtype.str]}
    if (held := name_of(value)) is not None:
        return {"function": held}
    what = getattr(value, "__qualname__", repr(value))
    raise ValueError(
        f"a model file cannot store {what} (step {where}): use a function with a name, and declare "
        "it with dplasso.record_wise"
    )


def _step_from_json(step: Mapping[str, Any]) -> Any:
    if step["type"] == "passthrough":
        return "passthrough"
    params = {name: _from_json(value) for name, value in step["params"].items()}
    kind = named(step["type"])
    if not isinstance(kind, type):
        raise ValueError(f"its pipeline has the step {step['type']}, which is not a type")
    built = kind(**params)
    if "output" in step:
        built.set_output(transform=step["output"])
    return built


def _from_json(value: Any) -> Any:
    return from_json(value, _READERS)


def _array(held: Any) -> NDArray[Any]:
    values, dtype = held
    if np.dtype(dtype).hasobject and not str(dtype) == "|O":
        raise ValueError("its pipeline has an array of an unknown kind")
    return np.array(_from_json(values), dtype=dtype)


_READERS: dict[str, Any] = {
    "array": _array,
    "dtype": lambda held: np.dtype(held).type,
    "function": named,
    "schema": lambda held: held,
    "slice": lambda held: slice(*map(_from_json, held)),
    "step": _step_from_json,
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a pipeline that ends in one, to a file without pickle.

    Parameters
    ----------
    model : estimator, PrivateSearch or Pipeline
        The fitted model. Other steps of a pipeline must learn nothing from the records
        (docs/howto-pipelines.md). The file contains their parameters, and the declared names of
        your own functions and types (`record_wise`).
    path : str or path-like
        The file, which is replaced atomically.

    Raises
    ------
    ValueError
        If a step learns from the records, or the file cannot store a parameter.
    TypeError
        If the last step is not a model of this package.
    OSError
        If the file cannot be written.
    """
    write_model(whole_model(model), path)


def top_features(model: Any, count: int = 20) -> Weights:
    """Return the largest weights of a fitted model or pipeline by magnitude, largest first.

    Parameters
    ----------
    model : estimator, PrivateSearch or Pipeline
        A fitted model, as in `save`.
    count : int, default=20
        Largest number of weights.

    Returns
    -------
    Weights
        The weights with names from the steps of the pipeline: words of a vocabulary, declared
        categories. Hashed columns have numbers.

    Raises
    ------
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As in `save`.
    """
    return weights_of(whole_model(model)).top(count)


def whole_model(model: Any) -> Model:
    """Return the model of a fitted estimator or pipeline, with the steps before it."""
    steps, last = record_wise_parts(model)
    if not isinstance(last, PrivateLinearModel):
        raise TypeError(f"{type(last).__name__} is not a model of dplasso")
    check_is_fitted(last, "coef_")
    model_only: Model = last.model_
    if steps is None:
        return model_only
    held = row_steps_of(steps, chosen(model).steps[-1][0], model_only.n_features)
    if held.columns is None and model_only.row_steps is not None:
        # Steps from a file do not name columns, but the model from the file does.
        held = replace(held, columns=model_only.row_steps.columns)
    return replace(model_only, row_steps=held)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `save` wrote, either the function or the method of an estimator.

    Returns
    -------
    DPLassoClassifier, DPLasso, DPLogisticRegression, DPLinearRegression or Pipeline
        The fitted model; a pipeline predicts on raw rows. A file never contains a seed:
        `random_state` is ``None``, and `privacy_` says whether there was one.

    Raises
    ------
    ModelFileError
        If the file is damaged, has another format or version, or if its pipeline needs an
        undeclared type or function (`record_wise`).
    OSError
        If there is no such file or it cannot be read.
    """
    model = read_model(path)
    try:
        # Find the estimator that has the parameters in the file.
        kinds = [
            kind
            for kind in filter(None, chain.from_iterable(METHODS.values()))
            if model.params.keys() <= signature(kind).parameters.keys()
        ]
        if not kinds:
            raise ValueError("no estimator has these parameters")
        prior = {} if model.prior is None else {"prior": model.prior}
        estimator: PrivateLinearModel = kinds[0](**model.params, **prior)
        targets = method_of(estimator).targets
        task = targets.of_classes(model.classes, many_labels=model.statement.many_labels)
        if bool(task.target_bounds) == bool(model.classes.size):
            raise ValueError("it needs either labels or an interval of targets")
        set_fitted(estimator, model)
        if model.row_steps is not None:
            return pipeline_of(model.row_steps, estimator)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} holds no valid model: {reason}.") from error
    return estimator
