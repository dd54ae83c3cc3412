"""The LASSO for numbers: scikit-learn's interface around the private Frank-Wolfe solver."""

from os import PathLike
from typing import Any

from dplasso.estimators.base import PrivateRegressor
from dplasso.estimators.families import LASSO


class DPLasso(PrivateRegressor):
    r"""Differentially private L1-constrained regression for sparse, wide data.

    Huber's loss, the squared loss with residuals clipped to a public bound, of targets clipped to a
    public interval; everything else is as in `DPLassoClassifier`: signed columns drawn one after
    another by the exponential mechanism, by default each at most once and as many as the budget can
    tell from noise, their weights refitted by noisy gradient descent (docs/regression.md).

    Parameters
    ----------
    epsilon : float, default=1.0
        Total privacy loss, > 0, in natural-logarithm units. ``float("inf")`` is plain Frank-Wolfe:
        no privacy, and `history_` is kept.
    delta : float, default=1e-6
        Probability with which the epsilon guarantee may fail, in (0, 1). Choose it well below one
        over the number of people; it is never derived from the data.
    target_bounds : tuple of float
        The interval (low, high) that the targets are known to lie in, **required** and public: it
        must not be taken from the data. Targets outside are clipped to it, and so are predictions.
    l1_radius : float or "auto", default="auto"
        Radius of the L1 ball, > 0, for targets scaled to [-1, 1]. Public. "auto" takes steps of one
        size without a ball, every column at most once, and starts from the noisy mean of the
        targets.
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
        Bound C in [0.01, 2] on the size of a record's residual, in halves of the interval's width;
        the noise is proportional to it. "auto" is 1/4 in private fits and 2 without privacy and
        with ``mechanism="paper"``. Public.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        Which data sets are neighbours: one record added or removed, or one replaced by another
        (which halves the exponent scale).
    fit_intercept : bool, default=True
        Let predictions have a constant term: the mean of the targets and, in the refit, a constant
        entry of a tenth of each row. With a radius given, add a constant column of value
        `feature_bound` inside the L1 ball instead, drawn like any other; a step along it touches
        every record (docs/performance.md).
    n_records : int, default=None
        The number of rows, where it is public. None counts them privately, together with the mean
        of the targets for 1 % of the budget. Not used where both `n_iter` and `l1_radius` are
        given.
    rows_per_person : int, default=1
        Rows of one person, at most: the guarantee then covers a person, and the noise grows in
        proportion. With `groups` in `fit`, further rows are left out.
    weight_bound : float, default=None
        Bound on the weight of a row where `fit` is given ``sample_weight``, > 0. Public. A row of
        that weight counts 1, others in proportion; larger weights are clipped to it, silently.
        Choose it near a typical weight: the noise covers the bound. None for no weights; with
        ``epsilon=inf``, for any.
    mechanism : {"exponential", "paper"}, default="exponential"
        "paper" reproduces the published step (coordinate by magnitude, then the true sign). It is
        **not** differentially private and warns with `PrivacyLeakWarning`.
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
    coef_ : scipy.sparse.csr_array, shape (1, D)
        Weights; after a refit, for rows scaled to unit length in the columns that have one.
    intercept_ : ndarray, shape (1,)
        Intercept.
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
        The vertices drawn: private by composition; the weights are a function of them.
    history_ : History
        Objective and gap per step; only with ``epsilon=inf``, `n_iter` and `l1_radius` given.
    work_ : Work
        Work per step; likewise, or with ``mechanism="paper"``.

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
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
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
