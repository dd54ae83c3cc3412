"""Whether tuning pays: defaults against a private search, at the same epsilon.

    python -m evidence benchmarks/tuning --data FOLDER

Three families. A fifth of each data set is kept for testing; all figures are medians of test AUC
over repeats, without noise, and no part of any release. "grid, not counted" is the best median
among the settings of the grid, each fitted on all training rows with the whole epsilon: what a
search could reach at most, and what tuning that nobody counts reports.
"""

import warnings
from statistics import median
from types import SimpleNamespace
from typing import Any

from evidence.datasets import held_out, load_spec
from evidence.items import Settings, Table

TITLE = "Defaults against a private search"
GRIDS: dict[str, dict[str, list[Any]]] = {
    "lasso": {"max_weights": [None, 10, 30, 100]},
    "logistic": {"max_weights": [None, 1000, 100]},
    # What no default can know: the size of the entries.
    "frank-wolfe": {"feature_bound": [0.03, 0.1, 0.3, 1.0]},
}
TRIES = (3.0, 10.0)


def cases(config: Any) -> dict[str, Any]:
    """List the cases: each data set and family."""
    return {
        f"{spec.name} {family}": SimpleNamespace(**vars(spec), family=family)
        for spec in config.data
        for family in GRIDS
        if family not in spec.without
    }


def measure(case: Any, config: Any, settings: Settings) -> dict[str, Any]:
    """Measure one data set and family."""
    from sklearn.base import clone
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import ParameterGrid

    from dplasso import PrivateSearch
    from dplasso.estimators.cost import estimator_of

    data = load_spec(case, settings.data, settings.n_jobs)
    y, family, repeats = data.y, case.family, config.repeats
    train, test = held_out(y.size, settings.seed)
    X, X_test = data.X[train], data.X[test]
    base = estimator_of(family, None, classes=(0, 1))

    def auc(estimator: Any) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = estimator.fit(X, y[train])
        return float(roc_auc_score(y[test], fitted.predict_proba(X_test)[:, 1]))

    found = []
    for epsilon in config.epsilons:
        row = {"epsilon": epsilon, "defaults": _typical(auc, base, repeats, epsilon=epsilon)}
        for tries in TRIES:
            search = PrivateSearch(base, GRIDS[family], tries=tries)
            row[f"search {tries:g}"] = _typical(auc, search, repeats, epsilon=epsilon)
        tried = [
            (_typical(auc, clone(base).set_params(**one), repeats, epsilon=epsilon), one)
            for one in ParameterGrid(GRIDS[family])
        ]
        row["grid"], row["grid_settings"] = max(tried, key=lambda pair: pair[0])
        found.append(row)
    return {
        "data": case.name,
        "family": family,
        "rows": len(train),
        "columns": int(X.shape[1]),
        "aucs": found,
    }


def _typical(auc: Any, estimator: Any, repeats: int, **settings: Any) -> float:
    from sklearn.base import clone

    return median(auc(clone(estimator).set_params(**settings)) for _ in range(repeats))


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
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
        for one in results.values()
        for aucs in one["aucs"]
    ]
    head = ["data", "family", "epsilon", "defaults", *searches, "grid, not counted", "which"]
    return [
        "Test AUC at delta 1e-6, medians of repeats. `search M`: `PrivateSearch` with M expected "
        "tries over the grid, scored by noisy AUC on a fifth of the training rows.",
        Table(head, rows),
    ]
