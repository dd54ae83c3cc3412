"""Margins of a fitted estimator, and their decomposition into contributions of columns."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dplasso.data.store import Store, check_entries
from dplasso.encoding.encoder import encoded_alike
from dplasso.errors import DataError, ParameterError, shown
from dplasso.fit.records import validated
from dplasso.fit.task import Labels, Task
from dplasso.matrix.centring import centred_rows
from dplasso.matrix.compressed import Compressed, checked, clipped
from dplasso.matrix.unit_rows import by_rows, keep_columns, row_factors, unit_row_margins
from dplasso.model import Model
from dplasso.model.curves import typical_factor
from dplasso.model.linear import reading_for
from dplasso.model.weights import Weights
from dplasso.phases.releases import Descended
from dplasso.runtime.threads import Threads, count_threads, thread_pool


def task_of(model: Model) -> Task:
    """Return the task of a fitted classifier's model."""
    return Labels().of_classes(model.classes, many_labels=model.statement.many_labels)


def loss_of(model: Model) -> Any:
    """Return the loss whose link converts a classifier's margins to probabilities."""
    by_gradients = model.released.last(Descended) is not None
    stated: Any = model.statement.find("gradients" if by_gradients else "vertices")
    bound = stated.numbers["residual_bound"]
    return (task_of(model).gradient_loss if by_gradients else task_of(model).vertex_loss)(bound)


def margins(fitted: Any, X: Any) -> NDArray[np.float64]:
    """Compute the margins of rows, shape (N,), or (N, K) for K > 2 classes."""
    check_is_fitted(fitted, "coef_")
    with thread_pool(count_threads(fitted.n_jobs)) as threads:
        rows, weights, factor = read_rows(fitted, X, threads)
        return unit_row_margins(rows, weights, factor, fitted.intercept_, threads)


