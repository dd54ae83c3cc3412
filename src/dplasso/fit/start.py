"""What a fit starts from, as its parameters say it, and what that is for some records.

A prior is public: it is made of what was given, of the names of the columns and of the classes, and
of no record (docs/prior.md).
"""

import reprlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from dplasso.encoding.schema import Schema
from dplasso.errors import ParameterError
from dplasso.fit.given import Given, given_model
from dplasso.fit.public_data import checked_public_data, trained_on
from dplasso.fit.task import Task
from dplasso.model.prior import Prior, prior_of

# Parameters that a model file does not hold: it holds the prior that they came to.
PARAMETERS = ("prior", "prior_standard_error", "public_data")
# Names of so many columns are held at a time: a hashed text may have millions.
_CHUNK = 2**16
_SHOWN = 3

# ``start(method, task, records)``
Start = Callable[[Any, Task, Any], Prior]


def start_of(params: Mapping[str, Any]) -> Start | None:
    """Return what an estimator's parameters say of the start; None where they say nothing.

    Raises TypeError, ValueError, OSError: one sentence on what is wrong with the prior.
    """
    prior, error, data = (params.get(name) for name in PARAMETERS)
    if prior is not None and data is not None:
        raise ParameterError(
            "`prior` and `public_data` are two starts of one fit; give one of them"
        )
    if error is not None and prior is None:
        raise ParameterError(
            f"`prior_standard_error={reprlib.repr(error)}` is the noise of a prior, and there is "
            "no prior"
        )
    if data is not None:
        X, y = checked_public_data(data)
        return lambda method, task, records: _matched(trained_on(X, y, method, task), task, records)
    if isinstance(prior, Prior):
        if error is not None:
            raise ValueError("the prior of a fitted model has its own prior_standard_error")
        return lambda _, task, records: _as_it_is(prior, task, records)
    if prior is None:
        return None
    given = given_model(prior, error)
    return lambda _, task, records: _matched(given, task, records)


def _as_it_is(prior: Prior, task: Task, records: Any) -> Prior:
    """Return a prior that was made for such records before."""
    expected = task.n_outputs, records.shape[1]
    if prior.weights.shape != expected:
        raise ParameterError(
            f"`prior` has weights of the shape {prior.weights.shape}, and these data need "
            f"{expected}"
        )
    return prior


def _matched(given: Given, task: Task, records: Any) -> Prior:
    """Return the prior for the columns and classes of some records.

    Raises ValueError if it is of other classes or targets, or not one of its columns is there.
    """
    n_features = int(records.shape[1])
    if given.learns is not None and given.learns != task.learns:
        raise ParameterError(
            f"`prior` is a model of {given.learns}, and the fit learns {task.learns}"
        )
    weights, intercept, error = task.margins_of(given)
    own, theirs, told = _columns(given, records, n_features)
    found = np.zeros((task.n_outputs, n_features))
    found[:, theirs] = weights[:, own]
    noise = None
    if error is not None:
        noise = np.zeros_like(found)
        noise[:, theirs] = error[:, own]
    return prior_of(found, intercept, f"{given.kind}, {told}", noise)


def _columns(given: Given, records: Any, n_features: int) -> tuple[Any, Any, str]:
    """Return which columns of a given model are which of the records, and a few words on it."""
    n_given, schema = given.weights.shape[1], getattr(records.origin, "schema", None)
    same = schema is not None and given.schema is not None and schema.same_columns(given.schema)
    theirs = None if same else _names(records.feature_names, schema)
    ours = None if same else _names(given.names, given.schema)
    if ours is not None and theirs is not None:
        return _by_name(list(chain.from_iterable(ours)), theirs, n_features)
    if (numbers := given.numbered) is not None:
        inside = (numbers >= 0) & (numbers < n_features)
        if not inside.all():
            raise ParameterError(
                f"`prior` has a weight for column {numbers[~inside][0]}, and the columns of the "
                f"data are numbered from 0 to {n_features - 1}"
            )
        return slice(None), numbers, f"{n_given:,} of {n_features:,} columns by number"
    if given.is_table:
        raise ParameterError(
            "`prior` has weights by name, and the columns of the data have no names; give weights "
            "by column number, from 0, or an array with one for each column"
        )
    if n_given != n_features:
        raise ParameterError(
            f"`prior` has {n_given:,} columns and the data have {n_features:,}; without names on "
            "both sides there must be as many"
        )
    return slice(None), slice(None), f"all {n_features:,} columns in their order"


def _by_name(
    ours: list[str], theirs: Iterator[list[str]], n_features: int
) -> tuple[list[int], list[int], str]:
    """Return the columns that go by the same name, those of the prior and those of the data."""
    places = {name: place for place, name in enumerate(ours)}
    if len(places) < len(ours):
        raise ParameterError("`prior` has two columns of the same name")
    pairs: list[tuple[int, int]] = []
    examples, first = [""], 0
    for names in theirs:
        found = ((places.get(name), j) for j, name in enumerate(names, first))
        pairs += [(place, j) for place, j in found if place is not None]
        examples, first = names if first == 0 else examples, first + len(names)
    if not pairs:
        raise ParameterError(
            f"`prior` knows none of the columns of the data: its own are {_quoted(ours)}, those of "
            f"the data {_quoted(examples)}"
        )
    own, data = (list(side) for side in zip(*pairs, strict=True))
    if len(set(own)) < len(own):
        raise ValueError("the data have two columns of one name, which the prior knows")
    left = f", {len(ours) - len(own):,} of its own left out" if len(ours) > len(own) else ""
    return own, data, f"{len(own):,} of {n_features:,} columns matched by name{left}"


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
