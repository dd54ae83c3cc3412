"""The selection structures by name, and the mechanisms that each supports."""

from typing import Any

import numpy as np

from dplasso.errors import ParameterError, shown
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import ArgmaxState, GumbelState, LaplaceState
from dplasso.selection.selector import new_counters

_EVERYTHING = ("exponential", "paper", "none")
_SUPPORTED = {
    "bucket": _EVERYTHING,
    "noisy-max": _EVERYTHING,
    "big-little": ("exponential", "paper"),
    "argmax": ("none",),
    "heap": ("none",),
}


def check_selector(name: str, mechanism: str) -> None:
    """Raise ValueError for an unknown structure, or one that does not support the mechanism.

    The mechanism ``"none"`` stands for ``epsilon=inf``.
    """
    fitting = [other for other, supported in _SUPPORTED.items() if mechanism in supported]
    if name not in _SUPPORTED:
        raise ParameterError(f"`selector` must be one of {', '.join(fitting)}, got {shown(name)}")
    if name not in fitting:
        run = "epsilon=inf" if mechanism == "none" else f"mechanism={mechanism!r}"
        raise ParameterError(
            f"`selector={name!r}` does not support {run}; use {', '.join(fitting)}"
        )


def make_selector(name: str, n_columns: int, rule: SelectionRule) -> Any:
    """Return the empty structure of a checked name for `n_columns` coordinates.

    `rebuild` fills it.
    """
    signed = rule.mechanism == "exponential"
    if name == "bucket":
        return bucket_state(n_columns, rule.exponent, signed, rule.spread)
    if name == "big-little":
        return big_little_state(n_columns, rule.exponent, signed)
    if name == "heap":
        return heap_state(n_columns)
    if rule.mechanism == "paper":
        return LaplaceState(rule.laplace, new_counters())
    if np.isinf(rule.exponent):
        return ArgmaxState(new_counters())
    return GumbelState(rule.exponent, new_counters())