def read_rows(
    fitted: Any, X: Any, threads: Threads
) -> tuple[Compressed, NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows and weights of the columns that the model uses, and the rows' factors."""
    X = encoded_alike(X, fitted.model_.origin)
    scaling, bound = reading_for(fitted.model_)
    kept, make = scaling.kept, X.scratch if isinstance(X, Store) else np.empty
    weights = _weights(fitted.coef_, kept)
    if not isinstance(X, Store):
        X = validated(fitted, X, reset=False)
        rows = by_rows(checked(X)[:, kept] if kept.size else X, threads.count)
    else:
        if X.shape[1] != fitted.n_features_in_:
            raise DataError(
                f"{X.path} has {X.shape[1]:,} columns, but the model was trained on "
                f"{fitted.n_features_in_:,}; convert the data with this number (--features)"
            )
        check_entries(X, n_threads=threads.count)
        rows = X.rows
        if kept.size:
            rows = keep_columns(rows, kept, X.shape[1], threads)
    if bound is None:
        rows = centred_rows(rows, scaling.centres, scaling.limits, threads, make)
        scaled = scaling.constant, scaling.norm_bound, threads, scaling.scale_exponents
        return rows, weights, row_factors(rows, *scaled)
    return clipped(rows, bound), weights, np.ones(rows.indptr.size - 1)


def _weights(coefficients: Any, kept: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the weights of the kept columns, of all if these are none, shape (k,) or (k, K)."""
    if isinstance(coefficients, np.ndarray):
        dense = coefficients
    elif not kept.size:
        dense = coefficients.toarray()
    else:
        # Selecting columns of a sparse array would take memory for all columns.
        entries = coefficients.tocoo()
        dense = np.zeros((coefficients.shape[0], kept.size))
        dense[entries.row, np.searchsorted(kept, entries.col)] = entries.data
    return dense[0] if dense.shape[0] == 1 else np.ascontiguousarray(dense.T)


_SHOWN = 8


@dataclass(frozen=True)
class Contribution:
    """The contribution of a table column to the margin of a row.

    `column`: the column, or the columns that are encoded together.
    `words`: the value of the row in words.
    `effect`: the contribution to the margin.
    `odds`: for two classes, the factor by which the value changes the odds of the class.
    """

    column: str
    words: str
    effect: float
    odds: float | None = None

    def __str__(self) -> str:
        odds = "" if self.odds is None else f" (odds x {self.odds:.3g})"
        return f"{self.words} {self.effect:+.2f}{odds}"


@dataclass(frozen=True)
class Explanation:
    """The contributions that add up to the margin of a row, largest first.

    `label`: the class of the margin; None for a regression. A larger margin means more likely.
    """

    label: Any
    margin: float
    intercept: float
    parts: tuple[Contribution, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return asdict(self)

    def text(self, most: int = _SHOWN) -> str:
        """Return the explanation as a sentence with the largest parts."""
        shown = [f"{self.intercept:+.2f} for every row", *map(str, self.parts[:most])]
        if rest := self.parts[most:]:
            effect = sum(part.effect for part in rest)
            shown.append(f"{len(rest):,} more {effect:+.2f}")
        whose = "prediction" if self.label is None else f"margin of {self.label}"
        return f"{whose} {self.margin:+.2f} = {', '.join(shown)}"

    def __str__(self) -> str:
        return self.text()


def explain(fitted: Any, X: Any, label: Any = None) -> list[Explanation]:
    """Return the contributions that add up to the margin of each row, by column of the table.

    Parameters
    ----------
    X : table, or sparse or dense matrix, shape (N, D)
        The rows, as in `predict`.
    label : object, default=None
        The class whose margins to explain. Default: the second of two classes, or the predicted one
        of several classes. Required for a label matrix.

    Returns
    -------
    list of Explanation
        With `margin`, `intercept` and `parts`; the effects of the parts and the intercept add up to
        the margin.

    Raises
    ------
    DataError
        For a store, or for rows with different columns than the model.
    ValueError
        For a `label` that the model does not have, or if it is required and missing.
    """
    check_is_fitted(fitted, "coef_")
    if isinstance(X, Store):
        raise DataError("rows of a store cannot be explained; pass rows as a table or a matrix")
    with thread_pool(count_threads(fitted.n_jobs)) as threads:
        rows, weights, factor = read_rows(fitted, X, threads)
    weights = weights.reshape(len(weights), -1)
    numbers, kept = np.atleast_1d(fitted.intercept_), reading_for(fitted.model_)[0].kept
    kept = kept if kept.size else np.arange(len(weights))
    model, schema = fitted.model_, fitted.model_.schema
    values = rows.values if rows.values.size else np.full(rows.indices.size, rows.constant)
    output, labels = _output(model, label), model.output_labels
    two = len(labels) == 1 and labels != [None]
    explanations = []
    for row, (first, last) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        columns = rows.indices[first:last]
        every = weights[columns] * (values[first:last] * factor[row])[:, np.newaxis]
        margins = every.sum(axis=0) + numbers
        own = int(margins.argmax()) if output is None else output
        merged: dict[Any, tuple[list[int], float]] = {}
        for column, effect in zip(kept[columns].tolist(), every[:, own].tolist(), strict=True):
            group = column if schema is None else schema.columns_of(column)
            held, total = merged.get(group, ([], 0.0))
            merged[group] = [*held, column], total + effect
        margin, parts = float(margins[own]), []
        for key, (held, effect) in merged.items():
            odds = _odds(model, margin) / _odds(model, margin - effect) if two else None
            parts.append(Contribution(*_words(model, key, held), effect, odds))
        parts.sort(key=lambda part: -abs(part.effect))
        explanations.append(Explanation(labels[own], margin, float(numbers[own]), tuple(parts)))
    return explanations


def _odds(model: Model, margin: float) -> float:
    without, having = loss_of(model).link(np.array([margin]))[0]
    return float(having / without)


def with_odds(model: Model, weights: Weights) -> list[dict[str, Any]]:
    """Return rows of weights, with the factor by which each changes even odds of a typical row."""
    rows, schema = weights.rows(), model.schema
    if schema is None or len(model.output_labels) != 1 or not model.classes.size:
        return rows
    factor = typical_factor(model, schema)
    return [row | {"odds": _odds(model, factor * row["weight"])} for row in rows]


def _output(model: Model, label: Any) -> int | None:
    """Return the index of a label's output; None for that of the predicted class."""
    labels = model.output_labels
    if label is None:
        if model.statement.many_labels:
            raise ParameterError(
                f"`label` is missing; pass one of {labels!r}, because each has its own margin"
            )
        return 0 if len(labels) == 1 else None
    if label not in labels:
        raise ParameterError(f"`label` must be one of {labels!r}, got {shown(label)}")
    return labels.index(label)


def _words(model: Model, key: Any, columns: list[int]) -> tuple[str, str]:
    """Return the name of a group of columns, and the value of a row with entries in these."""
    if (schema := model.schema) is None:
        names = model.feature_names
        name = f"column {key:,}" if names is None else str(names[key])
        return name, name
    ends = schema.offsets[1:]
    last = {int(np.searchsorted(ends, column, "right")): column for column in columns}
    return ", ".join(key), ", ".join(schema.names([*last.values()]))
