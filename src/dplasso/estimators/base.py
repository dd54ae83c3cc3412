"""What estimators have in common: all of them, those of classes, and those of numbers."""

import math
import warnings
from copy import copy
from functools import cache
from importlib import metadata
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dplasso.cluster import Engine
from dplasso.estimators.export import to_sklearn
from dplasso.estimators.fitting import check_writable_out, fit_estimator
from dplasso.estimators.margins import explain, loss_of, margins, task_of
from dplasso.estimators.onnx_graph import to_onnx
from dplasso.fit.method import Method
from dplasso.fit.public_knowledge import PARAMETERS
from dplasso.model import write_model
from dplasso.model.curves import Curve, curves_of
from dplasso.model.weights import Weights, weights_of
from dplasso.report.displays import (
    BudgetDisplay,
    CalibrationDisplay,
    CurvesDisplay,
    WeightsDisplay,
    as_method,
)
from dplasso.report.page import report_section

# Finding a package reads directories, and estimators are copied in every fit.
version = cache(metadata.version)


class PrivateLinearModel(BaseEstimator):
    """What all estimators share; `_method` says how they fit."""

    _method: ClassVar[type[Method]]

    def fit(
        self,
        X: Any,
        y: "ArrayLike | None" = None,
        sample_weight: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        engine: Engine | None = None,
    ) -> Self:
        """Train a model.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            One record a row. CSR and CSC are used as they are and never copied whole to float64. A
            store (`dplasso.data.store.open_store`), or its `X`, stays on the disk.
        y : array-like, shape (N,) or (N, L), default=None
            Labels, or the numbers of a regression. A store has its own. `DPLogisticRegression` also
            takes a matrix of 0 and 1 with a column for each of L labels (docs/multiclass.md).
        sample_weight : array-like, shape (N,), default=None
            How much each row counts, at least 0; see `weight_bound`. Weights are protected like the
            rows. With ``epsilon=inf`` whole weights stand for repeated rows.
        groups : array-like, shape (N,), default=None
            The person each row belongs to; of each person the first `rows_per_person` rows enter.
        engine : Engine, default=None
            What runs the workers of rows in partitions; all other arguments are then lists
            (docs/cluster.md).

        Returns
        -------
        Self
            The estimator itself.

        Raises
        ------
        ValueError
            For a parameter out of range or missing, NaN or infinity in X, an undeclared label, or
            non-numeric targets. Nothing private is computed by then.
        TypeError
            For a parameter of the wrong kind.
        BudgetError
            If the ledger has too little left; nothing is spent.
        LedgerError
            If the ledger cannot be used; nothing is spent.

        Warns
        -----
        NoiseWarning
            If the noise will hide almost any signal at this number of records and epsilon.
        PrivacyLeakWarning
            With ``mechanism="paper"`` or a `random_state`, and if a private fit takes the classes
            from y.
        UserWarning
            If a weight is larger than `weight_bound`. This is for the curator, not for release.
        LedgerWarning
            If the ledger could not record that the fit, already charged, has ended.
        """
        fit_estimator(self, X, y, groups=groups, sample_weight=sample_weight, engine=engine)
        return self

    def weights(self, *, dense: bool = False) -> "Weights | NDArray[np.float64]":
        """Return the weights by column.

        Parameters
        ----------
        dense : bool, default=False
            Whether to return an array with a number for every column.

        Returns
        -------
        Weights, or ndarray of float64, shape (D,), or (K, D) for K > 2 classes
            A table of the columns that have a weight (`dplasso.model.weights.Weights`), or an array
            of all of them, zeros included. After a prior, the columns whose weight was corrected.

        Raises
        ------
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

    def top_features(self, count: int = 20) -> Weights:
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
        """
        check_is_fitted(self, "coef_")
        return weights_of(self.model_).top(count)

    def curves(self) -> list[Curve]:
        """Return the effect of each number that a schema has in bins on several levels.

        Returns
        -------
        list of Curve
            For each such column of the table, and each class if there are more than two: bins,
            effects on the margin of a typical row, and their standard errors by the noise alone
            (`dplasso.model.curves.Curve`: `rows`, `to_pandas`).
        """
        check_is_fitted(self, "coef_")
        return curves_of(self.model_)

    explain = explain

    plot_weights = as_method(WeightsDisplay, "plot_weights", __name__)
    plot_curves = as_method(CurvesDisplay, "plot_curves", __name__)
    plot_budget = as_method(BudgetDisplay, "plot_budget", __name__)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file (docs/model-file.md); no pickle in it.

        The file holds the parameters of the fit, whatever was set since. `dplasso.save` writes a
        whole pipeline.

        Parameters
        ----------
        path : path
            Replaced at once when everything is written, never left half-written.

        Raises
        ------
        OSError
            If the file cannot be written.
        ValueError
            If a label or parameter is of a kind that the file cannot hold.
        """
        check_is_fitted(self, "coef_")
        write_model(self.model_, path)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds, and the version that wrote it."""
        return dict(super().__getstate__()) | {"_dplasso_version": version("dplasso")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickle's state; warn if another version wrote it."""
        state = dict(state)
        wrote, here = state.pop("_dplasso_version", "another version"), version("dplasso")
        if wrote != here:
            warnings.warn(
                f"this pickle of {type(self).__name__} was written by dplasso {wrote} and is read "
                f"by {here}, which may understand it otherwise; keep models in files (save, load)",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy with the same prior: a copy of a fitted model is not fitted."""
        bare = copy(self)
        own = {name: getattr(self, name) for name in PARAMETERS if hasattr(self, name)}
        for name in own:
            setattr(bare, name, None)
        twin: Self = BaseEstimator.__sklearn_clone__(bare)
        for name, value in own.items():
            setattr(twin, name, value)
        return twin

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _repr_html_inner(self) -> str:
        """Return what a notebook shows: scikit-learn's diagram and, once fitted, the report."""
        diagram: str = super()._repr_mimebundle_().get("text/html", "")
        return diagram + (report_section(self.model_) if hasattr(self, "model_") else "")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows, by kind of text."""
        bundle: dict[str, str] = super()._repr_mimebundle_()
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """A model of two or more classes."""

    def decision_function(self, X: Any) -> "NDArray[np.float64]":
        """Return the margins of rows.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            The rows; the model scales or clips them as in training.

        Returns
        -------
        ndarray of float64, shape (N,), (N, K) for K > 2 classes, or (N, L) for L labels at once
            Of two classes, positive where the second is likelier. Of K classes, largest for the
            likeliest. Of each label, positive where it is likelier than not.

        Raises
        ------
        ValueError
            If X has another number of columns than the training data, or NaN or infinity.
        """
        return margins(self, X)

    def predict(self, X: Any) -> "NDArray[Any]":
        """Return the predicted label of each row.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            The rows; the model scales or clips them as in training.

        Returns
        -------
        ndarray, shape (N,), or of int64, (N, L) for L labels at once
            Entries of `classes_`. Of many labels, 1 for each that is likelier than not, else 0.

        Raises
        ------
        ValueError
            If X has another number of columns than the training data, or NaN or infinity.
        """
        labels: NDArray[Any] = task_of(self).decided(margins(self, X))
        return labels

    def predict_proba(self, X: Any) -> "NDArray[np.float64]":
        """Return the probability of each label, by the inverse link of the bounded loss.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            The rows; the model scales or clips them as in training.

        Returns
        -------
        ndarray of float64, shape (N, K) or (N, L)
            Columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If X has another number of columns than the training data, or NaN or infinity.
        """
        probabilities: NDArray[np.float64] = loss_of(self).link(margins(self, X))
        return probabilities

    def predict_log_proba(self, X: Any) -> "NDArray[np.float64]":
        """Return the logarithms of what `predict_proba` returns."""
        logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    plot_calibration = as_method(CalibrationDisplay, "plot_calibration", __name__)

    to_sklearn = to_sklearn
    to_onnx = to_onnx

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse input, classes."""
        tags = super().__sklearn_tags__()
        # scikit-learn's checks train on a few dozen records, where privacy leaves only noise.
        tags.classifier_tags.poor_score = bool(self.epsilon != math.inf)
        tags.classifier_tags.multi_label = self._method.many_labels
        return tags


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """A model of numbers in a public interval."""

    def predict(self, X: Any) -> "NDArray[np.float64]":
        """Return the predicted target of each row, in the target's unit.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            The rows; the model scales or clips them as in training.

        Returns
        -------
        ndarray of float64, shape (N,)
            Inside `target_bounds`.

        Raises
        ------
        ValueError
            If X has another number of columns than the training data, or NaN or infinity.
        """
        clipped: NDArray[np.float64] = np.clip(margins(self, X), *self.privacy_.target_bounds)
        return clipped

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse input, numbers."""
        tags = super().__sklearn_tags__()
        # And on targets in intervals that no check can declare.
        tags.regressor_tags.poor_score = True
        return tags
