"""The contract of every selection structure.

A structure is a NamedTuple of arrays and numbers (its state) with kernels, connected by `register`.
The solvers' kernels call the generic functions below, and numba chooses the implementation by the
type of the state. Gradients are the fixed-point integers of `dplasso.frank_wolfe.gradient`.

=============  ==========================================================================
function       duty
=============  ==========================================================================
`select`       return ``(coordinate, sign)``: the vertex ``sign * radius * e_coordinate``
`update_many`  ``alpha`` has changed at ``changed[:count]``, each once, from ``old[:count]``
`rebuild`      discard the state and index `alpha` anew
=============  ==========================================================================

A state has a field `shift`: only changes of ``alpha_k >> shift`` need an `update_many`. The solvers
check this themselves and report the changes of a row together, because in the innermost loop a call
for each entry would cost a hundred times the update.

A state may have a property `reads_few`: whether `select` reads a gradient within ``2^shift`` of 0
only if it may draw it, so that such gradients can be computed when they are read. Callers in
plain Python may then pass `OnDemand` as `alpha`.

Every private structure draws from the same distribution, to within `SAMPLING_ERROR` in total
variation. The `counters` of a state depend on the data, so they are read only without privacy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

from dplasso.runtime.compilation import implement, implementation

# With this shift no change of a gradient is reported, not even of its sign.
NOTHING_REPORTED = 63
# Counters: candidates tried, coordinates moved in the structure, items popped from a heap, random
# variates drawn.
TRIES, MOVES, POPS, VARIATES = range(4)


class OnDemand:
    """Column gradients that `computed` returns when they are read; None if `stored` is correct."""

    def __init__(self, stored: NDArray[np.int64], computed: Callable[[int], int | None]) -> None:
        self.stored, self._computed = stored, computed

    def __getitem__(self, k: int) -> np.int64:
        gradient = self._computed(int(k))
        return np.int64(self.stored[k] if gradient is None else gradient)


def stored(alpha: Any) -> Any:
    """Return gradients as an array, for kernels that read only large ones."""
    return alpha.stored if isinstance(alpha, OnDemand) else alpha


@overload(stored)
def _array_itself(alpha):
    return lambda alpha: alpha


def select(selector: Any, alpha: Any, stream: Any) -> tuple[int, int]:
    """Choose a vertex; see the table of the module."""
    coordinate, sign = implementation("select", selector)(selector, alpha, stream)
    return coordinate, sign


def update_many(selector: Any, alpha: Any, changed: Any, old: Any, count: int) -> None:
    """Report changes; see the table of the module."""
    implementation("update_many", selector)(selector, alpha, changed, old, count)


def rebuild(selector: Any, alpha: Any) -> None:
    """Build the index of `alpha` from scratch; see the table of the module."""
    implementation("rebuild", selector)(selector, alpha)


@register_jitable
def keep_nothing(selector, alpha, changed, old, count):
    """`update_many` of a structure that reads all of alpha at every draw."""


@register_jitable
def rebuild_nothing(selector, alpha):
    """`rebuild` of a structure that reads all of alpha at every draw."""


def register(
    state_class: type,
    select_kernel: Callable[..., Any],
    update_many_kernel: Callable[..., Any] = keep_nothing,
    rebuild_kernel: Callable[..., Any] = rebuild_nothing,
) -> None:
    """Register a structure; the defaults are for one that reads all of alpha at every draw."""
    implement(select, state_class, select_kernel)
    implement(update_many, state_class, update_many_kernel)
    implement(rebuild, state_class, rebuild_kernel)


def new_counters() -> NDArray[np.int64]:
    """Return the four counters at zero."""
    return np.zeros(4, dtype=np.int64)
