"""Logistic regression by noisy gradient descent, after the rules of scikit-learn."""

from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier
from dplasso.estimators.families import GRADIENT_DESCENT
from dplasso.estimators.parameters import DESCENT_TEXTS, documented, keep_parameters


@documented(
    DESCENT_TEXTS,
    """
    residual_bound : float or "auto", default="auto"
        Bound C in [1/2, 1] on the size of a record's residual; the noise is proportional to it.
        "auto" is 1/2 in private fits and 1 without privacy; for K > 2 classes, where it bounds the
        L2 norm of K residuals, sqrt(1 - 1/K) and sqrt(2). Public.
    """,
)
class DPLogisticRegression(PrivateClassifier):
    r"""Differentially private logistic regression for sparse, wide data; nothing to tune.

    Full-batch gradient descent with exact integer gradients and Gaussian noise (docs/logistic.md).
    Every row is scaled to unit length by its own entries, in fitting and in prediction, so any
    finite values will do: counts, tf-idf, 0 and 1. The noise is the same in every coordinate, so
    each weight comes with a known standard error.

    More than two classes are one joint multinomial fit, whose cost does not grow with their number
    (docs/multiclass.md); one-versus-rest would pay for every class.

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
    >>> from dplasso import DPLogisticRegression
    >>> X = random_array((200, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    >>> y = np.asarray(X.sum(axis=1) > 2.4).ravel()
    >>> model = DPLogisticRegression(epsilon=1.0).fit(X, y)
    >>> model.coef_.shape
    (1, 50)
    >>> model.privacy_.is_private
    True
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
        classes: ArrayLike | None = None,
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
