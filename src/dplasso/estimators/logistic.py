"""Logistic regression by noisy gradient descent, after the rules of scikit-learn."""

from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier
from dplasso.estimators.families import GRADIENT_DESCENT


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
    epsilon : float, default=1.0
        Total privacy loss, > 0, in natural-logarithm units. ``float("inf")`` is gradient descent
        without noise. No more than 60 is spent.
    delta : float, default=1e-6
        Probability with which the epsilon guarantee may fail, in (0, 1). Choose it well below one
        over the number of people; it is never derived from the data.
    max_weights : int, "significant" or None, default=None
        None gives every column a weight. A number k keeps k columns, reached by successive cuts,
        each a run of its own on the rows of the columns kept so far; "significant" keeps the
        weights of a dense model beyond three standard errors.
    row_norm : "unit" or float, default="unit"
        "unit" scales every row to L2 norm 1. A number R scales longer rows down to R, leaves
        shorter ones as they are, and divides all by R. Public.
    residual_bound : float or "auto", default="auto"
        Bound C in [1/2, 1] on the size of a record's residual; the noise is proportional to it.
        "auto" is 1/2 in private fits and 1 without privacy; for K > 2 classes, where it bounds the
        L2 norm of K residuals, sqrt(1 - 1/K) and sqrt(2). Public.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        Which data sets are neighbours: one record added or removed, or one replaced by another
        (which doubles the noise).
    fit_intercept : bool, default=True
        Give every row a constant entry, 0.1 of its length.
    classes : sequence of labels, default=None
        The label set, declared in advance; of two, the negative class first. None takes it from y,
        and `privacy_` says that it was treated as public.
    n_iter : int or "auto", default="auto"
        Number of gradients T; "auto" is 300, and 80 for each run of a short list. It only
        discretises the path.
    n_records : int, default=None
        The number of rows, where it is public. None counts them privately for 1 % of the budget.
        It limits the step size.
    rows_per_person : int, default=1
        Rows of one person, at most: the guarantee then covers a person, and the noise grows in
        proportion. With `groups` in `fit`, further rows are left out.
    weight_bound : float, default=None
        Bound on the weight of a row where `fit` is given ``sample_weight``, > 0. Public. A row of
        that weight counts 1, others in proportion; larger weights are clipped to it, silently.
        Choose it near a typical weight: the noise covers the bound. None for no weights; with
        ``epsilon=inf``, for any.
    random_state : None, int, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the run repeatable, for
        experiments, and the statement says that such a model is not private.
    n_jobs : int, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    ledger : path, default=None
        A budget ledger (docs/ledger.md) that every fit of this estimator, of its clones and of
        their copies in other processes is charged to before it begins. Private fits only.
    dataset : str, default=None
        Whose budget in the ledger pays; None where it keeps only one.
    purpose : str, default=None
        What the model is for, for the ledger alone; not part of the model.

    Attributes
    ----------
    coef_ : ndarray or scipy.sparse.csr_array, shape (1, D) or (K, D)
        Weights of unit rows; sparse with `max_weights`, which counts columns. `weights()` is the
        table of them by name, ``weights(dense=True)`` a plain array.
    intercept_ : ndarray, shape (1,) or (K,)
        Intercept.
    coef_standard_error_ : float
        Standard deviation of every weight due to the noise alone, known and public; 0 without
        privacy. It bounds the spread of a weight over repeated fits from above: strong signal bends
        the path and narrows it. A weight divided by it is its z-score.
    classes_ : ndarray, shape (K,)
        The labels; of two, negative first.
    n_iter_ : int
        Gradients taken.
    n_features_in_ : int
        D.
    feature_names_in_ : ndarray of str, shape (D,)
        Only where X has column names.
    privacy_ : PrivacyStatement
        What this fit guarantees, in words and as JSON.

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
        self.epsilon = epsilon
        self.delta = delta
        self.max_weights = max_weights
        self.row_norm = row_norm
        self.residual_bound = residual_bound
        self.neighbors = neighbors
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.n_iter = n_iter
        self.n_records = n_records
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose
