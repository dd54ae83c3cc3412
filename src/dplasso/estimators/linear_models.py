"""The estimators: scikit-learn's interface around the private methods."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier, PrivateRegressor
from dplasso.fit.descent import GradientDescent
from dplasso.fit.frank_wolfe import FrankWolfeLoop
from dplasso.fit.lasso import Lasso


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

    method = GradientDescent

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_weights: int | str | None = None,
        row_norm: float | str = "unit",
        fit_intercept: bool = True,
        classes: "ArrayLike | None" = None,
        class_weight: Mapping[Any, float] | Sequence[float] | str | None = None,
        neighbors: str = "add-remove",
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
        self.epsilon = epsilon
        self.delta = delta
        self.max_weights = max_weights
        self.row_norm = row_norm
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.prior = prior
        self.prior_standard_error = prior_standard_error
        self.public_data = public_data
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose


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

    method = Lasso

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_weights: int | None = None,
        feature_bound: float = 1.0,
        fit_intercept: bool = True,
        classes: "ArrayLike | None" = None,
        class_weight: Mapping[Any, float] | Sequence[float] | None = None,
        neighbors: str = "add-remove",
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
        self.epsilon = epsilon
        self.delta = delta
        self.max_weights = max_weights
        self.feature_bound = feature_bound
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.prior = prior
        self.prior_standard_error = prior_standard_error
        self.public_data = public_data
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose


class DPLinearRegression(PrivateRegressor):
    r"""Differentially private linear regression for sparse, wide data; nothing to tune.

    Huber's loss, the squared loss with residuals clipped to a public bound, by full-batch gradient
    descent with exact integer gradients and Gaussian noise (docs/regression.md). Targets are
    clipped to a public interval. Every row is scaled to unit length by its own entries, in fitting
    and in prediction.
    """

    method = GradientDescent

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        max_weights: int | str | None = None,
        row_norm: float | str = "unit",
        fit_intercept: bool = True,
        neighbors: str = "add-remove",
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
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.max_weights = max_weights
        self.row_norm = row_norm
        self.fit_intercept = fit_intercept
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.prior = prior
        self.prior_standard_error = prior_standard_error
        self.public_data = public_data
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose


class DPLasso(PrivateRegressor):
    r"""Differentially private L1-constrained regression for sparse, wide data.

    Huber's loss, the squared loss with residuals clipped to a public bound, of targets clipped to a
    public interval; everything else is as in `DPLassoClassifier`: signed columns drawn one after
    another by the exponential mechanism, by default each at most once and as many as the budget can
    tell from noise, their weights refitted by noisy gradient descent (docs/regression.md).
    """

    method = Lasso

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        max_weights: int | None = None,
        feature_bound: float = 1.0,
        fit_intercept: bool = True,
        neighbors: str = "add-remove",
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
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.max_weights = max_weights
        self.feature_bound = feature_bound
        self.fit_intercept = fit_intercept
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.prior = prior
        self.prior_standard_error = prior_standard_error
        self.public_data = public_data
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose


class DPFrankWolfeClassifier(PrivateClassifier):
    r"""Differentially private Frank-Wolfe on the L1 ball, as the paper has it.

    Algorithms 1 and 2 of arXiv 2310.19978, with the errors of its listings repaired.
    """

    method = FrankWolfeLoop

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        l1_radius: float = 10.0,
        n_iter: int = 100,
        feature_bound: float = 1.0,
        residual_bound: float | str = "auto",
        fit_intercept: bool = True,
        classes: "ArrayLike | None" = None,
        class_weight: Mapping[Any, float] | Sequence[float] | None = None,
        mechanism: str = "exponential",
        solver: str = "sparse",
        selector: str = "bucket",
        drift_tol: float | str | None = "auto",
        neighbors: str = "add-remove",
        rows_per_person: int = 1,
        weight_bound: float = 1.0,
        n_records: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.l1_radius = l1_radius
        self.n_iter = n_iter
        self.feature_bound = feature_bound
        self.residual_bound = residual_bound
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.mechanism = mechanism
        self.solver = solver
        self.selector = selector
        self.drift_tol = drift_tol
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.n_records = n_records
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose


Estimator = (
    DPLogisticRegression | DPLassoClassifier | DPLinearRegression | DPLasso | DPFrankWolfeClassifier
)
