"""Looking inside a fitted model; each class of every family takes these as its methods."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dplasso.estimators.coefficients import check_writable_out
from dplasso.model.report import report_section
from dplasso.model.weights import Weights, weights_of


def weights(self: Any, *, dense: bool = False) -> Weights | NDArray[np.float64]:
    """Return the weights by column.

    Parameters
    ----------
    dense : bool, default=False
        Whether to return an array with a number for every column.

    Returns
    -------
    Weights, or ndarray of float64, shape (D,), or (K, D) for K > 2 classes
        A table of the columns that have a weight (`dplasso.model.weights.Weights`: `index`,
        `values`, ``["name"]``, ``top(20)``, ``to_pandas()``); or all of them, zeros included.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    ValueError
        If `dense` is asked for more than 10^8 columns.
    """
    check_is_fitted(self, "coef_")
    if not dense:
        return weights_of(self.model_)
    check_writable_out(self.n_features_in_)
    coefficients = self.coef_
    if not isinstance(coefficients, np.ndarray):
        coefficients = coefficients.toarray()
    row: NDArray[np.float64] = coefficients[0] if coefficients.shape[0] == 1 else coefficients
    return row.copy()


def top_features(self: Any, count: int = 20) -> Weights:
    """Return the largest weights by magnitude, largest first.

    Parameters
    ----------
    count : int, default=20
        How many, at most.

    Returns
    -------
    Weights
        With standard errors where the method has them, and marked where noise alone could have
        picked them.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    """
    check_is_fitted(self, "coef_")
    return weights_of(self.model_).top(count)


def repr_html(self: Any) -> str:
    """Return what a notebook shows: scikit-learn's diagram and, once fitted, the report."""
    diagram: str = BaseEstimator._repr_mimebundle_(self).get("text/html", "")
    return diagram + (report_section(self.model_) if hasattr(self, "model_") else "")


def repr_mimebundle(self: Any, **_: Any) -> dict[str, str]:
    """Return what a notebook shows, by kind of text."""
    bundle: dict[str, str] = BaseEstimator._repr_mimebundle_(self)
    return bundle | {"text/html": repr_html(self)} if "text/html" in bundle else bundle
