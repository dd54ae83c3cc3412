"""The structures by name, and which of them fits which mechanism."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dplasso.matrix.numbering import AS_GIVEN, Numbering
from dplasso.privacy.mechanisms.contract import SelectionRule
from dplasso.selection.argmax import ArgmaxState
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.counters import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import GumbelState, LaplaceState


def _argmax(n_columns: int, rule: SelectionRule, numbering: Numbering) -> Any:
    return ArgmaxState(new_counters(), numbering)


def _noisy_max(n_columns: int, rule: SelectionRule, numbering: Numbering) -> Any:
    if rule.mechanism == "paper":
        return LaplaceState(rule.laplace, new_counters(), numbering)
    if np.isinf(rule.exponent):
        return ArgmaxState(new_counters(), numbering)
    return GumbelState(rule.exponent, new_counters(), numbering)


def _bucket(n_columns: int, rule: SelectionRule, numbering: Numbering) -> Any:
    return bucket_state(n_columns, rule.exponent, rule.mechanism == "exponential", numbering)


def _big_little(n_columns: int, rule: SelectionRule, numbering: Numbering) -> Any:
    return big_little_state(n_columns, rule.exponent, rule.mechanism == "exponential", numbering)


def _heap(n_columns: int, rule: SelectionRule, numbering: Numbering) -> Any:
    return heap_state(n_columns, numbering)


_EVERYTHING = ("exponential", "paper", "none")
_Builder = Callable[[int, SelectionRule, Numbering], Any]
_BUILDERS: dict[str, tuple[_Builder, tuple[str, ...]]] = {
    "bucket": (_bucket, _EVERYTHING),
    "noisy-max": (_noisy_max, _EVERYTHING),
    "big-little": (_big_little, ("exponential", "paper")),
    "argmax": (_argmax, ("none",)),
    "heap": (_heap, ("none",)),
}
SELECTORS = tuple(_BUILDERS)


def check_selector(name: str, mechanism: str) -> None:
    """Refuse a structure that does not exist or does not fit.

    `name`: one of `SELECTORS`.
    `mechanism`: ``"none"`` stands for ``epsilon=inf``.

    Raises ValueError naming the structures that would fit.
    """
    fitting = [other for other, (_, fits) in _BUILDERS.items() if mechanism in fits]
    if name not in _BUILDERS:
        raise ValueError(f"selector must be one of {', '.join(fitting)}, got {name!r}")
    if name not in fitting:
        run = "epsilon=inf" if mechanism == "none" else f"mechanism={mechanism!r}"
        raise ValueError(
            f"selector={name!r} cannot draw for {run}; what fits: {', '.join(fitting)}"
        )


def make_selector(
    name: str, n_columns: int, rule: SelectionRule, numbering: Numbering = AS_GIVEN
) -> Any:
    """Build the named structure, empty; `dplasso.selection.contract.rebuild` fills it.

    `name`: one of `SELECTORS`.
    `n_columns`: number of coordinates (D, plus one for an intercept).
    `rule`: what to draw.
    `numbering`: where the coordinates stand in alpha.

    Raises ValueError as for `check_selector`.
    """
    check_selector(name, rule.mechanism)
    return _BUILDERS[name][0](n_columns, rule, numbering)
