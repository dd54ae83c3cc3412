"""The estimators: scikit-learn's interface around the private solvers."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier, PrivateRegressor
from dplasso.estimators.families import GRADIENT_DESCENT, LASSO
from dplasso.estimators.parameters import (
    DESCENT_TEXTS,
    LASSO_TEXTS,
    documented,
    keep_parameters,
)


@documented(
    LASSO_TEXTS,
    """
    residual_bound : float or "auto", default="auto"
        Bound C in [1/2, 1] on the size of a record's residual (with K > 2 classes, of each of the
        K); the noise is proportional to it. "auto" is 1/2 in private fits and 1 without privacy and
        with ``mechanism="paper"``. Public.
    """,
)
class DPLassoClassifier(PrivateClassifier):
    r"""Differentially private L1-constrained logistic regression for sparse, wide data.

    More than two classes are one joint multinomial fit, whose noise does not grow with their number
    (docs/multiclass.md): what is drawn is a column for one of the K classes, and the refit gives
    each column drawn a weight for every class.

    Steps of Frank-Wolfe (arXiv 2310.19978, with the errors of its listings repaired) draw signed
    columns by the exponential mechanism, one after another, so the model has at most `n_iter`
    non-zero weights. By default only `epsilon` has to be set: the classes are counted
    privately, the number of steps and their size follow from the counts, epsilon, delta and D,
    every column is drawn at most once, and noisy gradient descent refits the weights of the columns
    drawn (docs/lasso.md). With both `n_iter` and `l1_radius` given, the fit counts the classes for
    1 % of the budget and takes T steps over ``||w||_1 <= l1_radius``, as in the paper. The whole
    fit is (`epsilon`, `delta`)-differentially private either way, and a step costs only the entries
    of X it touches.
    """

    family = LASSO

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        l1_radius: float | str = "auto",
        n_iter: int | str = "auto",
        refit: float | str | None = "auto",
        feature_bound: float = 1.0,
        residual_bound: float | str = "auto",
        neighbors: str = "add-remove",
        fit_intercept: bool = True,
        n_records: int | None = None,
        rows_per_person: int = 1,
        weight_bound: float = 1.0,
        class_weight: Mapping[Any, float] | Sequence[float] | None = None,
        classes: "ArrayLike | None" = None,
        mechanism: str = "exponential",
        solver: str = "sparse",
        selector: str = "bucket",
        drift_tol: float | str | None = "auto",
        prior: Any = None,
        prior_standard_error: "ArrayLike | Mapping[Any, Any] | float | None" = None,
        public_data: tuple[Any, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        keep_parameters(self, locals())


@documented(
    DESCENT_TEXTS,
    """
    residual_bound : float or "auto", default="auto"
        Bound C in [1/2, 1] on the size of a record's residual; the noise is proportional to it.
        "auto" is 1/2 in private fits and 1 without privacy; for K > 2 classes, where it bounds the
        L2 norm of K residuals, sqrt(1 - 1/K) and sqrt(2). With a label matrix it bounds the
        residual of each of the L labels, so all of a record together by sqrt(L) times it. Public.
    """,
)
class DPLogisticRegression(PrivateClassifier):
    r"""Differentially private logistic regression for sparse, wide data; nothing to tune.

    Full-batch gradient descent with exact integer gradients and Gaussian noise (docs/logistic.md).
    Every row is scaled to unit length by its own entries, in fitting and in prediction, so any
    finite values will do: counts, tf-idf, 0 and 1. The noise is the same in every coordinate, so
    each weight comes with a known standard error.

    More than two classes are one joint multinomial fit, whose cost does not grow with their number
    (docs/multiclass.md); one-versus-rest would pay for every class. A matrix y of 0 and 1, with a
    column for each of L labels, is one joint fit of all labels (docs/labels.md).
    """

    family = GRADIENT_DESCENT

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_weights: int | str | None = None,
        row_norm: float | str = "unit",
        residual_bound: float | str = "auto",
        neighbors: str = "add-remove",
        fit_intercept: bool = True,
        classes: "ArrayLike | None" = None,
        n_iter: int | str = "auto",
        n_records: int | None = None,
        rows_per_person: int = 1,
        weight_bound: float = 1.0,
        class_weight: Mapping[Any, float] | Sequence[float] | str | None = None,
        prior: Any = None,
        prior_standard_error: "ArrayLike | Mapping[Any, Any] | float | None" = None,
        public_data: tuple[Any, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        keep_parameters(self, locals())


@documented(LASSO_TEXTS)
class DPLasso(PrivateRegressor):
    r"""Differentially private L1-constrained regression for sparse, wide data.

    Huber's loss, the squared loss with residuals clipped to a public bound, of targets clipped to a
    public interval; everything else is as in `DPLassoClassifier`: signed columns drawn one after
    another by the exponential mechanism, by default each at most once and as many as the budget can
    tell from noise, their weights refitted by noisy gradient descent (docs/regression.md).
    """

    family = LASSO

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        l1_radius: float | str = "auto",
        n_iter: int | str = "auto",
        refit: float | str | None = "auto",
        feature_bound: float = 1.0,
        residual_bound: float | str = "auto",
        neighbors: str = "add-remove",
        fit_intercept: bool = True,
        n_records: int | None = None,
        rows_per_person: int = 1,
        weight_bound: float = 1.0,
        mechanism: str = "exponential",
        solver: str = "sparse",
        selector: str = "bucket",
        drift_tol: float | str | None = "auto",
        prior: Any = None,
        prior_standard_error: "ArrayLike | Mapping[Any, Any] | float | None" = None,
        public_data: tuple[Any, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        keep_parameters(self, locals())


@documented(DESCENT_TEXTS)
class DPLinearRegression(PrivateRegressor):
    r"""Differentially private linear regression for sparse, wide data; nothing to tune.

    Huber's loss, the squared loss with residuals clipped to a public bound, by full-batch gradient
    descent with exact integer gradients and Gaussian noise (docs/regression.md). Targets are
    clipped to a public interval. Every row is scaled to unit length by its own entries, in fitting
    and in prediction.
    """

    family = GRADIENT_DESCENT

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        max_weights: int | str | None = None,
        row_norm: float | str = "unit",
        residual_bound: float | str = "auto",
        neighbors: str = "add-remove",
        fit_intercept: bool = True,
        n_iter: int | str = "auto",
        n_records: int | None = None,
        rows_per_person: int = 1,
        weight_bound: float = 1.0,
        prior: Any = None,
        prior_standard_error: "ArrayLike | Mapping[Any, Any] | float | None" = None,
        public_data: tuple[Any, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        keep_parameters(self, locals())


Estimator = DPLassoClassifier | DPLasso | DPLogisticRegression | DPLinearRegression
