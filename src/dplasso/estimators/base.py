"""Base classes of all estimators, of the classifiers, and of the regressors."""

import math
from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dplasso.estimators.export import to_onnx, to_sklearn
from dplasso.estimators.fitting import check_writable_out, fit_estimator
from dplasso.estimators.predictions import explain, loss_of, margins, task_of
from dplasso.fit.method import Method
from dplasso.fit.public_knowledge import PARAMETERS
from dplasso.model import write_model
from dplasso.model.curves import Curve, curves_of
from dplasso.model.weights import Weights, weights_of
from dplasso.report.displays import CurvesDisplay, WeightsDisplay
from dplasso.report.page import report_section

if TYPE_CHECKING:
    # Fits in one process do not load it.
    from dplasso.cluster import Engine


class PrivateLinearModel(BaseEstimator):
    """Base of all estimators; `_method` is the class of their fitting method."""

    _method: ClassVar[type[Method]]

    def fit(
        self,
        X: Any,
        y: "ArrayLike | None" = None,
        sample_weight: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        engine: "Engine | None" = None,
    ) -> Self:
        """Train a model.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            One record per row. A store (`dplasso.open_store`), or its `X`, stays on the disk.
        y : array-like, shape (N,) or (N, L), default=None
            Labels or targets; not needed for a store. `DPLogisticRegression` also takes a matrix of
            0 and 1 with a column for each of L labels (docs/multiclass.md).
        sample_weight : array-like, shape (N,), default=None
            Weight of each row, from 0 to 1, protected like the row. Larger ones are clipped, so
            divide all by a public limit. With ``epsilon=inf`` only ratios matter.
        groups : array-like, shape (N,), default=None
            The person each row belongs to. The fit uses the first `rows_per_person` rows of each.
        engine : Engine, default=None
            For a fit on partitions (docs/cluster.md): all other arguments are then lists with an
            entry for each partition.

        Returns
        -------
        Self
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For an invalid parameter or entry, or an undeclared label; nothing is charged then.
        BudgetError, LedgerError
            If the ledger has too little left or cannot be used; nothing is charged then.

        Warns
        -----
        NoiseWarning
            If the noise will hide almost any signal at this number of records and epsilon.
        PrivacyLeakWarning
            If the fit is not private, or takes the classes from y.
        LedgerWarning
            If the ledger was charged but could not record the end of the fit.
        """
        fit_estimator(self, X, y, groups=groups, sample_weight=sample_weight, engine=engine)
        return self

    def weights(self, *, dense: bool = False) -> "Weights | NDArray[np.float64]":
        """Return the weights with their columns.

        Parameters
        ----------
        dense : bool, default=False
            Whether to return an array with a weight for every column.

        Returns
        -------
        Weights, or ndarray of float64, shape (D,), or (K, D) for K > 2 classes
            The columns with a weight (`dplasso.model.weights.Weights`); with a prior, those whose
            weight the fit corrected. Or an array with the weights of all columns.

        Raises
        ------
        ValueError
            If `dense` is true and there are more than 10^8 columns.
        """
        check_is_fitted(self, "coef_")
        if not dense:
            return weights_of(self.model_)
        check_writable_out(self.n_features_in_)
        weights: NDArray[np.float64] = np.array(self.coef_)
        return weights[0] if len(weights) == 1 else weights

    def top_features(self, count: int = 20) -> Weights:
        """Return the largest weights by magnitude, largest first.

        Parameters
        ----------
        count : int, default=20
            Largest number of weights.

        Returns
        -------
        Weights
            With standard errors, if the method has them, and marks of what noise alone explains.
        """
        check_is_fitted(self, "coef_")
        return weights_of(self.model_).top(count)

    def curves(self) -> list[Curve]:
        """Return the effect curve of each column that the schema encodes as `Levels`.

        Returns
        -------
        list of Curve
            Bins, their effects on the margin of a typical row, and standard errors due to the noise
            alone (`dplasso.model.curves.Curve`); one for each class if there are more than two.
        """
        check_is_fitted(self, "coef_")
        return curves_of(self.model_)

    explain = explain

    def plot_weights(self, count: int = 20, ax: Any = None) -> WeightsDisplay:
        """Draw the largest weights, with three standard errors of the noise where there are any.

        Parameters
        ----------
        count : int, default=20
            How many weights, at most.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on.

        Returns
        -------
        WeightsDisplay
            The picture; MissingExtraError without matplotlib.
        """
        return WeightsDisplay(self.top_features(count)).plot(ax)

    def plot_curves(self, ax: Any = None) -> CurvesDisplay:
        """Draw the effect of each number that a schema has in bins on several levels.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, default=None
            Axes to draw on, one for each curve; None makes a figure.

        Returns
        -------
        CurvesDisplay
            The pictures; MissingExtraError without matplotlib.

        Raises
        ------
        ValueError
            If the model has no such numbers.
        """
        return CurvesDisplay(self.curves()).plot(ax)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file without pickle (docs/model-file.md).

        `dplasso.save` writes a whole pipeline.

        Parameters
        ----------
        path : path
            The file, which is replaced atomically.

        Raises
        ------
        OSError, ValueError
            If the file cannot be written, or cannot hold the type of a label or parameter.
        """
        check_is_fitted(self, "coef_")
        write_model(self.model_, path)

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that shares the prior, as a cloned prior would be unfitted."""
        bare = copy(self)
        own = {name: getattr(self, name) for name in PARAMETERS if hasattr(self, name)}
        for name in own:
            setattr(bare, name, None)
        twin: Self = BaseEstimator.__sklearn_clone__(bare)
        for name, value in own.items():
            setattr(twin, name, value)
        return twin

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse input is supported."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _repr_html_inner(self) -> str:
        """Return HTML for a notebook: scikit-learn's diagram, and the report of a fitted model."""
        diagram: str = super()._repr_mimebundle_().get("text/html", "")
        return diagram + (report_section(self.model_) if hasattr(self, "model_") else "")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_()
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """Base of the classifiers, for two or more classes."""

    def decision_function(self, X: Any) -> "NDArray[np.float64]":
        """Return the margins of rows.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            The rows; the model scales or clips them as in training.

        Returns
        -------
        ndarray of float64, shape (N,), (N, K) for K > 2 classes, or (N, L) for L labels at once
            For two classes, positive if the second is more likely. For K classes, largest for the
            most likely one. For each label, positive if its probability is above 1/2.
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
            Entries of `classes_`. For many labels, 1 if a label's probability is above 1/2, else 0.
        """
        computed = margins(self, X)
        return task_of(self.model_).decided(computed)

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
        """
        computed = margins(self, X)
        probabilities: NDArray[np.float64] = loss_of(self.model_).link(computed)
        return probabilities

    def predict_log_proba(self, X: Any) -> "NDArray[np.float64]":
        """Return the logarithms of what `predict_proba` returns."""
        logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    to_sklearn = to_sklearn
    to_onnx = to_onnx

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags for a classifier."""
        tags = super().__sklearn_tags__()
        # scikit-learn's checks train on a few dozen records, where a private model is mostly noise.
        tags.classifier_tags.poor_score = bool(self.epsilon != math.inf)
        tags.classifier_tags.multi_label = self._method.many_labels
        return tags


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """Base of the regressors, for targets in a public interval."""

    def predict(self, X: Any) -> "NDArray[np.float64]":
        """Return the predicted target of each row, in the target's unit.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            The rows; the model scales or clips them as in training.

        Returns
        -------
        ndarray of float64, shape (N,)
            Predictions, clipped to `target_bounds`.
        """
        clipped: NDArray[np.float64] = np.clip(margins(self, X), *self.privacy_.target_bounds)
        return clipped

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags for a regressor."""
        tags = super().__sklearn_tags__()
        # scikit-learn's checks cannot declare the interval of their targets.
        tags.regressor_tags.poor_score = True
        return tags
