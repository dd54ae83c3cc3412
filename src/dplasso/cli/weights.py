"""The heaviest weights of a model, with what is known of their error."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.cli.output import print_table

if TYPE_CHECKING:
    from dplasso.estimators.load import Estimator


def stored_weights(
    estimator: "Estimator",
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Return the columns that have a weight, their weights, and the outputs that these are of."""
    coefficients = estimator.coef_
    if isinstance(coefficients, np.ndarray):
        outputs, columns = np.nonzero(coefficients)
        return columns, coefficients[outputs, columns], outputs
    outputs = np.repeat(np.arange(coefficients.shape[0]), np.diff(coefficients.indptr))
    return coefficients.indices, coefficients.data, outputs


def heaviest_weights(estimator: "Estimator", count: int) -> list[dict[str, Any]]:
    """List the heaviest weights of a fit, for JSON.

    Returns
    -------
    list of dict
        ``column`` (from 0), ``name`` (of the column, or None), ``weight``, ``standard_error`` and
        ``z``, which are None for the LASSO and without privacy; of more than two classes,
        ``class``.
    """
    columns, weights, outputs = stored_weights(estimator)
    order = np.argsort(-np.abs(weights), kind="stable")[:count]
    names = getattr(estimator, "feature_names_in_", None)
    error = getattr(estimator, "coef_standard_error_", None) or None
    labels: list[Any] = [None]
    if estimator.coef_.shape[0] > 1:
        labels = estimator.model_.classes.tolist()
    return [
        ({} if len(labels) == 1 else {"class": labels[output]})
        | {
            "column": column,
            "name": None if names is None else str(names[column]),
            "weight": weight,
            "standard_error": error,
            "z": weight / error if error else None,
        }
        for column, weight, output in zip(
            columns[order].tolist(), weights[order].tolist(), outputs[order].tolist(), strict=True
        )
    ]


def count_significant(estimator: "Estimator") -> int | None:
    """Return how many weights are beyond three standard errors; None without privacy."""
    from dplasso.gradient_descent.run import SIGNIFICANT

    error = estimator.coef_standard_error_
    _, weights, _ = stored_weights(estimator)
    return int((np.abs(weights) > SIGNIFICANT * error).sum()) if error else None


def beyond_by_chance(n_columns: int) -> int:
    """Return how many weights the noise alone takes beyond three standard errors, on average."""
    from dplasso.gradient_descent.run import SIGNIFICANT

    return round(n_columns * math.erfc(SIGNIFICANT / math.sqrt(2.0)))


def print_weights(heaviest: list[dict[str, Any]], title: str) -> None:
    """Print what `heaviest_weights` returns."""
    if not heaviest:
        return
    headings = ["column (from 0)" if heaviest[0]["name"] is None else "column", ">weight"]
    rows = [[one["name"] or f"{one['column']:,}", f"{one['weight']:+.3f}"] for one in heaviest]
    if "class" in heaviest[0]:
        headings.insert(0, "class")
        for row, one in zip(rows, heaviest, strict=True):
            row.insert(0, str(one["class"]))
    if heaviest[0]["z"] is not None:
        headings += [">standard error", ">z"]
        for row, one in zip(rows, heaviest, strict=True):
            row += [f"{one['standard_error']:.3f}", f"{one['z']:+.1f}"]
    print_table(headings, rows, title=title)
