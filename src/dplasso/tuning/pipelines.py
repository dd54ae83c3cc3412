"""A search for the last step of a pipeline; the steps before it learn nothing."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dplasso.estimators.record_wise import check_record_wise, rows_of, split


def search_for_last(search: Any) -> Any | None:
    """Return the same search for the last step of its pipeline; None if it has no pipeline.

    Raises ValueError for a step that learns, or a setting of another step than the last.
    """
    parts = split(search.estimator)
    if parts is None:
        return None
    steps, last = parts
    check_record_wise(steps)
    name = search.estimator.steps[-1][0]
    grids = [search.grid] if isinstance(search.grid, Mapping) else search.grid
    inner = clone(search)
    return inner.set_params(estimator=last, grid=[_of_last(name, grid) for grid in grids])


def _of_last(name: str, grid: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a pipeline's last step as it calls them itself."""
    if others := [one for one in grid if not one.startswith(f"{name}__")]:
        raise ValueError(
            f"{others[0]} is no setting of the last step {name!r}, for which alone a search is; "
            f"write {name}__NAME"
        )
    return {one.removeprefix(f"{name}__"): values for one, values in grid.items()}


def fit_behind(search: Any, inner: Any, X: Any, y: Any, groups: Any) -> None:
    """Fit the search for the last step, and set the attributes of that for the pipeline."""
    steps, rows = rows_of(search.estimator[:-1], X, fit=True)
    inner.fit(rows, y, groups=groups)
    found = {name: value for name, value in vars(inner).items() if name.endswith("_")}
    name = search.estimator.steps[-1][0]
    found["best_estimator_"] = Pipeline([*steps.steps, (name, inner.best_estimator_)])
    if inner.best_params_ is not None:
        found["best_params_"] = {f"{name}__{one}": v for one, v in inner.best_params_.items()}
    vars(search).update(found)
