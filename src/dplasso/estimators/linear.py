"""Linear regression by noisy gradient descent, after the rules of scikit-learn."""

from os import PathLike
from typing import Any

from dplasso.estimators.base import PrivateRegressor
from dplasso.estimators.families import GRADIENT_DESCENT
from dplasso.estimators.parameters import DESCENT_TEXTS, documented, keep_parameters


@documented(DESCENT_TEXTS)
class DPLinearRegression(PrivateRegressor):
    r"""Differentially private linear regression for sparse, wide data; nothing to tune.

    Huber's loss, the squared loss with residuals clipped to a public bound, by full-batch gradient
    descent with exact integer gradients and Gaussian noise (docs/regression.md). Targets are
    clipped to a public interval. Every row is scaled to unit length by its own entries, in fitting
    and in prediction.

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
    >>> from dplasso import DPLinearRegression
    >>> X = random_array((200, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    >>> y = X.sum(axis=1)
    >>> model = DPLinearRegression(epsilon=1.0, target_bounds=(0, 5)).fit(X, y)
    >>> model.coef_.shape
    (1, 50)
    >>> model.privacy_.target_bounds
    (0.0, 5.0)
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
        weight_bound: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ledger: str | PathLike[str] | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
    ) -> None:
        keep_parameters(self, locals())
