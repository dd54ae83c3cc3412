"""The contract that every selection structure fulfils.

A structure is a NamedTuple of arrays and numbers (its state) plus three kernels, tied together by
`register`. The solvers' kernels call the three generic functions below; numba picks the
implementation by the type of the state, which keeps one compiled loop per structure on disk.

Gradients are the fixed-point integers of `dplasso.frank_wolfe.gradient`. Places in ``alpha`` are
internal numbers, coordinates drawn are original ones (`dplasso.matrix.numbering`).

=============  ==========================================================================
function       duty
=============  ==========================================================================
`select`       return ``(coordinate, sign)``: the vertex ``sign * radius * e_coordinate``
`update`       ``alpha[k]`` has just changed from `old` to `new`
`update_many`  ``changed[:count]`` have just changed, each once, from ``old[:count]``
`rebuild`      forget everything and index `alpha` afresh
`granularity`  return g: only changes of ``alpha_k >> g`` need an `update`; 63 means none
=============  ==========================================================================

The solvers make the comparison of `granularity` themselves and report a row's changes together: in
the innermost loop a call per touched entry would cost a hundred times the entry's own update.

A structure may read `alpha` in `select`; it must not write to it. Every private structure draws
from the same distribution, to within `SAMPLING_ERROR` in total variation.
"""

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import overload

from dplasso.runtime.dispatch import implementation, is_state, remember

# The granularity at which no change of a gradient is reported, not even of its sign.
NOTHING_REPORTED = 63


def select(selector: Any, alpha: Any, stream: Any) -> tuple[int, int]:
    """Choose a vertex; see the module's table."""
    coordinate, sign = implementation("select", selector)(selector, alpha, stream)
    return coordinate, sign


def update(selector: Any, alpha: Any, k: int, old: int, new: int) -> None:
    """Report that ``alpha[k]`` went from `old` to `new`; see the module's table."""
    implementation("update", selector)(selector, alpha, k, old, new)


def update_many(selector: Any, alpha: Any, changed: Any, old: Any, count: int) -> None:
    """Report several changes; see the module's table."""
    implementation("update_many", selector)(selector, alpha, changed, old, count)


def rebuild(selector: Any, alpha: Any) -> None:
    """Build the index of `alpha` from scratch; see the module's table."""
    implementation("rebuild", selector)(selector, alpha)


def granularity(selector: Any) -> int:
    """Return which changes need an `update`; see the module's table."""
    return int(implementation("granularity", selector)(selector))


@njit(cache=True, nogil=True)
def every_change(selector):
    """Granularity of a structure that wants to see every change of a magnitude."""
    return 0


@njit(cache=True, nogil=True)
def no_change(selector):
    """Granularity of a structure that reads alpha afresh at every draw."""
    return NOTHING_REPORTED


def register(
    state_class: type,
    select_kernel: Callable[..., Any],
    update_kernel: Callable[..., Any],
    rebuild_kernel: Callable[..., Any],
    granularity_kernel: Callable[..., Any] = every_change,
    update_many_kernel: Callable[..., Any] | None = None,
) -> None:
    """Make a structure known to the solvers.

    `state_class`: a NamedTuple class, defined at the top of an importable module.
    `select_kernel`, `update_kernel`, `rebuild_kernel`, `granularity_kernel`: with the arguments of
    `select`, `update`, `rebuild` and `granularity`.
    `update_many_kernel`: with the arguments of `update_many`; by default `update_kernel` for each
    change.
    """

    def one_by_one(selector: Any, alpha: Any, changed: Any, old: Any, count: Any) -> None:
        for m in range(count):
            update_kernel(selector, alpha, changed[m], old[m], alpha[changed[m]])

    remember("select", state_class, select_kernel)
    remember("update", state_class, update_kernel)
    remember("update_many", state_class, update_many_kernel or one_by_one)
    remember("rebuild", state_class, rebuild_kernel)
    remember("granularity", state_class, granularity_kernel)

    @overload(select, strict=False)
    def _select(selector: Any, alpha: Any, stream: Any) -> Any:
        if not is_state(selector, state_class):
            return None
        return lambda selector, alpha, stream: select_kernel(selector, alpha, stream)

    @overload(update, strict=False)
    def _update(selector: Any, alpha: Any, k: Any, old: Any, new: Any) -> Any:
        if not is_state(selector, state_class):
            return None
        return lambda selector, alpha, k, old, new: update_kernel(selector, alpha, k, old, new)

    @overload(update_many, strict=False)
    def _update_many(selector: Any, alpha: Any, changed: Any, old: Any, count: Any) -> Any:
        if not is_state(selector, state_class):
            return None
        if update_many_kernel is not None:
            return lambda selector, alpha, changed, old, count: update_many_kernel(
                selector, alpha, changed, old, count
            )

        return one_by_one

    @overload(rebuild, strict=False)
    def _rebuild(selector: Any, alpha: Any) -> Any:
        if not is_state(selector, state_class):
            return None
        return lambda selector, alpha: rebuild_kernel(selector, alpha)

    @overload(granularity, strict=False)
    def _granularity(selector: Any) -> Any:
        if not is_state(selector, state_class):
            return None
        return lambda selector: granularity_kernel(selector)
