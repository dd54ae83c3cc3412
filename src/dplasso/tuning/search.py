"""Private hyperparameter search: the best of a random number of tries, with one guarantee.

Every try draws settings from a public grid (uniformly, with replacement), fits on one part of the
records, and is scored with noise on the other part. The search releases only the best try and its
score, not the number of tries or the other scores.
"""

from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.utils.validation import check_is_fitted

from dplasso.data.labels import numbers_of
from dplasso.errors import ParameterError, shown
from dplasso.estimators.fitting import method_of
from dplasso.fit.records import LocalRecords
from dplasso.fit.task import Labels
from dplasso.ledger import Ledger, charged, check_affordable, checked_ledger, data_fingerprint
from dplasso.model.inference import inference_of
from dplasso.privacy.parameters import check_delta, check_epsilon, check_positive
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.statement import PrivacyStatement, state_search
from dplasso.privacy.wording import warn_of
from dplasso.tuning.candidates import (
    Candidate,
    Try,
    best_of,
    divided,
    draw_held_out,
    entering_rows,
    fix_starts,
    list_candidates,
    records_of,
    results_of,
)
from dplasso.tuning.estimates import UNIT, of_rows
from dplasso.tuning.metrics import METRICS, chosen_metric
from dplasso.tuning.scores import check_scored, checked_bounds, target_of, to_score
from dplasso.tuning.search_cost import (
    SearchCost,
    divide_budget,
    draw_tries,
    scorer_of,
    tries_of,
    whole_budget,
)


class PrivateSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose settings privately: the best of a random number of private fits.

    The whole search has one guarantee, one statement and one charge. Each try gets a smaller
    epsilon than a single fit would, so a search helps only if it finds settings that are much
    better than the defaults (docs/tuning.md).

    Parameters
    ----------
    estimator : estimator or list of them
        An estimator of this package, or a list of these with the same `classes`, `target_bounds`,
        `neighbors` and `rows_per_person`. In a pipeline, the search is the last step
        (docs/howto-pipelines.md).
    grid : mapping of str to sequence, or sequence of them
        Public settings to draw from, as in `GridSearchCV`. For several estimators, one grid for all
        or a list of one for each.
    epsilon : float, default=1.0
        Privacy loss of the whole search, positive and finite.
    delta : float, default=1e-6
        Delta of the whole search, in (0, 1).
    tries : float, default=10
        Expected number of tries, above 1 and at most 1000. The actual number is random and not
        released.
    metric : str or None, default=None
        The score that chooses the best try, as in `private_score`.
    held_out : float, default=0.2
        Expected share of the rows for scoring.
    random_state : None, int, Generator or RandomState, default=None
        Any value other than None is for experiments, and the statement says so.
    ledger : path or Ledger, default=None
        The ledger that the search charges once.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted best try, with the statement of the whole search; it can be saved.
    best_params_ : dict
        The settings of the best try.
    best_score_ : Estimate
        The noisy score of the best try with a 95 % interval; too high on average, as the best of
        several.
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
    >>> search = PrivateSearch(DPLogisticRegression(), {"max_weights": [None, 5]})
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
        metric: str | None = None,
        held_out: float = 0.2,
        random_state: Any = None,
        ledger: "str | PathLike[str] | Ledger | None" = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.epsilon = epsilon
        self.delta = delta
        self.tries = tries
        self.metric = metric
        self.held_out = held_out
        self.random_state = random_state
        self.ledger = ledger

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
        """
        seeded = self.random_state is not None
        check_positive("epsilon", check_epsilon(self.epsilon))
        ledger = checked_ledger(self.ledger, epsilon=self.epsilon, random_state=self.random_state)
        if not 0.0 < self.held_out < 1.0:
            raise ParameterError(f"`held_out` must lie between 0 and 1, got {shown(self.held_out)}")
        tries = tries_of(self.tries)
        candidates = list_candidates(self.estimator, self.grid, check_delta(self.delta))
        first = candidates[0].estimator
        names_classes = getattr(first, "classes", None) is not None
        stream = random_stream(self.random_state)
        records = records_of(candidates, X, y)
        y = records.y
        rows, person, by_person = entering_rows(records, groups, first.rows_per_person)
        entering = replace(records, y=y[rows])
        classes = None if is_regressor(first) else _declare_classes(candidates, entering)
        target = target_of(None, classes, records.n_labels)
        metric = chosen_metric(self.metric, target)
        check_scored(target, y[rows])
        started = fix_starts(candidates, records)
        cost = divide_budget(self, candidates, records, tries)
        target = replace(target, bounds=checked_bounds(metric, None, first))
        scorer = scorer_of(cost, metric, target)
        charge = whole_budget(cost, ledger)
        declared = target.many_labels or names_classes
        stated = {"classes_declared": declared, "by_person": by_person}
        warn_of(_stated(candidates[0], records, cost, seeded, **stated).cautions(), stacklevel=3)
        check_affordable(ledger, charge)
        held = draw_held_out(person, self.held_out, stream)
        notes = {"prior": started or None}
        if ledger is not None and classes is not None:
            own = y[rows] if y.ndim > 1 else numbers_of(y[rows], classes)
            notes["fingerprint"] = data_fingerprint(own)
        best: Try
        parts = divided(records, rows, held)
        with charged(ledger, charge, release=lambda: best[2].model_.digest, notes=notes):
            n_tries = draw_tries(cost.tries, stream)
            best = best_of(candidates, n_tries, parts, scorer, stream, seeded=seeded)
        self.best_score_, (self.best_params_, _), fitted = best
        self.privacy_ = state_search(fitted.privacy_, cost, **stated)
        self._set_best(fitted, records)
        self.cv_results_ = results_of(candidates, best)
        self.metric_ = metric
        if target.classes:
            self.classes_ = np.asarray(target.classes)
        return self

    def _set_best(self, fitted: Any, records: LocalRecords) -> None:
        """Give the best try the statement of the search, and the names of the columns.

        The names are missing because the parts of the records have none.
        """
        names = records.feature_names
        fitted.privacy_ = self.privacy_
        fitted.model_ = replace(
            fitted.model_, statement=self.privacy_, feature_names=names, origin=records.origin
        )
        if names is not None:
            fitted.feature_names_in_ = names
        if hasattr(fitted, "inference_"):
            # Its title shows the epsilon of the statement.
            fitted.inference_ = inference_of(fitted.model_)
        self.best_estimator_ = fitted
        self.n_features_in_ = records.shape[1]

    def predict(self, X: Any) -> "NDArray[Any]":
        """Predict with the best estimator."""
        check_is_fitted(self, "best_estimator_")
        predictions: NDArray[Any] = self.best_estimator_.predict(X)
        return predictions

    def predict_proba(self, X: Any) -> "NDArray[np.float64]":
        """Predict the probability of each class with the best estimator."""
        check_is_fitted(self, "best_estimator_")
        probabilities: NDArray[np.float64] = self.best_estimator_.predict_proba(X)
        return probabilities

    def score(self, X: Any, y: "ArrayLike | None" = None) -> float:
        """Return the score of the best estimator on labelled rows, without noise.

        For the curator only; use `private_score` for a score to release. The score is `metric_` as
        in `private_score`, but losses are negative, so that larger is better.
        """
        check_is_fitted(self, "best_estimator_")
        metric, scored = METRICS[self.metric_], to_score(self.best_estimator_, X, y, self.metric_)
        sums = of_rows(metric.sums, scored.predicting, scored.rows, scored.target) / UNIT
        value = metric.estimate(sums, 0.0, 0.0, scored.target).value
        return value if metric.larger_is_better else -value


def _declare_classes(candidates: list[Candidate], records: LocalRecords) -> NDArray[Any]:
    """Set the same classes for every try: the declared ones, or those of all rows."""
    first = candidates[0].estimator
    classes = Labels(first.classes, None, first.rows_per_person).task(records).classes
    for candidate in candidates:
        candidate.estimator.set_params(classes=classes.tolist())
    return classes


def _stated(
    candidate: Candidate, records: LocalRecords, cost: SearchCost, seeded: bool, **stated: bool
) -> PrivacyStatement:
    method = method_of(clone(candidate.estimator).set_params(random_state=0 if seeded else None))
    task, n_features = method.targets.task(records), records.shape[1]
    fit = method.statement(task, method.budget(task, n_features), n_features)
    return state_search(fit, cost, **stated)
