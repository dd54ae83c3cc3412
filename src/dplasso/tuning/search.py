"""Private hyperparameter search: the best of a random number of tries, with one guarantee.

Every try draws settings from a public grid (uniformly, with replacement), fits on one part of the
records, and is scored with noise on the other part. The search releases only the best try and its
score, not the number of tries or the other scores.
"""

import warnings
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.validation import check_is_fitted

from dplasso.errors import DataError, ParameterError, of_a_stranger
from dplasso.fit.records import LocalRecords
from dplasso.ledger import Ledger, charged, check_affordable, checked_ledger, data_fingerprint
from dplasso.model import Model
from dplasso.privacy.parameters import check_delta, check_epsilon, check_positive
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import PrivacyStatement, state_search
from dplasso.privacy.wording import warn_of
from dplasso.tuning.candidates import (
    Candidate,
    Try,
    best_of,
    estimators_of,
    fix_starts,
    largest_variation,
    list_candidates,
    records_of,
    results_of,
)
from dplasso.tuning.division import divided, draw_held_out, entering_rows
from dplasso.tuning.estimates import NUMBERS, TWO_CLASSES, UNIT, Target, of_rows
from dplasso.tuning.metrics import CHOOSING, METRICS, default_metric, metric_named
from dplasso.tuning.plan import divide_budget, scorer_of, whole_budget
from dplasso.tuning.scores import check_metric, check_scored, checked_bounds, target_of, to_score
from dplasso.tuning.search_cost import SearchCost, draw_tries, tries_of


class PrivateSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose settings privately: the best of a random number of private fits.

    The whole search has one guarantee, one statement and one charge. Each try gets a smaller
    epsilon than a single fit would, so a search helps only if it finds settings that are much
    better than the defaults (docs/tuning.md).

    Parameters
    ----------
    estimator : estimator or list of them
        An estimator of this package, or one with a parameter `epsilon` and a method
        ``privacy_event()`` that returns the cost of a fit as an event of ``dp-accounting``. Or a
        list of these with the same classes, `target_bounds`, `neighbors` and `rows_per_person`. In
        a pipeline, the search is the last step (docs/howto-pipelines.md).
    grid : mapping of str to sequence, or sequence of them
        Public settings to draw from, as in `GridSearchCV`. For several estimators, one grid for all
        or a list of one for each.
    epsilon : float, default=1.0
        Privacy loss of the whole search, positive and finite.
    delta : float, default=1e-6
        Delta of the whole search, in (0, 1).
    tries : float, default=10
        Expected number of tries. The actual number is random and not released.
    law : {"auto", "poisson", "logarithmic"}, default="auto"
        The distribution of the number of tries; "auto" chooses the one that leaves the largest
        budget for a try. With "poisson" there is no try with probability e^-tries, and the model is
        then a constant.
    metric : str or None, default=None
        The score that chooses the best try: any of `private_score` except "calibration". None for
        the default of `private_score`.
    held_out : float, default=0.2
        Expected share of the rows for scoring.
    target_bounds : (float, float), default=None
        Public interval of the target, for "mae" and "r2"; None for that of the estimator.
    random_state : None, int, Generator or RandomState, default=None
        Any value other than None is for experiments, and the statement says so.
    ledger : path or Ledger, default=None
        The ledger that the search charges once.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted best try, with the statement of the whole search; it can be saved.
    best_params_ : dict or None
        The settings of the best try; None if there was no try.
    best_score_ : Estimate or None
        The noisy score of the best try with a 95 % interval. It is biased upwards, because it is
        the best of several scores.
    cv_results_ : dict
        A table of all settings, which are public, with `epsilon_of_try` and `mean_test_score`. The
        score is NaN for all but the best try.
    metric_ : str
        The score that compared the tries.
    privacy_ : PrivacyStatement
        The guarantee of the whole search.
    classes_ : ndarray
        The class labels, for a classifier.
    n_features_in_ : int
        Number of features D.

    Examples
    --------
    >>> import numpy as np
    >>> from dplasso import DPLogisticRegression, PrivateSearch
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 0] > 0
    >>> search = PrivateSearch(
    ...     DPLogisticRegression(), {"max_weights": [None, 5]}, law="logarithmic"
    ... )
    >>> search.fit(X, y).privacy_.epsilon <= 1.0
    True
    """

    def __init__(
        self,
        estimator: Any,
        grid: Any,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        tries: float = 10,
        law: str = "auto",
        metric: str | None = None,
        held_out: float = 0.2,
        target_bounds: tuple[float, float] | None = None,
        random_state: Any = None,
        ledger: "str | PathLike[str] | Ledger | None" = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.epsilon = epsilon
        self.delta = delta
        self.tries = tries
        self.law = law
        self.metric = metric
        self.held_out = held_out
        self.target_bounds = target_bounds
        self.random_state = random_state
        self.ledger = ledger

    def check(self) -> None:
        """Raise TypeError or ValueError for invalid settings, before there are data."""
        estimators = estimators_of(self.estimator)
        if any(isinstance(each, PrivateSearch) for each in estimators):
            raise TypeError(
                "estimator is a PrivateSearch; pass the estimator inside it, and one grid of all "
                "settings"
            )
        check_positive("epsilon", check_epsilon(self.epsilon))
        self._ledger()
        metric = self._metric(NUMBERS if self._numbers else TWO_CLASSES)
        checked_bounds(metric, self.target_bounds, self._first)
        if not 0.0 < self.held_out < 1.0:
            raise ParameterError(f"`held_out` must lie between 0 and 1, got {self.held_out!r}")
        tries_of(self.tries, self.law)
        candidates = list_candidates(self.estimator, self.grid, check_delta(self.delta))
        largest_variation(candidates, self.epsilon)

    def _ledger(self) -> Ledger | None:
        return checked_ledger(self.ledger, epsilon=self.epsilon, random_state=self.random_state)

    def fit(
        self, X: Any, y: "ArrayLike | None" = None, *, groups: "ArrayLike | None" = None
    ) -> Self:
        """Run the search.

        Parameters
        ----------
        X : sparse or dense matrix, shape (N, D), or a store
            One record per row.
        y : array-like, shape (N,) or (N, L), default=None
            Labels or targets, or 0 and 1 for each of L labels. Not needed for a store.
        groups : array-like, shape (N,), default=None
            The person each row belongs to, as in `fit` of an estimator.

        Returns
        -------
        PrivateSearch
            The search itself.

        Raises
        ------
        TypeError, ValueError
            For an invalid parameter, label or number. Nothing is charged then.
        BudgetError, LedgerError
            If the ledger has too little left or cannot be used. Nothing is charged then.

        Warns
        -----
        UserWarning
            If there was no try.
        """
        self.check()
        stream = random_stream(self.random_state)
        candidates = list_candidates(self.estimator, self.grid, self.delta)
        records = records_of(candidates, X, y)
        y = records.y
        settings = self._first.get_params(deep=False)
        relation = settings.get("neighbors", "add-remove"), int(settings.get("rows_per_person", 1))
        rows, person = entering_rows(records, groups, relation[1])
        classes = None if self._numbers else _declare_classes(candidates, y[rows])
        target = target_of(None, classes, records.n_labels)
        metric = self._metric(target.kind)
        check_metric(metric, target)
        check_scored(target, y[rows])
        started = fix_starts(candidates, records)
        cost = divide_budget(self, candidates, records, *relation)
        target = replace(target, bounds=checked_bounds(metric, self.target_bounds, self._first))
        scorer = scorer_of(cost, metric, target)
        ledger = self._ledger()
        cost = whole_budget(cost, ledger)
        seeded = self.random_state is not None
        declared = settings.get("classes") is not None or target.many_labels
        numbers = target.bounds if classes is None else None
        stated: dict[str, Any] = {
            "seeded": seeded,
            "classes_declared": declared,
            "target_bounds": numbers,
            "n_labels": records.n_labels,
        }
        warn_of(state_search(None, cost, **stated).cautions(), stacklevel=3)
        check_affordable(ledger, cost)
        held = draw_held_out(person, self.held_out, stream)
        notes = {"prior": started or None}
        if ledger is not None and classes is not None:
            notes["fingerprint"] = data_fingerprint(y[rows] != (classes[0] if y.ndim == 1 else 0))
        best: Try | None = None
        parts = divided(records, rows, held)
        with charged(ledger, cost, release=lambda: _digest(best), notes=notes):
            tries = draw_tries(cost.tries, stream)
            best = best_of(candidates, tries, parts, scorer, stream, seeded=seeded)
        self._set_best(best, records, cost, scorer.target, stated)
        self.cv_results_ = results_of(candidates, best)
        self.metric_, self._target = metric, scorer.target
        return self

    @property
    def _first(self) -> Any:
        """The first estimator, whose shared settings hold for all."""
        return estimators_of(self.estimator)[0]

    def _metric(self, kind: str) -> str:
        """Return our name of the metric, or the default for the kind of target."""
        return default_metric(kind) if self.metric is None else metric_named(self.metric, CHOOSING)

    @property
    def _numbers(self) -> bool:
        """Whether the target is numbers, according to the metric or else the estimator."""
        if self.metric is not None:
            return METRICS[self._metric(NUMBERS)].kinds == (NUMBERS,)
        return bool(is_regressor(self._first))

    def _set_best(
        self,
        best: Try | None,
        records: LocalRecords,
        cost: SearchCost,
        target: Target,
        stated: dict[str, Any],
    ) -> None:
        """Set the fitted attributes, which depend only on the best try and on public values."""
        if best is None:
            warnings.warn(
                "the random number of tries is zero, so the model is a constant",
                UserWarning,
                stacklevel=3,
            )
            fitted = _constant(target)
            self.best_score_, self.best_params_ = None, None
        else:
            self.best_score_, (self.best_params_, _), fitted = best
        fit = getattr(fitted, "privacy_", None)
        self.privacy_ = state_search(
            fit if isinstance(fit, PrivacyStatement) else None, cost, **stated
        )
        # Replace the statement of a single try by that of the search. The names of the columns are
        # missing too, because the parts have none.
        fitted.privacy_ = self.privacy_
        if hasattr(fitted, "model_"):
            fitted.model_ = replace(
                fitted.model_,
                statement=self.privacy_,
                feature_names=records.feature_names,
                origin=records.origin,
            )
        if records.feature_names is not None:
            fitted.feature_names_in_ = records.feature_names
        self.best_estimator_ = fitted
        self.n_features_in_ = records.shape[1]
        if target.classes:
            self.classes_ = np.asarray(target.classes)

    def predict(self, X: Any) -> "NDArray[Any]":
        """Predict with the best estimator."""
        return self._of_best("predict", X)

    def predict_proba(self, X: Any) -> "NDArray[np.float64]":
        """Predict the probability of each class with the best estimator."""
        return self._of_best("predict_proba", X)

    def score(self, X: Any, y: "ArrayLike | None" = None) -> float:
        """Return the score of the best estimator on labelled rows, without noise.

        For the curator only; use `private_score` for a score to release. The score is `metric_` as
        in `private_score`, but losses are negative, so that larger is better.
        """
        check_is_fitted(self, "best_estimator_")
        target, metric = self._target, METRICS[self.metric_]
        bounds = target.bounds if target.kind == NUMBERS else None
        scored = to_score(self.best_estimator_, X, y, self.metric_, bounds)
        sums = of_rows(metric.sums, scored.predicting, scored.rows, scored.target) / UNIT
        value = metric.estimate(sums, 0.0, 0.0, scored.target).value
        return value if metric.larger_is_better else -value

    def _of_best(self, method: str, X: Any) -> "NDArray[Any]":
        check_is_fitted(self, "best_estimator_")
        with of_a_stranger(self.best_estimator_):
            return np.asarray(getattr(self.best_estimator_, method)(X))


def _declare_classes(candidates: list[Candidate], y: NDArray[Any]) -> NDArray[Any]:
    """Set the same classes for every try: the declared ones, or those of all rows."""
    declared = candidates[0].estimator.get_params(deep=False).get("classes")
    classes = np.asarray(declared)
    if declared is None:
        classes = np.unique(y) if y.ndim == 1 else np.arange(y.shape[1])
    if classes.size < 2:
        raise DataError("`y` holds only one class; declare all classes with `classes`")
    for candidate in candidates:
        if "classes" in candidate.estimator.get_params(deep=False):
            candidate.estimator.set_params(classes=classes.tolist())
    return classes


def _digest(best: Try | None) -> str | None:
    """Return the digest of the released model; None for a third-party model."""
    model = None if best is None else getattr(best[2], "model_", None)
    return model.digest if isinstance(model, Model) else None


def _constant(target: Target) -> Any:
    """Return the constant model of a search without a try, which uses public values only."""
    if not target.classes:
        middle = 0.5 * (target.bounds[0] + target.bounds[1])
        return DummyRegressor(strategy="constant", constant=middle).fit([[0.0]], [middle])
    constant, size = DummyClassifier(strategy="prior"), len(target.classes)
    if target.many_labels:
        return OneVsRestClassifier(constant).fit([[0.0]] * 2, [[0] * size, [1] * size])
    return constant.fit(np.zeros((size, 1)), np.asarray(target.classes))
