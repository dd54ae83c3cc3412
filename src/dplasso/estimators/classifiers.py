"""The classifiers: scikit-learn's interface around the private methods."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from dplasso.estimators.base import PrivateClassifier
from dplasso.fit.descent import GradientDescent
from dplasso.fit.lasso import Lasso
from dplasso.ledger import Ledger


class DPLogisticRegression(PrivateClassifier):
    r"""Differentially private logistic regression for sparse, wide data; nothing to tune.

    The fit is full-batch gradient descent with exact integer gradients and Gaussian noise
    (docs/logistic.md). It scales every row to unit length by the row's own entries, and so does
    `predict`: counts, tf-idf and binary features all work. The noise is the same in every
    coordinate, so each weight has a known standard error.

    More than two classes are one joint multinomial fit, whose privacy cost does not depend on the
    number of classes (docs/multiclass.md). If y is a matrix of 0 and 1 with a column for each of L
    labels, one joint fit learns all labels.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit, > 0; at most 60 is spent. ``float("inf")``: no noise.
    delta : float, default=1e-6
        Probability that epsilon does not hold; well below one over the number of people.
    max_weights : int, default=None
        Largest number of columns in the model. By default, every column gets a weight.
    row_norm : "unit" or float, default="unit"
        "unit" scales every row to L2 norm 1. A public number R shortens only rows longer than R,
        and divides all rows by R. The fit finds columns in other units if there are
        enough records; public ranges do better (docs/tables.md).
    fit_intercept : bool, default=True
        Whether every row gets a constant entry, a tenth of its length.
    infer : "all", list of str, or mapping, default=None
        "all" adds intervals and p-values with the sampling error (docs/howto-inference.md), for
        half of the budget; names of columns or variables show only theirs. For two classes and at
        most 300 columns, with a number as `row_norm`. ``{"columns": "all", "share": 0.3}`` sets the
        share.
    classes : sequence of labels, default=None
        The public class labels; of two, the negative one first. None takes them from y, which is
        not protected, so a private fit warns. For a label matrix, names of its columns.
    class_weight : mapping, sequence of floats or "balanced", default=None
        Public weight of each class, by label or in the order of `classes`; the largest counts as 1.
        "balanced" weighs the classes by their noisy counts.
    neighbors : {"add-remove", "replace-one", "label"}, default="add-remove"
        What the guarantee hides: one record added or removed, one replaced (twice the noise), or
        one label of public features (docs/label-privacy.md).
    rows_per_person : int, default=1
        Largest number of rows of one person, who is protected as a whole. The noise grows with it.
    prior : model, mapping, array or path, default=None
        A public linear model that the fit corrects (docs/prior.md): fitted, by column name, as an
        array of D or K x D weights, or in a file. The fit does not protect the people behind it.
    public_data : tuple (X, y), default=None
        Public rows and labels to train the prior on; not protected.
    public_rows : matrix, DataFrame, store, Geometry or path, default=None
        Public rows of the same columns, without labels, or their `Geometry` or its file
        (docs/public-rows.md). They are not protected, and no private row may be among them.
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
    coef_ : ndarray or csr_array, shape (1, D), or (K, D) for K > 2 classes
        Weights of unit rows; sparse if `max_weights` is given. ``weights()`` lists them by name.
    intercept_ : ndarray, shape (1,), or (K,) for K > 2 classes
        Intercept.
    classes_ : ndarray, shape (K,)
        The labels; for a label matrix, the names of its columns: `classes`, or numbers from 0.
    coef_standard_error_ : ndarray, shape (D,), or (k,) for the k columns that `max_weights` keeps
        Standard deviation of each weight due to the noise alone. With a `prior` or a label matrix,
        it has the shape of `coef_`.
    column_scale_ : ndarray, shape (D,), or (k,) for the k columns that `max_weights` keeps
        Factor of each column before rows are scaled to unit length; only if there is one.
    column_center_ : ndarray, shape (D,), or (k,) for the k columns that `max_weights` keeps
        Number that is taken from each column before all this; only if a column is centred.
    inference_ : Inference
        Estimates, p-values and intervals in the units of the columns; only with `infer`.
    n_iter_ : int
        Number of gradients.
    n_records_ : float
        Noisy number of records; only if the fit counted them.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns D, and their names if X has names.
    privacy_ : PrivacyStatement
        What the fit guarantees, in words and as JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from dplasso import DPLogisticRegression
    >>> X = np.eye(50)[np.arange(2000) % 50]
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.is_private
    ((1, 50), True)
    """

    _method = GradientDescent

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_weights: int | None = None,
        row_norm: float | str = "unit",
        fit_intercept: bool = True,
        infer: str | Sequence[str] | Mapping[str, Any] | None = None,
        classes: "ArrayLike | None" = None,
        class_weight: Mapping[Any, float] | Sequence[float] | str | None = None,
        neighbors: str = "add-remove",
        rows_per_person: int = 1,
        prior: Any = None,
        public_data: tuple[Any, Any] | None = None,
        public_rows: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        ledger: str | PathLike[str] | Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_weights = max_weights
        self.row_norm = row_norm
        self.fit_intercept = fit_intercept
        self.infer = infer
        self.classes = classes
        self.class_weight = class_weight
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.prior = prior
        self.public_data = public_data
        self.public_rows = public_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger


class DPLassoClassifier(PrivateClassifier):
    r"""Differentially private logistic regression with few weights, for sparse, very wide data.

    The fit selects columns and then refits their weights (docs/lasso.md). Noisy gradients keep the
    columns. If more than 300 have long rows, Frank-Wolfe steps draw signed columns instead, by
    the exponential mechanism, each column at most once. All settings follow from the budget, the
    number of columns, and noisy sums over the records.

    More than two classes are one joint multinomial fit (docs/multiclass.md), in which each selected
    column has a weight for every class.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit, > 0; at most 60 is spent. ``float("inf")``: no noise.
    delta : float, default=1e-6
        Probability that epsilon does not hold; well below one over the number of people.
    max_weights : int, default=None
        Largest number of columns in the model. None keeps 200, more if records and budget suffice,
        fewer if rows are so long that columns are drawn, and all of at most 200 columns.
    feature_bound : float, default=1.0
        Public bound B on every ``|x_ij|``, > 0, for drawing columns: larger entries are clipped,
        and the noise is proportional to B. Gradients scale rows and need no bound.
    fit_intercept : bool, default=True
        Whether margins have a constant term: the balance of the classes and, in the refit, a
        constant entry of a tenth of each row.
    classes : sequence of labels, default=None
        The public class labels; of two, the negative one first. None takes them from y, which is
        not protected, so a private fit warns.
    neighbors : {"add-remove", "replace-one", "label"}, default="add-remove"
        What the guarantee hides: one record added or removed, one replaced (twice the noise), or
        one label of public features (docs/label-privacy.md).
    rows_per_person : int, default=1
        Largest number of rows of one person, who is protected as a whole. The noise grows with it.
    prior : model, mapping, array or path, default=None
        A public linear model that the fit corrects (docs/prior.md): fitted, by column name, as an
        array of D or K x D weights, or in a file. The fit does not protect the people behind it.
    public_data : tuple (X, y), default=None
        Public rows and labels to train the prior on; not protected.
    public_rows : matrix, DataFrame, store, Geometry or path, default=None
        Public rows of the same columns, without labels, or their `Geometry` or its file
        (docs/public-rows.md). They are not protected, and no private row may be among them.
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
        Weights of the selected columns, for rows scaled to unit length in these columns.
        ``weights()`` lists them by name.
    intercept_ : ndarray, shape (1,), or (K,) for K > 2 classes
        Intercept.
    classes_ : ndarray, shape (K,)
        The labels.
    coef_standard_error_ : ndarray, shape (k,)
        Standard deviation of each selected weight due to the noise alone; only after a refit.
    column_scale_ : ndarray, shape (k,)
        Factor of each selected column before rows are scaled to unit length; only if there is one.
    column_center_ : ndarray, shape (k,)
        Number that is taken from each selected column before all this; only if one is centred.
    n_iter_ : int
        Number of vertices drawn; 0 if gradients select the columns, or all columns are kept.
    n_records_ : float
        Noisy number of records.
    transcript_ : Transcript
        The vertices drawn, which are part of the release. With K > 2 classes, coordinate
        ``k D + j`` is column j of class k; only if vertices were drawn.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns D, and their names if X has names.
    privacy_ : PrivacyStatement
        What the fit guarantees, in words and as JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from dplasso import DPLassoClassifier
    >>> X = np.eye(50)[np.arange(2000) % 50]
    >>> model = DPLassoClassifier(epsilon=1.0, classes=[0, 1]).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.is_private
    ((1, 50), True)
    """

    _method = Lasso

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_weights: int | None = None,
        feature_bound: float = 1.0,
        fit_intercept: bool = True,
        classes: "ArrayLike | None" = None,
        neighbors: str = "add-remove",
        rows_per_person: int = 1,
        prior: Any = None,
        public_data: tuple[Any, Any] | None = None,
        public_rows: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        ledger: str | PathLike[str] | Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_weights = max_weights
        self.feature_bound = feature_bound
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.neighbors = neighbors
        self.rows_per_person = rows_per_person
        self.prior = prior
        self.public_data = public_data
        self.public_rows = public_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ledger = ledger
