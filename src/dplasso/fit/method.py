"""How a model is fitted: the parameters that every method has, checked once, and its contract."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

from joblib import effective_n_jobs

from dplasso.fit.task import Bounded, Labels, Task, targets_of
from dplasso.ledger import check_ledger_settings
from dplasso.privacy.parameters import (
    check_delta,
    check_epsilon,
    check_neighbors,
    check_positive,
)
from dplasso.privacy.randomness import RandomStream, check_random_state
from dplasso.privacy.statement import Accounted
from dplasso.runtime.threads import Threads

_MOST_THREADS = 64
# Data of many columns, where a cost is asked for before there are any.
MANY_COLUMNS = 2**24


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of fitting with its parameters: those of an estimator, valid.

    A method of its own has `from_params`, `mechanism`, `solver` and `released_numbers`.

    Attributes
    ----------
    params : mapping
        The estimator's parameters as a model file holds them.
    targets : Labels or Bounded
        What is known of the targets before there are data.
    given_bound : float or None
        `residual_bound`; None leaves it to the task.
    weight_bound : float or None
        The largest weight of a record; None where there are none, or no privacy.
    n_threads : int
        What `n_jobs` stands for.

    The others are the estimator's parameters of these names.
    """

    params: Mapping[str, Any]
    targets: Labels | Bounded
    epsilon: float
    delta: float
    given_bound: float | None
    neighbors: str
    fit_intercept: bool
    n_records: int | None
    rows_per_person: int
    weight_bound: float | None
    n_threads: int
    random_state: Any = None
    ledger: Any = None
    dataset: str | None = None
    purpose: str | None = None

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite."""
        return not math.isinf(self.epsilon)

    def knowing(self, task: Task) -> Self:
        """Return the method once the classes are known, by which weights may go by name."""
        return replace(self, params=self.targets.in_order(self.params, task.classes))

    def warn(self) -> None:
        """Warn of a method that is not private whatever epsilon is; most are."""

    def mechanism(self, task: Task, n_rows: int, n_features: int) -> Accounted:
        """Return the private step; only the paper's depends on the number of rows."""
        raise NotImplementedError

    def cost(self, n_features: int = MANY_COLUMNS, n_classes: int | None = None) -> Accounted:
        """Return the private step of a fit on public numbers, before there are data.

        `n_classes`: K; None for as many as were declared, or 2.
        """
        return self.mechanism(self.targets.of_size(n_classes), 1, n_features)

    def solver(
        self,
        task: Task,
        mechanism: Accounted,
        records: Any,
        stream: RandomStream,
        threads: Threads,
        *,
        prefix: Any = None,
        replay: Any = None,
    ) -> Any:
        """Return what takes the steps, ready for step 0.

        `records`: of `dplasso.fit.records`, with the targets of the task.
        `prefix`: what an interrupted fit has released; it is not drawn again.
        `replay`: vertices to be taken instead of drawing any.
        """
        raise NotImplementedError

    def released_numbers(self, mechanism: Any, n_features: int, n_outputs: int) -> tuple[int, int]:
        """Return how many vertices and how many numbers a fit releases at most."""
        raise NotImplementedError


def common_parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters that all methods have.

    Returns the fields of `Method`.

    Raises TypeError, ValueError one sentence that names the parameter, what was given and what
    would be right.
    """
    epsilon = check_epsilon(params["epsilon"])
    check_ledger_settings({"mechanism": "gaussian", **params})
    targets = targets_of(params)
    bound = params.get("weight_bound")
    return {
        "params": targets.written(params),
        "targets": targets,
        "epsilon": epsilon,
        "delta": check_delta(params["delta"]),
        "given_bound": _checked_bound(params["residual_bound"], targets),
        "neighbors": check_neighbors(params["neighbors"]),
        "fit_intercept": bool(params["fit_intercept"]),
        "n_records": _checked_count("n_records", params["n_records"]),
        "rows_per_person": _checked_count("rows_per_person", params["rows_per_person"]) or 1,
        "weight_bound": None if bound is None else check_positive("weight_bound", bound),
        "n_threads": _checked_threads(params["n_jobs"]),
        "random_state": check_random_state(params["random_state"]),
        "ledger": params["ledger"],
        "dataset": params["dataset"],
        "purpose": params["purpose"],
    }


def is_word(value: Any, word: str) -> bool:
    """Return whether a parameter is a word; an array is none."""
    return isinstance(value, str) and value == word


def _checked_bound(residual_bound: Any, targets: Labels | Bounded) -> float | None:
    """Return a bound C that was given; None for "auto"."""
    if is_word(residual_bound, "auto"):
        return None
    least, most = targets.bounds_allowed
    if isinstance(residual_bound, Real) and least <= float(residual_bound) <= most:
        return float(residual_bound)
    raise ValueError(
        f"residual_bound must be 'auto' or a number from {least:g} to {most:g}, got "
        f"{residual_bound!r}"
    )


def _checked_count(name: str, count: Any) -> int | None:
    if count is None:
        return None
    if isinstance(count, Integral) and int(count) > 0:
        return int(count)
    raise ValueError(f"{name} must be None or a whole number >= 1, got {count!r}")


def _checked_threads(n_jobs: Any) -> int:
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0 (-1 for all cores), got {n_jobs!r}"
        )
    # More would only wait for each other, and each takes memory of its own.
    return min(int(effective_n_jobs(n_jobs)), max(_MOST_THREADS, int(effective_n_jobs(-1))))
