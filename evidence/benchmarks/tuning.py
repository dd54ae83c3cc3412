"""Whether tuning pays: defaults against a private search, at the same epsilon.

    python -m evidence benchmarks/tuning --files a9a.svm.gz reuters.svm.gz --epsilons 0.5 1 3

Both families. A fifth of each file is kept for testing; all figures are medians of test AUC over
repeats, without noise, and no part of any release. "grid, not counted" is the best median among the
settings of the grid, each fitted on all training rows with the whole epsilon: what a search could
reach at most, and what tuning that nobody counts reports.
"""

import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from evidence.datasets import held_out
from evidence.items import Table

TITLE = "Defaults against a private search"
QUICK = {"epsilons": [1.0], "repeats": 1}
LASSO, LOGISTIC, BOUND = "lasso", "logistic", "lasso, bound"
GRIDS: dict[str, dict[str, list[Any]]] = {
    LASSO: {"n_iter": [10, 30, 100], "l1_radius": [3.0, 10.0, 30.0]},
    LOGISTIC: {"max_weights": [None, 1000, 100], "residual_bound": [0.5, 1.0]},
    # What no default can know: the size of the entries.
    BOUND: {"feature_bound": [0.03, 0.1, 0.3, 1.0]},
}
TRIES = (3.0, 10.0)


def split(
    *, files: list[Path], epsilons: list[float], repeats: int = 3, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """List the cases: each file and family."""
    return {
        f"{path.name.split('.')[0]} {family}": {
            "path": path,
            "family": family,
            "epsilons": epsilons,
            "repeats": repeats,
            "seed": seed,
        }
        for path in files
        for family in GRIDS
    }


def measure(
    *, path: Path, family: str, epsilons: list[float], repeats: int, seed: int
) -> dict[str, Any]:
    """Measure one file and family."""
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import ParameterGrid

    from dplasso import DPLassoClassifier, DPLogisticRegression, PrivateSearch
    from dplasso.data.files import read_data

    data = read_data(path)
    y = (np.asarray(data.y) > 0).astype(np.int8)
    train, test = held_out(y.size, seed)
    X, X_test = data.X[train], data.X[test]
    kind = DPLogisticRegression if family == LOGISTIC else DPLassoClassifier
    base = kind(classes=(0, 1))

    def auc(estimator: Any) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = estimator.fit(X, y[train])
        return float(roc_auc_score(y[test], fitted.predict_proba(X_test)[:, 1]))

    found = []
    for epsilon in epsilons:
        row = {"epsilon": epsilon, "defaults": _typical(auc, base, repeats, epsilon=epsilon)}
        for tries in TRIES:
            search = PrivateSearch(base, GRIDS[family], tries=tries)
            row[f"search {tries:g}"] = _typical(auc, search, repeats, epsilon=epsilon)
        settings = [
            (_typical(auc, clone(base).set_params(**one), repeats, epsilon=epsilon), one)
            for one in ParameterGrid(GRIDS[family])
        ]
        row["grid"], row["grid_settings"] = max(settings, key=lambda pair: pair[0])
        found.append(row)
    return {
        "data": path.name.split(".")[0],
        "family": family,
        "rows": len(train),
        "columns": int(X.shape[1]),
        "aucs": found,
    }


def _typical(auc: Any, estimator: Any, repeats: int, **settings: Any) -> float:
    from sklearn.base import clone

    return median(auc(clone(estimator).set_params(**settings)) for _ in range(repeats))


def section(results: list[dict[str, Any]]) -> list[str | Table]:
    """Lay out the AUCs."""
    searches = [f"search {tries:g}" for tries in TRIES]
    rows = [
        [
            f"{one['data']} ({one['rows']:,} x {one['columns']:,})",
            one["family"],
            f"{aucs['epsilon']:g}",
            *(f"{aucs[name]:.3f}" for name in ("defaults", *searches, "grid")),
            ", ".join(f"{name} {value}" for name, value in aucs["grid_settings"].items()),
        ]
        for one in results
        for aucs in one["aucs"]
    ]
    head = ["data", "family", "epsilon", "defaults", *searches, "grid, not counted", "which"]
    return [
        "Test AUC at delta 1e-6, medians. `search M`: `PrivateSearch` with M expected tries over "
        "the grid, scored by noisy AUC on a fifth of the training rows.",
        Table(head, rows),
    ]
