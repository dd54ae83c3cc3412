"""What a fit takes from public knowledge: a prior, and latent directions of public rows."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from dplasso.data.store import Store
from dplasso.encoding.encoder import encoded_alike, is_frame
from dplasso.encoding.origin import column_names, is_named, schema_of
from dplasso.encoding.schema import Schema
from dplasso.errors import DataError, ParameterError, ParameterTypeError, shown
from dplasso.fit.public_model import PublicModel, existing, read_prior
from dplasso.fit.records import LocalRecords, local_records
from dplasso.fit.task import Task
from dplasso.matrix.compressed import checked
from dplasso.matrix.geometry import Geometry
from dplasso.model.linear import MatchedPrior
from dplasso.phases.intervals import PublicPredictions
from dplasso.runtime.progress import late_progress

# Parameters that a model file does not hold; it holds the prior and the geometry instead.
PARAMETERS = ("prior", "public_data", "public_rows")
# Column names are made in chunks of this size, because a hashed text may have millions.
_CHUNK = 2**16
_SHOWN = 3
_FOLDS = 5
# Strengths that cross-validation chooses among; rows are of unit length.
_STRENGTHS = tuple(10.0**power for power in range(-2, 5))

# ``start(method, task, records)``
Start = Callable[[Any, Task, Any], MatchedPrior]


def start_of(params: Mapping[str, Any]) -> Start | None:
    """Return what makes the prior for some records; None if the fit starts from nothing."""
    prior, data = params.get("prior"), params.get("public_data")
    if prior is not None and data is not None:
        raise ParameterError(
            "`prior` and `public_data` cannot be combined: each defines where the fit starts",
            advice="pass one of them",
        )
    if data is not None:
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise ParameterTypeError(
                "`public_data` must be a pair (X, y) of rows and their labels, got " + shown(data)
            )
        X, y = data
        return lambda method, task, records: _matched(trained_on(X, y, method, task), task, records)
    if isinstance(prior, MatchedPrior):
        return lambda _, task, records: _as_it_is(prior, task, records)
    if prior is None:
        return None
    model = read_prior(prior)
    return lambda _, task, records: _matched(model, task, records)


def refuse_private(params: Mapping[str, Any], X: Any) -> None:
    """Raise `DataError` if the private rows are also passed as public ones.

    Where labels alone are private, rows without them are public.
    """
    data, rows = params.get("public_data"), params.get("public_rows")
    labelled = isinstance(data, tuple | list) and any(each is X for each in data)
    if X is not None and (labelled or (rows is X and params["neighbors"] != "label")):
        raise DataError(
            f"`public_{'data' if labelled else 'rows'}` holds the private rows of the fit, and the "
            "fit would not protect them",
            advice="give rows of other people, or leave it out",
        )


def _as_it_is(prior: MatchedPrior, task: Task, records: Any) -> MatchedPrior:
    """Return a prior that was made for such records before."""
    expected = task.n_outputs, records.shape[1]
    if prior.weights.shape != expected:
        raise ParameterError(
            f"`prior` has weights of the shape {prior.weights.shape}, and these data need "
            f"{expected}"
        )
    return prior


def _matched(model: PublicModel, task: Task, records: Any) -> MatchedPrior:
    """Return the prior for the columns and classes of some records; ValueError for others."""
    n_features = int(records.shape[1])
    if model.learns is not None and model.learns != task.learns:
        raise ParameterError(
            f"`prior` is a model of {model.learns}, and the fit learns {task.learns}"
        )
    weights, intercept, error = task.margins_of(model)
    own, theirs, matching = _columns(model, records, n_features)
    matched = np.zeros((task.n_outputs, n_features))
    matched[:, theirs] = weights[:, own]
    noise = None
    if error is not None:
        noise = np.zeros_like(matched)
        noise[:, theirs] = error[:, own]
    return MatchedPrior(matched, intercept, f"{model.kind}, {matching}", noise)


def _columns(model: PublicModel, records: Any, n_features: int) -> tuple[Any, Any, str]:
    """Return which columns of a public model are which of the records, and a few words on it."""
    n_model, schema = model.weights.shape[1], schema_of(records.origin)
    same = schema is not None and model.schema is not None and schema.same_columns(model.schema)
    theirs = None if same else _names(records.feature_names, schema)
    ours = None if same else _names(model.names, model.schema)
    if ours is not None and theirs is not None:
        return _by_name(list(chain.from_iterable(ours)), theirs, n_features)
    names = list(map(str, model.names if model.is_table and model.names is not None else ()))
    if names and all(name.isdecimal() and len(name) < 19 for name in names):
        numbers = np.array([int(name) for name in names], dtype=np.int64)
        inside = (numbers >= 0) & (numbers < n_features)
        if not inside.all():
            raise ParameterError(
                f"`prior` has a weight for column {numbers[~inside][0]}, and the columns of the "
                f"data are numbered from 0 to {n_features - 1}"
            )
        return slice(None), numbers, f"{n_model:,} of {n_features:,} columns by number"
    if model.is_table:
        raise ParameterError(
            "`prior` has weights by name, and the columns of the data have no names; pass weights "
            "by column number, from 0, or an array with one for each column"
        )
    if n_model != n_features:
        raise ParameterError(
            f"`prior` has {n_model:,} columns and the data have {n_features:,}; without names on "
            "both sides these numbers must be equal"
        )
    return slice(None), slice(None), f"all {n_features:,} columns in their order"


def _by_name(
    ours: list[str], theirs: Iterator[list[str]], n_features: int
) -> tuple[list[int], list[int], str]:
    """Return the columns with the same name: their places in the prior and in the data."""
    places = {name: place for place, name in enumerate(ours)}
    if len(places) < len(ours):
        raise ParameterError("`prior` has two columns of the same name")
    pairs: list[tuple[int, int]] = []
    examples, first = [""], 0
    for names in theirs:
        matches = ((places.get(name), j) for j, name in enumerate(names, first))
        pairs += [(place, j) for place, j in matches if place is not None]
        examples, first = names if first == 0 else examples, first + len(names)
    if not pairs:
        raise ParameterError(
            f"`prior` knows none of the columns of the data: its own are {_quoted(ours)}, those of "
            f"the data {_quoted(examples)}"
        )
    own, data = (list(side) for side in zip(*pairs, strict=True))
    if len(set(own)) < len(own):
        raise ValueError(
            "the data have two columns with the same name, and the prior uses that name"
        )
    left = f", {len(ours) - len(own):,} of its own left out" if len(ours) > len(own) else ""
    return own, data, f"{len(own):,} of {n_features:,} columns matched by name{left}"


def find_named(wanted: tuple[str, ...], records: Any) -> dict[int, str]:
    """Return the columns that `infer` names, with their names; ParameterError if one is missing."""
    names = column_names(records.feature_names, schema_of(records.origin), records.shape[1])
    named = {place: name for place, name in enumerate(names) if is_named(name, wanted)}
    for name in wanted:
        if not any(is_named(column, (name,)) for column in named.values()):
            raise ParameterError(
                f"`infer` names the column {name!r}, which the data do not have",
                advice=f"name some of {_quoted(names)}, or give 'all'",
            )
    return named


def _names(names: Any, schema: Schema | None) -> Iterator[list[str]] | None:
    """Return the names of columns, some at a time; None where they have none."""
    if names is not None:
        return iter([[str(name) for name in names]])
    if schema is None:
        return None
    size = schema.n_features
    edges = range(0, size, _CHUNK)
    return (schema.names(np.arange(first, min(first + _CHUNK, size))) for first in edges)


def _quoted(names: list[str]) -> str:
    more = ", ..." if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


def trained_on(X: Any, y: Any, method: Any, task: Task) -> PublicModel:
    """Return a model of public rows, read as the method reads rows; of many labels one of each.

    Cross-validation on the same rows chooses its strength of regularisation.
    """
    model, strength, _ = task.plain_model()
    try:
        public = local_records(model, X, y, takes_matrix=task.many_labels)
        labels = task.plain_labels(np.asarray(public.y))
    except ValueError as error:
        raise DataError(f"`public_data`: {error}") from error
    rows = public.X.X.tocsr() if isinstance(public.X, Store) else csr_array(checked(public.X))
    rows = method.as_read(rows.astype(np.float64))
    # The penalty leaves a column without an entry at zero.
    seen = np.unique(rows.indices)
    each = [_trained(rows[:, seen], own, task) for own in labels.reshape(len(labels), -1).T]
    model, classes = each[0], getattr(each[0], "classes_", None)
    of_each, strength_chosen = "", f" with {strength} = {getattr(model, strength):g}"
    if task.many_labels:
        classes, of_each, strength_chosen = task.classes, " for each label", ""
    learnt = np.concatenate([np.atleast_2d(fitted.coef_) for fitted in each])
    weights = np.zeros((len(learnt), public.shape[1]))
    weights[:, seen] = learnt
    return PublicModel(
        weights,
        np.concatenate([np.atleast_1d(fitted.intercept_) for fitted in each]).astype(np.float64),
        f"a {type(model).__name__} of scikit-learn{of_each} trained on {len(labels):,} public rows"
        + strength_chosen,
        names=public.feature_names,
        labels=None if classes is None else classes.tolist(),
        learns=task.learns,
        schema=schema_of(public.origin),
    )


def _trained(rows: csr_array, labels: NDArray[Any], task: Task) -> Any:
    """Return a plain model of some rows, of the best of a few strengths."""
    model, strength, scoring = task.plain_model()
    if task.many_labels and labels.min() == labels.max():
        # A label that all rows have, or none, says nothing about the columns.
        model.coef_, model.intercept_ = np.zeros((1, rows.shape[1])), np.zeros(1)
        return model
    if (folds := task.folds(labels, _FOLDS)) is not None:
        model = GridSearchCV(model, {strength: _STRENGTHS}, scoring=scoring, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, labels)
    return getattr(model, "best_estimator_", model)


# ``learn(records)``
Learn = Callable[[Any], Geometry | PublicPredictions]
_LEARNT = (Geometry, PublicPredictions)


def geometry_of(public_rows: Any, verbose: int | None = None) -> Learn | None:
    """Return what makes the geometry for some records; None without public rows."""
    if public_rows is None:
        return None
    if isinstance(public_rows, str | os.PathLike):
        public_rows = Geometry.load(existing("public_rows", public_rows))
    elif not isinstance(public_rows, _LEARNT) and len(np.shape(public_rows)) != 2:
        raise ParameterTypeError(
            f"`public_rows` must be rows or a Geometry, got {shown(public_rows)}",
            advice="give a matrix with the columns of the data; behind steps of a pipeline, "
            "`pipeline[:-1].transform(rows)`",
        )
    progress = None if verbose == 0 else late_progress("learning directions of the public rows")

    def learn(records: Any) -> Geometry:
        rows = public_matrix(public_rows, records)
        return rows if isinstance(rows, Geometry) else Geometry.learn(rows, progress=progress)

    return learn


def public_matrix(public_rows: Any, records: Any) -> Any:
    """Return public rows as a matrix, and a geometry as it is; DataError for other columns."""
    is_geometry, n_features = isinstance(public_rows, Geometry), records.shape[1]
    rows = public_rows if is_geometry else _encoded(public_rows, records)
    n_public = int(rows.n_features if is_geometry else np.shape(rows)[1])
    if n_public != n_features:
        raise DataError(
            f"`public_rows` has {n_public:,} columns and the data have {n_features:,}",
            advice="encode both in the same way",
        )
    return rows


def _encoded(public_rows: Any, records: LocalRecords) -> Any:
    """Return public rows as a matrix, a table encoded as the records were."""
    names = records.feature_names
    if is_frame(public_rows) and schema_of(records.origin) is None:
        own = [str(name) for name in public_rows.columns]
        if names is not None and own != [str(name) for name in names]:
            raise DataError(
                "`public_rows` does not have the column names of the data",
                advice="give the same columns in the same order",
            )
        return np.asarray(public_rows, dtype=np.float64)
    rows = encoded_alike(public_rows, records.origin, "`public_rows`")
    if isinstance(rows, Store):
        return rows.tocsr()
    return rows if hasattr(rows, "shape") else np.asarray(rows)
