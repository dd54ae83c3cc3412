"""A public linear model in any of the forms that a user may have it in."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.schema import Schema
from dplasso.errors import ParameterError, ParameterTypeError, shown
from dplasso.model import Model, read_model
from dplasso.model.weights import errors_of_all, linear_part
from dplasso.privacy.wording import rounded_up

INTERCEPT = "(intercept)"
_FORMS = (
    "a fitted linear model of scikit-learn or dplasso, weights by column name, an array, or the "
    "path of a model file or of a .csv with the columns name and weight"
)


@dataclass(frozen=True)
class PublicModel:
    """A linear model that was given as a prior, before it is matched to the records.

    `weights` and `error`, shape (R, n): R = 1, or a row for each class. `intercept`, shape (R,).
    `labels`: in the order of the rows; if R = 1, the positive one is last. `learns`: "classes" or
    "numbers". `is_table`: whether columns are known by name or number only.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64] | None
    kind: str
    error: NDArray[np.float64] | None = None
    names: NDArray[np.object_] | None = None
    labels: list[Any] | None = None
    learns: str | None = None
    schema: Schema | None = None
    is_table: bool = False


def existing(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path that a parameter names; FileNotFoundError if nothing is there."""
    place = Path(path)
    if not place.exists():
        message = f"{name} is the path of a file that is not there"
        raise FileNotFoundError(ENOENT, message, str(place))
    return place


def read_prior(prior: Any) -> PublicModel:
    """Return the model that was given as a prior, in any form; ValueError for a wrong one."""
    model = _read(prior)
    if model.weights.ndim != 2 or 0 in model.weights.shape:
        raise ParameterError(
            f"`prior` must have a weight for each column, or a row of them for each class; got the "
            f"shape {model.weights.shape}"
        )
    if model.intercept is not None and model.intercept.shape != model.weights.shape[:1]:
        raise ParameterError(
            f"`prior` has {model.intercept.size} intercepts for {model.weights.shape[0]} rows of "
            "weights"
        )
    for what, numbers in (("a weight", model.weights), ("an intercept", model.intercept)):
        if numbers is not None and not np.isfinite(numbers).all():
            raise ParameterError(f"`prior` has {what} that is NaN or infinite")
    return model


def text_of(label: Any) -> str:
    """Return a label as a text by which labels of any type are compared: 1 and 1.0 are one."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def _read(prior: Any) -> PublicModel:
    if isinstance(getattr(prior, "model_", None), Model):
        return _of_model(prior.model_)
    if hasattr(prior, "named_steps"):
        return _of_pipeline(prior)
    if hasattr(prior, "coef_"):
        return _of_fitted(prior, getattr(prior, "feature_names_in_", None))
    if isinstance(prior, str | os.PathLike):
        path = existing("prior", prior)
        return _of_csv(path) if path.suffix.lower() == ".csv" else _of_model(read_model(path))
    if isinstance(prior, Mapping):
        return _of_mapping(prior)
    if hasattr(prior, "fit"):
        raise ParameterError(
            f"`prior` is a {type(prior).__name__} that is not fitted or not linear: it has no "
            f"coef_; give {_FORMS}"
        )
    if hasattr(prior, "to_dict") and hasattr(prior, "index"):
        return _of_mapping(prior.to_dict())
    try:
        weights = np.atleast_2d(np.asarray(prior, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterTypeError(f"`prior` must be {_FORMS}, got {shown(prior)}") from None
    return PublicModel(weights, None, "an array of weights")


def _dense(weights: Any) -> NDArray[np.float64]:
    written: Any = getattr(weights, "toarray", lambda: weights)()
    return np.asarray(written, dtype=np.float64)


def _of_model(model: Model) -> PublicModel:
    """Return a model of this package as it predicts, its own prior included."""
    if model.linear.centres is not None:
        raise ParameterError(
            "`prior` is a model that centred columns, and a fit from a prior does not",
            advice="pass the public rows and labels as `public_data`, or fit the model with "
            "`row_norm` or a schema",
        )
    coefficients, intercept, error = linear_part(model)
    weights = _dense(coefficients)
    statement = model.statement
    promise = "without privacy"
    if statement.is_private:
        promise = f"at epsilon {rounded_up(statement.epsilon)}, delta {rounded_up(statement.delta)}"
    return PublicModel(
        weights,
        np.asarray(intercept, dtype=np.float64),
        f"a model of dplasso {promise}",
        error=None if error is None else errors_of_all(error, model),
        names=model.feature_names,
        labels=model.classes.tolist() if model.classes.size else None,
        learns="classes" if model.classes.size else "numbers",
        schema=model.schema,
    )


def _of_pipeline(pipeline: Any) -> PublicModel:
    """Return the model that a pipeline ends in, its columns named by the step before."""
    last, before = pipeline.steps[-1][1], pipeline[:-1]
    if isinstance(getattr(last, "model_", None), Model) or not hasattr(last, "coef_"):
        return _read(last)
    names = getattr(last, "feature_names_in_", None)
    return _of_fitted(last, names_after(before) if names is None else names)


def names_after(steps: Any) -> NDArray[np.object_] | None:
    """Return how the last of a pipeline's steps calls its columns, if it does."""
    if not len(steps):
        return None
    try:
        names = steps.get_feature_names_out()
    except (AttributeError, ValueError):
        return None
    # These are the names that scikit-learn makes up.
    if [*names[:2]] == [f"x{j}" for j in range(min(2, len(names)))]:
        return None
    return np.asarray(names, dtype=object)


def _of_fitted(model: Any, names: Any) -> PublicModel:
    """Return a fitted linear model that has scikit-learn's attributes."""
    maker = type(model).__module__.partition(".")[0]
    weights, classes = np.atleast_2d(_dense(model.coef_)), getattr(model, "classes_", None)
    constant = np.atleast_1d(getattr(model, "intercept_", 0.0)).astype(float)
    return PublicModel(
        weights,
        # Without an intercept, scikit-learn may have one zero for all classes.
        np.full(weights.shape[0], constant[0]) if constant.size == 1 else constant,
        f"a {type(model).__name__} of {'scikit-learn' if maker == 'sklearn' else maker}",
        names=None if names is None else np.asarray(names, dtype=object),
        labels=None if classes is None else np.asarray(classes).tolist(),
        learns="numbers" if classes is None else "classes",
    )


def _of_mapping(table: Mapping[Any, Any]) -> PublicModel:
    """Return weights by name; each a number or one for each class, or a mapping for each class."""
    if not table:
        raise ParameterError(
            f"`prior` must have a weight for each column that it knows, got {shown(table)}"
        )
    labels = None
    if all(isinstance(inner, Mapping) for inner in table.values()):
        labels = list(table)
        columns = dict.fromkeys(name for inner in table.values() for name in inner)
        table = {name: [inner.get(name, 0.0) for inner in table.values()] for name in columns}
    try:
        rows = [np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in table.values()]
        weights = np.ascontiguousarray(np.stack(rows).T)
    except (TypeError, ValueError):
        raise ParameterError(
            "`prior` must have for each column a number, or as many numbers as there are classes"
        ) from None
    names = list(table)
    intercept = None
    if INTERCEPT in table:
        place = names.index(INTERCEPT)
        intercept, weights = weights[:, place].copy(), np.delete(weights, place, axis=1)
        del names[place]
    named = np.array(names, dtype=object)
    return PublicModel(weights, intercept, "a table of weights", None, named, labels, is_table=True)


def _of_csv(path: Path) -> PublicModel:
    """Return the weights in a file with the columns name, weight and perhaps class."""
    table: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if not {"name", "weight"} <= set(rows.fieldnames or ()):
            raise ValueError(f"{path} has no header with the columns name and weight")
        for row in rows:
            of_class = table.setdefault(row.get("class") or "", {})
            try:
                weight = float(row["weight"])
            except (TypeError, ValueError):
                raise ValueError(
                    f"{path}, line {rows.line_num}: {row['weight']!r} is not a number"
                ) from None
            if row["name"] in of_class:
                raise ValueError(f"{path}, line {rows.line_num}: {row['name']!r} appears twice")
            of_class[row["name"]] = weight
    return _of_mapping(table[""] if [*table] == [""] else table)
