"""What a public start buys: public rows alone, private rows alone, and both, on the same test rows.

A part of the training rows is taken for public and the rest stays private; or the public rows are
of other people or on other subjects than the private ones; or the prior is noise, which must not
harm.
"""

import warnings
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.cells import Advance, Cell
from evidence.datasets import Source, binarized
from evidence.items import Item, Settings, Table
from evidence.report import grouped
from evidence.utility.fits import DELTA, EPSILONS, split

TITLE = "Test AUC of public rows alone, private rows alone, and both"
STARTS = {
    "1": "1 % of the rows",
    "5": "5 % of the rows",
    "women": "women, for a model of men",
    "abroad": "born abroad, for a model of those born in the United States",
    "groups": "rec.* and sci.*, for a model of the other groups",
    "noise": "normal numbers as prior",
    "lasso-1": "1 % of the rows, `DPLassoClassifier`",
    "lasso-5": "5 % of the rows, `DPLassoClassifier`",
}
_ALL = [*STARTS]
_SHARES = {"1": 0.01, "5": 0.05}
# Starts of one data set alone.
_ONLY = {"women": "adult", "abroad": "adult", "groups": "news20_rebuilt"}
# A column of UCI Adult, as packaged, and what it holds for people who are public: a woman; not
# born in the United States.
_PEOPLE = {"women": (71, 1.0), "abroad": (82, 0.0)}
# News20 rebuilt stands group by group, so its label changes where other groups begin: alt.*; comp.*
# and misc.*; rec.*; sci.*; soc.* and talk.*. As many articles are public.
_SUBJECTS, _ARTICLES = (2, 3), 1_000
_DRAWS, _FEW, _LARGE = 5, 2, 3_000_000
# So that a few public rows of a small file are of both classes.
_LEAST = 16


def options(*, epsilons: list[float] = EPSILONS, draws: int = 0, starts: list[str] = _ALL) -> None:
    """Name the options; 0 draws: 5, or 2 on large data."""


@dataclass(frozen=True)
class Compared:
    """Fit with and without a public start, and score the start alone."""

    start: str
    epsilon: float
    draws: int
    own_test: int
    n_jobs: int

    def __call__(self, X: Any, y: NDArray[Any], advance: Advance) -> dict[str, Any]:
        from sklearn.metrics import roc_auc_score

        training, test = split(X.shape[0], self.own_test)
        X = binarized(X)
        runs = []
        for draw in range(self.draws):
            rng = np.random.default_rng(1_000 + draw)
            public, private, tested = self._parts(X, y, training, test, rng)
            known: dict[str, Any] = {"prior": rng.normal(size=X.shape[1])}
            if self.start != "noise":
                known = {"public_data": (X[public], y[public])}
            alone = self._fitted(X[private], y[private], draw)
            advance((draw + 0.5) / self.draws)
            both = self._fitted(X[private], y[private], draw, **known)
            prior = both.model_.prior
            margins = {
                "public": self._margins(prior, X[tested]),
                "private": alone.decision_function(X[tested]),
                "both": both.decision_function(X[tested]),
            }
            runs.append({k: float(roc_auc_score(y[tested], one)) for k, one in margins.items()})
            advance((draw + 1) / self.draws)
        return {"runs": runs, "public_rows": int(public.size), "private_rows": int(private.size)}

    def _parts(
        self,
        X: Any,
        y: NDArray[Any],
        training: NDArray[Any],
        test: NDArray[Any],
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the rows that are public, those that are private, and those that score."""
        if self.start == "noise":
            return training[:0], training, test
        public = self._others(X, y)
        if public is not None:
            found = rng.permutation(training[public[training]])
            most = _ARTICLES if self.start == "groups" else found.size
            return found[:most], training[~public[training]], test[~public[test]]
        order = rng.permutation(training)
        n_public = max(_LEAST, round(_SHARES[self.start.removeprefix("lasso-")] * training.size))
        return order[:n_public], order[n_public:], test

    def _others(self, X: Any, y: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return which rows are of other people or subjects; None if the start is not."""
        if self.start in _PEOPLE:
            column, value = _PEOPLE[self.start]
            there: NDArray[np.bool_] = X[:, [column]].toarray().ravel() == value
            return there
        if self.start == "groups":
            return np.isin(np.cumsum(np.diff(y, prepend=y[0]) != 0), _SUBJECTS)
        return None

    def _estimator(self, **given: Any) -> Any:
        from dplasso import DPLassoClassifier, DPLogisticRegression

        estimator = DPLassoClassifier if "lasso" in self.start else DPLogisticRegression
        return estimator(self.epsilon, DELTA, **given)

    def _fitted(self, X: Any, y: NDArray[Any], seed: int, **known: Any) -> Any:
        given = {"classes": (0, 1), "random_state": seed, "n_jobs": self.n_jobs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._estimator(**given, **known).fit(X, y)

    def _margins(self, prior: Any, X: Any) -> NDArray[np.float64]:
        from dplasso.estimators.fitting import method_of

        rows = method_of(self._estimator()).as_read(X.astype(np.float64))
        margins: NDArray[np.float64] = rows @ prior.weights[0]
        return margins


def cells(settings: Settings) -> list[Cell]:
    """List the data sets, starts and budgets."""
    epsilons = settings.options.get("epsilons", EPSILONS[2:3] if settings.quick else EPSILONS)
    asked = settings.options.get("starts", _ALL)
    return [
        _cell(source, start, epsilon, settings)
        for source in settings.sources
        for start in asked
        for epsilon in epsilons
        if _ONLY.get(start, source.label) == source.label
    ]


def _cell(source: Source, start: str, epsilon: float, settings: Settings) -> Cell:
    large = settings.quick or source.entries > _LARGE
    draws = settings.options.get("draws", 0) or (_FEW if large else _DRAWS)
    given = {"start": start, "epsilon": epsilon, "draws": draws}
    parameters = {**given, "delta": DELTA, "label": source.label, "title": source.title}
    measure = Compared(**given, own_test=source.own_test, n_jobs=settings.n_jobs)
    name = f"{start}-{epsilon:g}"
    return Cell("public-start", name, measure, parameters, source, source.entries * draws)


def present(settings: Settings, results: list[Any]) -> Item:
    """Lay out the table."""
    measured = [(one.parameters, r) for one, r in zip(cells(settings), results, strict=True) if r]
    return item([(dict(parameters), result) for parameters, result in measured])


def item(measured: list[tuple[dict[str, Any], dict[str, Any]]], titles: Any = None) -> Item:
    """Return the table of cells by their parameters and results."""
    titles = titles or {}
    epsilons = sorted({about["epsilon"] for about, _ in measured})
    labels = list(dict.fromkeys([*titles, *sorted({about["label"] for about, _ in measured})]))
    rows = []
    for label in labels:
        for start, words in STARTS.items():
            found = {
                about["epsilon"]: result["runs"]
                for about, result in measured
                if (about["label"], about["start"]) == (label, start)
            }
            if found:
                public = [run["public"] for runs in found.values() for run in runs]
                both = [_both(found.get(epsilon)) for epsilon in epsilons]
                rows.append([titles.get(label, label), words, f"{mean(public):.3f}", *both])
    head = ["data", "public", "alone", *(f"{epsilon:g}" for epsilon in epsilons)]
    about = "Of each budget: private rows alone, then with the public start."
    return Item("public-start", TITLE, (about, Table(head, grouped(rows))))


def _both(runs: list[dict[str, float]] | None) -> str:
    if runs is None:
        return "-"
    return " / ".join(f"{mean(run[kind] for run in runs):.3f}" for kind in ("private", "both"))
