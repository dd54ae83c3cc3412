"""The LASSO for numbers: scikit-learn's interface around the private Frank-Wolfe solver."""

from os import PathLike
from typing import Any

from dplasso.estimators.base import PrivateRegressor
from dplasso.estimators.families import LASSO
from dplasso.estimators.parameters import LASSO_TEXTS, documented, keep_parameters


@documented(LASSO_TEXTS)
class DPLasso(PrivateRegressor):
    r"""Differentially private L1-constrained regression for sparse, wide data.

    Huber's loss, the squared loss with residuals clipped to a public bound, of targets clipped to a
    public interval; everything else is as in `DPLassoClassifier`: signed columns drawn one after
    another by the exponential mechanism, by default each at most once and as many as the budget can
    tell from noise, their weights refitted by noisy gradient descent (docs/regression.md).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import random_array
    >>> from dplasso import DPLasso
    >>> X = random_array((200, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    >>> y = X.sum(axis=1)
    >>> model = DPLasso(epsilon=1.0, target_bounds=(0, 5)).fit(X, y)
    >>> model.coef_.shape
    (1, 50)
    >>> model.privacy_.is_private
    True
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
        weight_bound: float | None = None,
        mechanism: str = "exponential",
        solver: str = "sparse",
        selector: str = "bucket",
        drift_tol: float | str | None = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        keep_parameters(self, locals())
