"""The contract that every selection structure fulfils.

A structure is a NamedTuple of arrays and numbers (its state) plus kernels, tied together by
`register`. The solvers' kernels call the generic functions below; numba picks the implementation by
the type of the state, which keeps one compiled loop per structure on disk.

Gradients are the fixed-point integers of `dplasso.frank_wolfe.gradient`.

=============  ==========================================================================
function       duty
=============  ==========================================================================
`select`       return ``(coordinate, sign)``: the vertex ``sign * radius * e_coordinate``
`update_many`  ``alpha`` has changed at ``changed[:count]``, each once, from ``old[:count]``
`rebuild`      forget everything and index `alpha` afresh
`granularity`  return g: only changes of ``alpha_k >> g`` need an `update_many`
`reads_few`    return whether `select` reads gradients within ``2^g`` of 0 one by one, where
               it is about to draw them: only these need to be right, and only then
=============  ==========================================================================

The solvers make the comparison of `granularity` themselves and report a row's changes together: in
the innermost loop a call per touched entry would cost a hundred times the entry's own update.

A structure may read `alpha` in `select`; it must not write to it. One that reads few may be given
`OnDemand` for it by callers in plain Python. Every private structure draws from the same
distribution, to within `SAMPLING_ERROR` in total variation.

A state's `counters`, of shape (4,), count a structure's work, for research runs. The counts depend
on the data and no private model carries them: the estimator reads them only where the run has no
privacy to lose (`epsilon=inf`, `mechanism="paper"`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

from dplasso.runtime.dispatch import implement, implementation

# The granularity at which no change of a gradient is reported, not even of its sign.
NOTHING_REPORTED = 63
# Candidates looked at or tried, coordinates moved inside the structure, items popped off a heap,
# random variates drawn.
TRIES, MOVES, POPS, VARIATES = range(4)


class OnDemand:
    """Column gradients that are computed one by one, when they are read.

    `stored`: the gradients, right but where `computed` knows better.
    `computed`: returns the gradient at a place, or None where the stored one is right.
    """

    def __init__(self, stored: NDArray[np.int64], computed: Callable[[int], int | None]) -> None:
        self.stored, self._computed = stored, computed

    def __getitem__(self, k: int) -> np.int64:
        found = self._computed(int(k))
        return np.int64(self.stored[k] if found is None else found)


def stored(alpha: Any) -> Any:
    """Return gradients as an array, for kernels that read large ones alone."""
    return alpha.stored if isinstance(alpha, OnDemand) else alpha


@overload(stored)
def _array_itself(alpha):
    return lambda alpha: alpha


def select(selector: Any, alpha: Any, stream: Any) -> tuple[int, int]:
    """Choose a vertex; see the module's table."""
    coordinate, sign = implementation("select", selector)(selector, alpha, stream)
    return coordinate, sign


def update_many(selector: Any, alpha: Any, changed: Any, old: Any, count: int) -> None:
    """Report changes; see the module's table."""
    implementation("update_many", selector)(selector, alpha, changed, old, count)


def rebuild(selector: Any, alpha: Any) -> None:
    """Build the index of `alpha` from scratch; see the module's table."""
    implementation("rebuild", selector)(selector, alpha)


def granularity(selector: Any) -> int:
    """Return which changes need an `update_many`; see the module's table."""
    return int(implementation("granularity", selector)(selector))


def reads_few(selector: Any) -> bool:
    """Return whether small gradients can be computed when they are read; see the module's table."""
    return bool(implementation("reads_few", selector)(selector))


@register_jitable
def reads_all(selector):
    """Answer of a structure that reads gradients as it likes."""
    return False


@register_jitable
def every_change(selector):
    """Granularity of a structure that wants to see every change of a magnitude."""
    return 0


@register_jitable
def no_change(selector):
    """Granularity of a structure that reads alpha afresh at every draw."""
    return NOTHING_REPORTED


@register_jitable
def keep_nothing(selector, alpha, changed, old, count):
    """Update of a structure that reads alpha afresh at every draw."""


@register_jitable
def rebuild_nothing(selector, alpha):
    """Rebuild of a structure that reads alpha afresh at every draw."""


def register(
    state_class: type,
    select_kernel: Callable[..., Any],
    update_many_kernel: Callable[..., Any] = keep_nothing,
    rebuild_kernel: Callable[..., Any] = rebuild_nothing,
    granularity_kernel: Callable[..., Any] = no_change,
    reads_few_kernel: Callable[..., Any] = reads_all,
) -> None:
    """Make a structure known to the solvers.

    `state_class` is a NamedTuple class at the top of an importable module. The kernels take the
    arguments of the functions above; without them the structure reads alpha at every draw.
    """
    implement(select, state_class, select_kernel)
    implement(update_many, state_class, update_many_kernel)
    implement(rebuild, state_class, rebuild_kernel)
    implement(granularity, state_class, granularity_kernel)
    implement(reads_few, state_class, reads_few_kernel)


def new_counters() -> NDArray[np.int64]:
    """Return the four counters at zero."""
    return np.zeros(4, dtype=np.int64)
