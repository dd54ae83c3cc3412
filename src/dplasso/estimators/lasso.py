"""The estimator: scikit-learn's interface around the private Frank-Wolfe solver."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier
from dplasso.estimators.families import LASSO


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
    epsilon : float, default=1.0
        Total privacy loss, > 0, in natural-logarithm units. ``float("inf")`` is plain Frank-Wolfe:
        no privacy, and `history_` is kept.
    delta : float, default=1e-6
        Probability with which the epsilon guarantee may fail, in (0, 1). Choose it well below one
        over the number of people; it is never derived from the data.
    l1_radius : float or "auto", default="auto"
        Radius of the L1 ball, > 0. Public. "auto" takes steps of one size without a ball, every
        column at most once, and starts from the margin of the classes' balance.
    n_iter : int or "auto", default="auto"
        Number of steps T, and the most weights that the model can have. Public. More steps leave
        less privacy budget for each. "auto" takes as many as the budget can tell from noise, at
        most 200; with no more columns than that, all of them are taken and none is drawn.
    refit : float, "auto" or None, default="auto"
        Share of the budget for noisy gradient descent on the columns drawn, which gives their
        weights a standard error. "auto" is 0.3, or none where noise allows fewer than 8 columns, or
        where both `n_iter` and `l1_radius` are given; None and 0 leave it out. Public.
    feature_bound : float, default=1.0
        Bound B on ``|x_ij|``, > 0. Public. Entries beyond it are clipped, in fitting and in
        prediction, silently. The noise is proportional to it: binary or rescaled features
        (whose typical entry is near the bound) do far better than tf-idf. The refit takes unit
        rows of whatever values instead.
    residual_bound : float or "auto", default="auto"
        Bound C in [1/2, 1] on the size of a record's residual (with K > 2 classes, of each of the
        K); the noise is proportional to it. "auto" is 1/2 in private fits and 1 without privacy and
        with ``mechanism="paper"``. Public.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        Which data sets are neighbours: one record added or removed, or one replaced by another
        (which halves the exponent scale).
    fit_intercept : bool, default=True
        Let every margin have a constant term: the balance of the classes and, in the refit, a
        constant entry of a tenth of each row. With a radius given, add a constant column of value
        `feature_bound` inside the L1 ball instead, drawn like any other; a step along it touches
        every record (docs/performance.md).
    n_records : int, default=None
        The number of rows, where it is public. None counts them privately, both classes together
        for 1 % of the budget. Not used where both `n_iter` and `l1_radius` are given.
    rows_per_person : int, default=1
        Rows of one person, at most: the guarantee then covers a person, and the noise grows in
        proportion. With `groups` in `fit`, further rows are left out.
    weight_bound : float, default=None
        Bound on the weight of a row where `fit` is given ``sample_weight``, > 0. Public. A row of
        that weight counts 1, others in proportion; larger weights are clipped to it, silently.
        Choose it near a typical weight: the noise covers the bound. None for no weights; with
        ``epsilon=inf``, for any.
    class_weight : mapping, sequence of floats or None, default=None
        A weight for each label of `classes`, or for all in their order, public: what the loss of a
        record counts. Only their ratio matters, and the largest is taken for 1, so that no record
        pulls more than it does without.
    classes : sequence of labels, default=None
        The label set, declared in advance; of two, the negative class first. None takes it from y,
        and `privacy_` says that it was treated as public.
    mechanism : {"exponential", "paper"}, default="exponential"
        "paper" reproduces the published step (coordinate by magnitude, then the true sign). It is
        **not** differentially private, warns with `PrivacyLeakWarning`, and is for two classes.
    solver : {"sparse", "standard"}, default="sparse"
        Algorithm 2 (steps at sparse cost) or Algorithm 1 (everything recomputed).
    selector : {"bucket", "noisy-max", "big-little", "argmax", "heap"}, default="bucket"
        Structure that draws the vertex; every private one draws from the same distribution.
        "argmax" and "heap" are for ``epsilon=inf`` only, "big-little" for finite epsilon.
        See docs/selection.md.
    drift_tol : float, None or "auto", default="auto"
        `solver="sparse"` only: largest error allowed in a record's gradient before that record is
        refreshed. "auto" is 0.0025 in a private fit, or more, up to 0.1, where `l1_radius` is
        given and N is too (`n_records`), or is counted: as much as the noise of the draws hides
        (docs/drift.md). It is 0.0001 with ``epsilon=inf``. 0 gives Algorithm 1's iterates; None
        the paper's stale ones. It does not affect privacy.
    random_state : None, int, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the run repeatable, for
        experiments, and the statement says that such a model is not private.
    n_jobs : int, default=None
        Threads for the set-up passes; -1 uses all cores. The result does not depend on it.
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
    coef_ : scipy.sparse.csr_array, shape (1, D), or (K, D) for K > 2 classes
        Weights; after a refit, for rows scaled to unit length in the columns that have one.
        `weights()` is the table of them by name, ``weights(dense=True)`` a plain array.
    intercept_ : ndarray, shape (1,) or (K,)
        Intercept.
    classes_ : ndarray, shape (K,)
        The labels; of two, the negative first.
    coef_standard_error_ : float
        Standard deviation of every refitted weight due to the noise alone, known and public. Only
        with a refit.
    n_iter_ : int
        Vertices drawn.
    n_records_ : float
        The number of records as given or counted privately; only where it was used.
    n_features_in_ : int
        D.
    feature_names_in_ : ndarray of str, shape (D,)
        Only where X has column names.
    privacy_ : PrivacyStatement
        What this fit guarantees, in words and as JSON.
    transcript_ : Transcript
        The vertices drawn: private by composition; the weights are a function of them. With K > 2
        classes, coordinate ``k D + j`` is column j of class k (``k (D + 1) + j`` where a radius is
        given and with it a constant column).
    history_ : History
        Objective and gap per step; only with ``epsilon=inf``, `n_iter` and `l1_radius` given,
        for two classes.
    work_ : Work
        Work per step; likewise, or with ``mechanism="paper"``.

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
        self.epsilon = epsilon
        self.delta = delta
        self.l1_radius = l1_radius
        self.n_iter = n_iter
        self.refit = refit
        self.feature_bound = feature_bound
        self.residual_bound = residual_bound
        self.neighbors = neighbors
        self.fit_intercept = fit_intercept
        self.n_records = n_records
        self.rows_per_person = rows_per_person
        self.weight_bound = weight_bound
        self.class_weight = class_weight
        self.classes = classes
        self.mechanism = mechanism
        self.solver = solver
        self.selector = selector
        self.drift_tol = drift_tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose
