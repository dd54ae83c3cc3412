"""One cell: several fits of a method at a budget, and how well they predict held-out rows."""

import math
import warnings
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evidence.cells import Advance, Cell
from evidence.datasets import Source, UnavailableError, binarized
from evidence.items import Settings

DELTA = 1e-6
EPSILONS = [0.1, 0.3, 1.0, 3.0]
SIZES = ("dense", "1000", "100", "30")
METHODS = {
    "logistic": "DPLogisticRegression",
    "lasso": "DPLassoClassifier",
    "oracle": "true weights",
    "none": "without privacy",
    "dp-sgd": "DP-SGD",
    "output": "output perturbation",
    "objective": "objective perturbation",
    "dp-ebm": "DP-EBM",
    "diffprivlib": "diffprivlib",
}
# Draws of a cell; on data of more entries than `_LARGE`, those of our own methods and of others;
# one on data of more than `_HUGE`.
_DRAWS, _FEW, _LARGE, _HUGE = 5, (3, 1), 3_000_000, 25_000_000
_OWN = ("logistic", "lasso")
# They spend nothing, and draw nothing.
_WITHOUT_BUDGET = ("none", "oracle")
_SIZES = {"logistic": SIZES, "lasso": ("own",)}
_BINS = 10


def options(*, epsilons: list[float] = EPSILONS, draws: int = 0) -> None:
    """Name the options of every item; 0 draws: 5; 3 or 1 on large data."""


@dataclass(frozen=True)
class Fits:
    """Fit a method several times on the training part of a data set of binary values."""

    method: str
    size: str
    epsilon: float
    draws: int
    source: Source
    n_jobs: int

    def __call__(self, X: Any, y: NDArray[Any], advance: Advance) -> dict[str, Any]:
        training, test = split(X.shape[0], self.source.own_test)
        rows, labels, test_rows = binarized(X[training]), y[training], binarized(X[test])
        runs = []
        for draw in range(self.draws):

            def part(share: float, draw: int = draw) -> None:
                advance((draw + share) / self.draws)

            try:
                found = self._fit(rows, labels, test_rows, draw, part)
            except UnavailableError as error:
                return {"left_out": str(error)}
            part(1.0)
            margins, probabilities, weights = found
            runs.append({**scores(y[test], margins, probabilities), "weights": weights})
        sizes = {"training_rows": rows.shape[0], "test_rows": test_rows.shape[0]}
        entries = rows.nnz / rows.shape[0]
        return {"runs": runs, "entries_a_row": entries, **sizes, "columns": X.shape[1]}

    def _fit(
        self, X: Any, y: Any, X_test: Any, seed: int, advance: Advance
    ) -> tuple[NDArray[Any], NDArray[Any], int]:
        """Return margins and probabilities of the test rows, and the number of weights not 0."""
        if self.method in _OWN:
            return _predicted(self._own(X, y, seed, advance), X_test)
        if self.method == "none":
            from sklearn.linear_model import LogisticRegression

            return _predicted(LogisticRegression(max_iter=1000).fit(X, y), X_test)
        if self.method == "oracle":
            if self.source.true_margins is None:
                raise UnavailableError("nobody knows the true weights of these data")
            margins = self.source.true_margins(X_test)
            return margins, expit(margins), X.shape[1]
        from evidence.utility.competitors import COMPETITORS, UNIT_ROWS, with_constant

        rng = np.random.default_rng(seed)
        found = COMPETITORS[self.method](X, y, self.epsilon, DELTA, rng, advance)
        margins = with_constant(X_test, unit=self.method in UNIT_ROWS) @ found
        return margins, expit(margins), int(np.count_nonzero(found[:-1]))

    def _own(self, X: Any, y: Any, seed: int, advance: Advance) -> Any:
        """Return a fitted model of ours."""
        from dplasso import DPLassoClassifier, DPLogisticRegression
        from dplasso.estimators.fitting import fit_estimator
        from dplasso.fit.run import Hooks

        given: dict[str, Any] = {"epsilon": self.epsilon, "delta": DELTA, "classes": (0, 1)}
        given |= {"random_state": seed, "n_jobs": self.n_jobs}
        if self.method == "lasso":
            model: Any = DPLassoClassifier(**given)
        else:
            kept = None if self.size == "dense" else int(self.size)
            model = DPLogisticRegression(max_weights=kept, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hooks = Hooks(progress=lambda done, total: advance(done / total))
            return fit_estimator(model, X, y, hooks)


def _predicted(model: Any, X: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Return what `Fits._fit` does, of a fitted estimator."""
    weights = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    probabilities = model.predict_proba(X)[:, 1]
    return model.decision_function(X), probabilities, int(np.count_nonzero(weights))


def scores(y: NDArray[Any], margins: NDArray[Any], probabilities: NDArray[Any]) -> dict[str, float]:
    """Return AUC, log-loss and the expected calibration error, over tenths of the probability."""
    from sklearn.metrics import log_loss, roc_auc_score

    places = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(places, probabilities - y, _BINS)
    return {
        "auc": float(roc_auc_score(y, margins)),
        "log_loss": float(log_loss(y, probabilities, labels=[0, 1])),
        "calibration_error": float(np.abs(gaps).sum() / y.size),
    }


def split(n_rows: int, own_test: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows for training and for testing: the data's own test part, or a fifth by seed 1."""
    if own_test:
        rows = np.arange(n_rows)
        return rows[:-own_test], rows[-own_test:]
    order = np.random.default_rng(1).permutation(n_rows)
    n_training = int(0.8 * n_rows)
    return order[:n_training], order[n_training:]


def cells(method: str, settings: Settings) -> list[Cell]:
    """List the cells of a method: every size at every epsilon on every data set."""
    epsilons = settings.options.get("epsilons", EPSILONS[2:3] if settings.quick else EPSILONS)
    given = settings.options.get("draws", 0)
    return [
        cell(method, size, epsilon, given, source, settings)
        for source in settings.sources
        for size in _SIZES.get(method, ("",))
        for epsilon in (epsilons if method not in _WITHOUT_BUDGET else (float("inf"),))
    ]


def cell(
    method: str, size: str, epsilon: float, draws: int, source: Source, settings: Settings
) -> Cell:
    """Return a cell; 0 draws: as many as the size of the data allows."""
    large = settings.quick or source.entries > _LARGE
    draws = draws or (_FEW[method not in _OWN] if large else _DRAWS)
    draws = 1 if method in _WITHOUT_BUDGET or source.entries > _HUGE else draws
    fits = Fits(method, size, epsilon, draws, source, settings.n_jobs)
    name = "-".join(filter(None, (size, "" if math.isinf(epsilon) else f"{epsilon:g}")))
    parameters = {"method": method, "size": size, "epsilon": str(epsilon), "draws": draws}
    weight = source.entries * draws * (10.0 if method.startswith("logistic") else 1.0)
    parameters |= {"delta": DELTA, "label": source.label, "title": source.title}
    return Cell(method, name, fits, parameters, source, weight)


def auc(result: dict[str, Any]) -> float:
    """Return the mean AUC of a cell."""
    return mean(run["auc"] for run in result["runs"])


def n_weights(result: dict[str, Any]) -> float:
    """Return the mean number of weights of a cell."""
    return mean(run["weights"] for run in result["runs"])
