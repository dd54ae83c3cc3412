"""The paper's system as an estimator."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier
from dplasso.fit.frank_wolfe import FrankWolfeLoop
from dplasso.ledger import Ledger


class DPFrankWolfeClassifier(PrivateClassifier):
    r"""Differentially private Frank-Wolfe on the L1 ball: the system of arXiv 2310.19978.

    The paper's Algorithms 1 to 4, with the errors of its listings repaired (docs/paper.md). It
    takes `n_iter` steps over ``||w||_1 <= l1_radius``, and each step draws one signed vertex:

    - Algorithm 1, Frank-Wolfe that computes everything anew: ``solver="standard"``.
    - Algorithm 2, the same steps at the cost of sparse data: ``solver="sparse"``.
    - Algorithm 3, a heap that finds the largest gradient without privacy: ``selector="heap"``.
    - Algorithm 4, Big Step Little Step sampling of the vertex: ``selector="big-little"``.

    This class is for research and comparison. To train a model, use `DPLogisticRegression` or
    `DPLassoClassifier`, which have nothing to tune.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit, > 0. ``float("inf")``: no noise, and `history_` is kept.
    delta : float, default=1e-6
        Probability that epsilon does not hold; well below one over the number of people.
    l1_radius : float, default=10.0
        Radius of the L1 ball, > 0: lambda of the paper. Public.
    n_iter : int, default=100
        Public number of steps T, and so the largest number of weights.
    feature_bound : float, default=1.0
        Public bound B on every ``|x_ij|``, > 0. The fit and `predict` clip larger entries. The
        noise is proportional to B.
    residual_bound : float or "auto", default="auto"
        Public bound C on a record's residual, from 0.5 to 1; the noise is proportional to it.
        "auto" is 1/2 in a private fit, and 1 without privacy or if ``mechanism="paper"``.
    fit_intercept : bool, default=True
        Whether margins have a constant term: the balance of the classes. Without privacy, or if
        ``mechanism="paper"``, it is a constant column of value `feature_bound` inside the L1 ball.
    classes : sequence of labels, default=None
        The public class labels; of two, the negative one first. None takes them from y, which is
        not protected, so a private fit warns.
    class_weight : mapping or sequence of floats, default=None
        Public weight of each class, by label or in the order of `classes`; the largest counts as 1.
    mechanism : {"exponential", "paper"}, default="exponential"
        "exponential" draws signed vertices by the exponential mechanism. "paper", for two classes,
        draws a coordinate and then takes the true sign, as published: it is **not** differentially
        private (docs/paper-sign.md) and warns with `PrivacyLeakWarning`.
    solver : {"sparse", "standard"}, default="sparse"
        "sparse" is Algorithm 2, "standard" Algorithm 1, which more than two classes always take.
    selector : {"bucket", "noisy-max", "big-little", "argmax", "heap"}, default="bucket"
        Data structure that draws the vertex (docs/selection.md). "heap" (Algorithm 3) and "argmax"
        are for ``epsilon=inf``, "big-little" (Algorithm 4) is for finite epsilon.
    drift_tol : float, None or "auto", default="auto"
        Largest error of a record's residual before ``solver="sparse"`` refreshes it
        (docs/drift.md). "auto" is 0.0001 without privacy, else what the noise hides. 0 gives the
        iterates of Algorithm 1, None the stale ones of the paper.
    neighbors : {"add-remove", "replace-one", "label"}, default="add-remove"
        What the guarantee hides: one record added or removed, one replaced (twice the noise), or
        one label of public features (docs/label-privacy.md).
    rows_per_person : int, default=1
        Largest number of rows of one person, who is protected as a whole. The noise grows with it.
    n_records : int, default=None
        Number of rows, if it is public. None counts them privately, with the balance of the
        classes, for 1 % of the budget.
    random_state : int, Generator or RandomState, default=None
        None draws from the operating system; anything else makes the fit repeatable, not private.
    n_jobs : int, default=None
        Number of threads; -1 uses all cores. The result does not depend on it.
    verbose : int, default=None
        1 shows a progress bar, 0 nothing, None only one line if a first fit compiles for long.
    ledger : path or Ledger, default=None
        Budget ledger to charge before the fit (docs/ledger.md). `Ledger` adds data set and purpose.

    Attributes
    ----------
    coef_ : csr_array, shape (1, D), or (K, D) for K > 2 classes
        Weights of clipped rows. ``weights()`` lists them by name.
    intercept_ : ndarray, shape (1,), or (K,) for K > 2 classes
        Intercept.
    classes_ : ndarray, shape (K,)
        The labels.
    n_iter_ : int
        Number of vertices drawn.
    n_records_ : float
        Declared or counted number of records; only if the fit used it.
    transcript_ : Transcript
        The vertices drawn, which are part of the release. With K > 2 classes, coordinate
        ``k D + j`` is column j of class k. A constant column is coordinate D
        (``k (D + 1) + D`` of class k).
    history_ : History
        Objective and gap of every step; only without privacy, for one margin.
    work_ : Work
        Work of every step; only without privacy or if ``mechanism="paper"``, for one margin.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns D, and their names if X has names.
    privacy_ : PrivacyStatement
        What the fit guarantees, in words and as JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from dplasso import DPFrankWolfeClassifier
    >>> X = np.eye(50)[np.arange(2000) % 50]
    >>> model = DPFrankWolfeClassifier(epsilon=1.0, n_iter=20, classes=[0, 1]).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.is_private
    ((1, 50), True)
    """

    _method = FrankWolfeLoop

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
        n_records: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        ledger: str | PathLike[str] | Ledger | None = None,
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
        self.n_records = n_records
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
