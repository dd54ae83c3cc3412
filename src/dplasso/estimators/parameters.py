"""One text for each parameter, attribute and method of the estimators; what sets the parameters."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])


def _entries(text: str) -> dict[str, str]:
    """Return numpydoc entries by name."""
    found = re.split(r"\n(?=\S)", inspect.cleandoc(text))
    return {entry.partition(" :")[0]: entry for entry in found}


_ALL = _entries(
    """
    delta : float, default=1e-6
        Probability with which the epsilon guarantee may fail, in (0, 1). Choose it well below one
        over the number of people; it is never derived from the data.
    target_bounds : tuple of float
        The interval (low, high) that the targets are known to lie in, **required** and public: it
        must not be taken from the data. Targets outside are clipped to it, and so are predictions.
        The noise is proportional to its width.
    residual_bound : float or "auto", default="auto"
        Bound C in [0.01, 2] on the size of a record's residual, in halves of the interval's width;
        the noise is proportional to it. "auto" is 1/4 in private fits and 2 without privacy (and
        with ``mechanism="paper"``). Public.
    rows_per_person : int, default=1
        Rows of one person, at most: the guarantee then covers a person, and the noise grows in
        proportion. With `groups` in `fit`, further rows are left out.
    weight_bound : float, default=1.0
        Bound on the weight of a row where `fit` is given `sample_weight`, > 0. Public. A row of
        that weight counts as one record, and others count in proportion. Larger weights are clipped
        to it, and a warning tells the curator. Choose it near a typical weight: the noise covers
        the bound. Not used with ``epsilon=inf``.
    classes : sequence of labels, default=None
        The label set, declared in advance; of two, the negative class first. None takes it from y,
        which the guarantee does not protect: `privacy_` says so, and a private fit warns. With a
        label matrix, a name for each of its columns, which are public.
    class_weight : mapping, sequence of floats, "balanced" or None, default=None
        A weight for each label of `classes`, or for all in their order, public: what the loss of a
        record counts. Only their ratio matters, and the largest is taken for 1, so that no record
        pulls more than it does without. "balanced", of `DPLogisticRegression`, weighs classes by
        the noisy counts that a fit begins with, so that all count alike: it goes without
        `n_records`.
    prior : model, mapping, array, path or None, default=None
        A linear model that is public, which the fit corrects instead of starting from nothing: a
        fitted one of scikit-learn or of this package, a `Pipeline` that ends in one, weights by
        column name (also by class), an array of D or K x D, or the path of a model file or of a
        .csv with the columns name and weight. Columns are matched by name where both sides have
        names. Its numbers are taken as weights of the rows as this estimator scales or clips them.
        The people behind it are not protected by this fit (docs/prior.md).
    prior_standard_error : float, array, mapping or None, default=None
        Standard deviation of the prior's weights by noise, in the form of the weights. Known by
        itself where the prior is a model of this package.
    public_data : tuple (X, y) or None, default=None
        Rows and labels that are public, instead of `prior`: plain scikit-learn trains the prior on
        them, its regularisation chosen by cross-validation on the same rows. They are not protected
        by this fit.
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
    intercept_ : ndarray, shape (1,), or (K,) for K > 2 classes
        Intercept, of a regression in the target's unit.
    classes_ : ndarray, shape (K,)
        The labels; of two classes, the negative first. Of a label matrix the names of its columns:
        `classes`, or numbers from 0.
    n_features_in_ : int
        D.
    feature_names_in_ : ndarray of str, shape (D,)
        Only where X has column names.
    privacy_ : PrivacyStatement
        What this fit guarantees, in words and as JSON.
    """
)

LASSO_TEXTS = _entries(
    """
    epsilon : float, default=1.0
        Total privacy loss, > 0, in natural-logarithm units. ``float("inf")`` is plain Frank-Wolfe:
        no privacy, and `history_` is kept.
    l1_radius : float or "auto", default="auto"
        Radius of the L1 ball, > 0; of a regression, for targets scaled to [-1, 1]. Public. "auto"
        takes steps of one size without a ball, every column at most once, and starts from the
        balance of the classes or the mean of the targets.
    n_iter : int or "auto", default="auto"
        Number of steps T, and the most weights that the model can have. Public. More steps leave
        less privacy budget for each. "auto" takes as many as the budget can tell from noise: at
        most 200 drawn, or more that noisy gradients keep where records and budget suffice; with no
        more than 200 columns all of them are taken and none is drawn.
    refit : float, "auto" or None, default="auto"
        Share of the budget for noisy gradient descent on the columns drawn, which gives their
        weights a standard error. "auto" is 0.3, or none where noise allows fewer than 8 columns, or
        where both `n_iter` and `l1_radius` are given; None and 0 leave it out. Public.
    feature_bound : float, default=1.0
        Bound B on ``|x_ij|``, > 0. Public. Entries beyond it are clipped, in fitting and in
        prediction, silently. The noise is proportional to it: binary or rescaled features
        (whose typical entry is near the bound) do far better than tf-idf. The refit takes unit
        rows of whatever values instead.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        Which data sets are neighbours: one record added or removed, or one replaced by another
        (which halves the exponent scale).
    fit_intercept : bool, default=True
        Let margins have a constant term: the balance of the classes or the mean of the targets and,
        in the refit, a constant entry of a tenth of each row. With ``mechanism="paper"``, or a
        radius and no privacy, add a constant column of value `feature_bound` inside the L1 ball.
    n_records : int, default=None
        The number of rows, where it is public. None counts them privately, together with the
        balance of the classes or the mean of the targets, for 1 % of the budget. Where both
        `n_iter` and `l1_radius` are given, nothing is counted with it and without an intercept.
    mechanism : {"exponential", "paper"}, default="exponential"
        "paper" reproduces the published step (coordinate by magnitude, then the true sign). It is
        **not** differentially private, warns with `PrivacyLeakWarning`, and is for one margin.
    solver : {"sparse", "standard"}, default="sparse"
        With `l1_radius` given: Algorithm 2 (steps at sparse cost) or Algorithm 1 (everything
        recomputed). Otherwise both take the same exact steps.
    selector : {"bucket", "noisy-max", "big-little", "argmax", "heap"}, default="bucket"
        Structure that draws the vertex; every private one draws from the same distribution.
        "argmax" and "heap" are for ``epsilon=inf`` only, "big-little" for finite epsilon.
        See docs/selection.md.
    drift_tol : float, None or "auto", default="auto"
        With `l1_radius` given and ``solver="sparse"`` only: largest error allowed in a record's
        gradient before that record is refreshed. "auto" is 0.0025 in a private fit, or more, up
        to 0.1: as much as the noise of the draws hides, by N as given or counted (docs/drift.md).
        It is 0.0001 with ``epsilon=inf``. 0 gives Algorithm 1's iterates; None
        the paper's stale ones. It does not affect privacy.
    coef_ : scipy.sparse.csr_array, shape (1, D), or (K, D) for K > 2 classes
        Weights; after a refit, for rows scaled to unit length in the columns that have one.
        `weights()` is the table of them by name, ``weights(dense=True)`` a plain array.
    coef_standard_error_ : ndarray, shape (k,)
        Standard deviation of the refitted weight of each column drawn, ascending, due to the noise
        alone, known and public. Only with a refit.
    column_scale_ : ndarray, shape (k,)
        What each of these columns is multiplied by before rows are scaled to unit length for the
        refit, by released numbers. Only where a column is scaled.
    n_iter_ : int
        Vertices drawn; 0 where gradients keep columns, or all are taken.
    n_records_ : float
        The number of records as given or counted privately; only where it was used.
    transcript_ : Transcript
        The vertices drawn: private by composition; the weights are a function of them. With K > 2
        classes, coordinate ``k D + j`` is column j of class k. Where there is a constant column,
        it is coordinate D (``k (D + 1) + D`` of class k).
    history_ : History
        Objective and gap per step; only with ``epsilon=inf``, `n_iter` and `l1_radius` given,
        and one margin.
    work_ : Work
        Work per step; likewise, or with ``mechanism="paper"``.
    """
)

DESCENT_TEXTS = _entries(
    """
    epsilon : float, default=1.0
        Total privacy loss, > 0, in natural-logarithm units. ``float("inf")`` is gradient descent
        without noise. No more than 60 is spent.
    max_weights : int, "significant" or None, default=None
        None gives every column a weight. A number k keeps k columns, reached by successive cuts,
        each a run of its own on the rows of the columns kept so far; "significant" keeps the
        weights of a dense model beyond three standard errors.
    row_norm : "unit" or float, default="unit"
        "unit" scales every row to L2 norm 1, so of a row only its direction counts. A number R
        scales longer rows down to R, leaves shorter ones as they are, and divides all by R. Public.
    neighbors : {"add-remove", "replace-one"}, default="add-remove"
        Which data sets are neighbours: one record added or removed, or one replaced by another
        (which doubles the noise).
    fit_intercept : bool, default=True
        Give every row a constant entry, 0.1 of its length.
    n_iter : int or "auto", default="auto"
        Number of gradients T; "auto" is 50 to 400, as many as stable steps need, and 80 for each
        run of a short list. It only discretises the path.
    n_records : int, default=None
        The number of rows, where it is public. None counts them privately for 1 % of the budget.
        It limits the step size.
    coef_ : ndarray or scipy.sparse.csr_array, shape (1, D), or (K, D) for K > 2 classes
        Weights of unit rows, of a regression in the target's unit; sparse with `max_weights`, which
        counts columns. `weights()` is the table of them by name, ``weights(dense=True)`` a plain
        array.
    coef_standard_error_ : ndarray, shape (D,), or (k,) for the columns that `max_weights` leaves
        Standard deviation of each column's weight due to the noise alone, known and public; 0
        without privacy; of a label matrix a row for each label. It bounds the spread of a weight
        over repeated fits from above: strong signal bends the path and narrows it. A weight divided
        by it is its z-score.
    column_scale_ : ndarray, shape (D,), or (k,) for the columns that `max_weights` leaves
        What each column is multiplied by before rows are scaled to unit length, by released
        numbers. Only with records enough for column scales (docs/logistic.md).
    n_iter_ : int
        Gradients taken.
    n_records_ : float
        The number of records as counted privately; only where it was.
    """
)

_ATTRIBUTES = (
    *("coef_", "intercept_", "classes_", "coef_standard_error_", "column_scale_", "n_iter_"),
    "n_records_",
    *("n_features_in_", "feature_names_in_", "privacy_", "transcript_", "history_", "work_"),
)

_OF_A_CLASS = """{summary}

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
>>> from dplasso import {name}
>>> X = random_array((200, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
>>> y = {labels}
>>> model = {name}(epsilon=1.0, {public}).fit(X, y)
>>> model.coef_.shape
(1, 50)
>>> model.privacy_.is_private
True
"""

_OF_ROWS = """{summary}

Parameters
----------
X : sparse or dense matrix, shape (N, D), or a store
    The rows; clipped or scaled as in training.

Returns
-------
{kind}
    {meaning}

Raises
------
sklearn.exceptions.NotFittedError
    Before `fit`.
ValueError
    If X has another number of columns than the training data, or NaN or infinity.
"""


def documented(family: Mapping[str, str], own: str = "") -> Callable[[Class], Class]:
    """Return a decorator that adds parameters, attributes and an example to a docstring.

    `family` has the texts of the estimators of one method; `own` those of this class that differ.
    """
    texts = _ALL | dict(family) | (_entries(own) if own else {})

    def decorate(estimator: Class) -> Class:
        names = list(inspect.signature(estimator).parameters)
        classifies = "classes" in names
        attributes = [name for name in _ATTRIBUTES if name in texts]
        if not classifies:
            attributes.remove("classes_")
        # Python compiled with -OO has no docstrings.
        if estimator.__doc__ is not None:
            estimator.__doc__ = _OF_A_CLASS.format(
                summary=inspect.cleandoc(estimator.__doc__),
                parameters="\n".join(texts[name] for name in names),
                attributes="\n".join(texts[name] for name in attributes),
                name=estimator.__name__,
                labels="np.asarray(X.sum(axis=1) > 2.4).ravel()" if classifies else "X.sum(axis=1)",
                public="classes=[False, True]" if classifies else "target_bounds=(0, 5)",
            )
        return estimator

    return decorate


def of_rows(kind: str, meaning: str) -> Callable[[Method], Method]:
    """Return a decorator that documents a method of rows, which returns a `kind` of `meaning`."""

    def decorate(method: Method) -> Method:
        if method.__doc__ is not None:
            method.__doc__ = _OF_ROWS.format(summary=method.__doc__, kind=kind, meaning=meaning)
        return method

    return decorate


def keep_parameters(estimator: Any, given: Mapping[str, Any]) -> None:
    """Set an estimator's parameters from the local names of its `__init__`, as they were given."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
