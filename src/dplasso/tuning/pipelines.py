"""Pipelines in a search: which step a setting is for, and what was chosen behind its steps."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dplasso.estimators.record_wise import check_record_wise, split


def last_of(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    parts = split(estimator)
    return estimator if parts is None else parts[1]


def settings_by_step(
    estimator: Any, params: Mapping[str, Any]
) -> tuple[Pipeline | None, dict[str, Any]]:
    """Return the steps before the last with their settings, and the settings of the last.

    Without a pipeline there are no steps. Raises ValueError for a step that learns from the
    records, or a setting of none.
    """
    if split(estimator) is None:
        return None, dict(params)
    steps, last = clone(estimator[:-1]), f"{estimator.steps[-1][0]}__"
    of_last = {one.removeprefix(last): v for one, v in params.items() if one.startswith(last)}
    others = {one: value for one, value in params.items() if not one.startswith(last)}
    names = [name for name, _ in steps.steps]
    if unknown := [one for one in others if one.partition("__")[0] not in names]:
        raise ValueError(
            f"{unknown[0]} is no setting of a step; write STEP__NAME, of the last {last}NAME"
        )
    if others:
        steps.set_params(**others)
    check_record_wise(steps)
    return steps, of_last


def behind(estimator: Any, steps: Pipeline | None, fitted: Any) -> Any:
    """Return a fitted last step behind the others, as the pipeline that is searched for."""
    if steps is None:
        return fitted
    return Pipeline([*steps.steps, (estimator.steps[-1][0], fitted)])
