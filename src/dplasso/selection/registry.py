"""The selection structures by name, and the mechanisms that each supports."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dplasso.errors import ParameterError
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import ArgmaxState, GumbelState, LaplaceState


def _noisy_max(rule: SelectionRule) -> Any:
    if rule.mechanism == "paper":
        return LaplaceState(rule.laplace, new_counters())
    if np.isinf(rule.exponent):
        return ArgmaxState(new_counters())
    return GumbelState(rule.exponent, new_counters())


def _bucket(n_columns: int, rule: SelectionRule) -> Any:
    signed = rule.mechanism == "exponential"
    return bucket_state(n_columns, rule.exponent, signed, rule.spread)


def _big_little(n_columns: int, rule: SelectionRule) -> Any:
    return big_little_state(n_columns, rule.exponent, rule.mechanism == "exponential")


_EVERYTHING = ("exponential", "paper", "none")
_Builder = Callable[[int, SelectionRule], Any]
_BUILDERS: dict[str, tuple[_Builder, tuple[str, ...]]] = {
    "bucket": (_bucket, _EVERYTHING),
    "noisy-max": (lambda _, rule: _noisy_max(rule), _EVERYTHING),
    "big-little": (_big_little, ("exponential", "paper")),
    "argmax": (lambda *_: ArgmaxState(new_counters()), ("none",)),
    "heap": (lambda n, _: heap_state(n), ("none",)),
}


def check_selector(name: str, mechanism: str) -> None:
    """Raise ValueError for an unknown structure, or one that does not support the mechanism.

    The mechanism ``"none"`` stands for ``epsilon=inf``.
    """
    fitting = [other for other, (_, fits) in _BUILDERS.items() if mechanism in fits]
    if name not in _BUILDERS:
        raise ParameterError(f"`selector` must be one of {', '.join(fitting)}, got {name!r}")
    if name not in fitting:
        run = "epsilon=inf" if mechanism == "none" else f"mechanism={mechanism!r}"
        raise ParameterError(
            f"`selector={name!r}` does not support {run}; use {', '.join(fitting)}"
        )


def make_selector(name: str, n_columns: int, rule: SelectionRule) -> Any:
    """Return the named empty structure for `n_columns` coordinates; `rebuild` fills it.

    Raises ValueError as `check_selector` does.
    """
    check_selector(name, rule.mechanism)
    return _BUILDERS[name][0](n_columns, rule)
