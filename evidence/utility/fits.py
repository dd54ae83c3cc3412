"""One cell: several fits of a method at a budget, and how well they tell held-out rows apart."""

import warnings
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.cells import Advance, Cell
from evidence.datasets import Source, UnavailableError, binarized
from evidence.items import Settings

DELTA = 1e-6
EPSILONS = [0.1, 0.3, 1.0, 3.0]
SIZES = ("dense", "1000", "100", "30")
METHODS = {
    "logistic": "DPLogisticRegression",
    "lasso": "DPLassoClassifier",
    "none": "without privacy",
    "dp-sgd": "DP-SGD",
    "output": "output perturbation",
    "objective": "objective perturbation",
    "diffprivlib": "diffprivlib",
}
# Draws of a cell; on data of more entries than `_LARGE`, those of our own methods and of others.
_DRAWS, _FEW, _LARGE = 5, (3, 1), 3_000_000
_OWN = ("logistic", "lasso")


def options(*, epsilons: list[float] = EPSILONS, draws: int = 0) -> None:
    """Name the options of every item; 0 draws: 5; 3 or 1 on large data."""


@dataclass(frozen=True)
class Fits:
    """Fit a method several times on the training part of a data set of binary values."""

    method: str
    size: str
    epsilon: float
    draws: int
    own_test: int  # Rows at the end that are the data's own test part; 0: a fifth is drawn
    n_jobs: int

    def __call__(self, X: Any, y: NDArray[Any], advance: Advance) -> dict[str, Any]:
        from sklearn.metrics import roc_auc_score

        training, test = split(X.shape[0], self.own_test)
        rows, labels, test_rows = binarized(X[training]), y[training], binarized(X[test])
        runs = []
        for draw in range(self.draws):

            def part(share: float, draw: int = draw) -> None:
                advance((draw + share) / self.draws)

            try:
                margins, weights = self._fit(rows, labels, test_rows, draw, part)
            except UnavailableError as error:
                return {"left_out": str(error)}
            part(1.0)
            runs.append({"auc": float(roc_auc_score(y[test], margins)), "weights": weights})
        about = {"training_rows": training.size, "test_rows": test.size, "columns": X.shape[1]}
        return {"runs": runs, "entries_a_row": rows.nnz / training.size, **about}

    def _fit(
        self, X: Any, y: Any, X_test: Any, seed: int, advance: Advance
    ) -> tuple[NDArray[Any], int]:
        """Return the margins of the test rows and the number of weights that are not 0."""
        if self.method in _OWN:
            return self._own(X, y, X_test, seed, advance)
        if self.method == "none":
            from sklearn.linear_model import LogisticRegression

            model = LogisticRegression(max_iter=1000).fit(X, y)
            return model.decision_function(X_test), int(np.count_nonzero(model.coef_))
        from evidence.utility.competitors import COMPETITORS, with_constant

        rng = np.random.default_rng(seed)
        found = COMPETITORS[self.method](X, y, self.epsilon, DELTA, rng, advance)
        rows = with_constant(X_test, unit=self.method != "dp-sgd")
        return rows @ found, int(np.count_nonzero(found[:-1]))

    def _own(
        self, X: Any, y: Any, X_test: Any, seed: int, advance: Advance
    ) -> tuple[NDArray[Any], int]:
        from dplasso import DPLassoClassifier, DPLogisticRegression
        from dplasso.estimators.fitting import fit_estimator
        from dplasso.fit.hooks import Hooks

        given: dict[str, Any] = {"epsilon": self.epsilon, "delta": DELTA, "classes": (0, 1)}
        given |= {"random_state": seed, "n_jobs": self.n_jobs}
        if self.method == "lasso":
            model: Any = DPLassoClassifier(**given)
        else:
            kept = None if self.size == "dense" else int(self.size)
            model = DPLogisticRegression(max_weights=kept, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_estimator(model, X, y, Hooks(progress=lambda done, total: advance(done / total)))
        weights = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
        return model.decision_function(X_test), int(np.count_nonzero(weights))


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
    sizes = {"logistic": SIZES, "lasso": ("own",)}.get(method, ("",))
    return [
        _cell(method, size, epsilon, given, source, settings)
        for source in settings.sources
        for size in sizes
        for epsilon in (epsilons if method != "none" else (float("inf"),))
    ]


def _cell(
    method: str, size: str, epsilon: float, draws: int, source: Source, settings: Settings
) -> Cell:
    large = settings.quick or source.entries > _LARGE
    draws = draws or (_FEW[method not in _OWN] if large else _DRAWS)
    draws = 1 if method == "none" else draws
    fits = Fits(method, size, epsilon, draws, source.own_test, settings.n_jobs)
    name = "-".join(filter(None, (size, "" if method == "none" else f"{epsilon:g}")))
    parameters = {"method": method, "size": size, "epsilon": str(epsilon), "draws": draws}
    weight = source.entries * draws * (10.0 if method == "logistic" else 1.0)
    parameters |= {"delta": DELTA, "label": source.label, "title": source.title}
    return Cell(method, name, fits, parameters, source, weight)


def auc(result: dict[str, Any]) -> float:
    """Return the mean AUC of a cell."""
    return mean(run["auc"] for run in result["runs"])


def n_weights(result: dict[str, Any]) -> float:
    """Return the mean number of weights of a cell."""
    return mean(run["weights"] for run in result["runs"])
