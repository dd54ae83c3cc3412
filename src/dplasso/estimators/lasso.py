"""The estimator: scikit-learn's interface around the private Frank-Wolfe solver."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier
from dplasso.estimators.families import LASSO
from dplasso.estimators.parameters import LASSO_TEXTS, documented, keep_parameters


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
    drawn (docs/lasso.md). With both `n_iter` and `l1_radius` given, the fit is T steps over
    ``||w||_1 <= l1_radius`` and nothing else, as in the paper. The whole fit is (`epsilon`,
    `delta`)-differentially private either way, and a step costs only the entries of X it touches.

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
    >>> from dplasso import DPLassoClassifier
    >>> X = random_array((200, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    >>> y = np.asarray(X.sum(axis=1) > 2.4).ravel()
    >>> model = DPLassoClassifier(epsilon=1.0).fit(X, y)
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
        class_weight: Mapping[Any, float] | Sequence[float] | None = None,
        classes: ArrayLike | None = None,
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
