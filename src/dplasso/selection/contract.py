"""The contract every selection structure fulfils.

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
from the same distribution, to within `DRAW_ERROR` in total variation.
"""

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import overload

# The granularity at which no change of a gradient is reported, not even of its sign.
NOTHING_REPORTED = 63
_ONLY_COMPILED = "selection runs inside compiled kernels; register a structure and pass its state"


def select(selector: Any, alpha: Any, stream: Any) -> tuple[int, int]:
    """Choose a vertex; see the module's table."""
    raise NotImplementedError(_ONLY_COMPILED)


def update(selector: Any, alpha: Any, k: int, old: int, new: int) -> None:
    """Take note that ``alpha[k]`` went from `old` to `new`; see the module's table."""
    raise NotImplementedError(_ONLY_COMPILED)


def update_many(selector: Any, alpha: Any, changed: Any, old: Any, count: int) -> None:
    """Take note of several changes; see the module's table."""
    raise NotImplementedError(_ONLY_COMPILED)


def rebuild(selector: Any, alpha: Any) -> None:
    """Index `alpha` from nothing; see the module's table."""
    raise NotImplementedError(_ONLY_COMPILED)


def granularity(selector: Any) -> int:
    """Return which changes need an `update`; see the module's table."""
    raise NotImplementedError(_ONLY_COMPILED)


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

    Parameters
    ----------
    state_class : type
        A NamedTuple class, defined at the top of an importable module.
    select_kernel, update_kernel, rebuild_kernel, granularity_kernel : numba functions
        With the arguments of `select`, `update`, `rebuild` and `granularity`.
    update_many_kernel : numba function, optional
        With the arguments of `update_many`; by default `update_kernel` for each change.
    """

    def handles(selector: Any) -> bool:
        return isinstance(selector, types.BaseNamedTuple) and (
            getattr(selector, "instance_class", None) is state_class
        )

    @overload(select, strict=False)
    def _select(selector: Any, alpha: Any, stream: Any) -> Any:
        if not handles(selector):
            return None
        return lambda selector, alpha, stream: select_kernel(selector, alpha, stream)

    @overload(update, strict=False)
    def _update(selector: Any, alpha: Any, k: Any, old: Any, new: Any) -> Any:
        if not handles(selector):
            return None
        return lambda selector, alpha, k, old, new: update_kernel(selector, alpha, k, old, new)

    @overload(update_many, strict=False)
    def _update_many(selector: Any, alpha: Any, changed: Any, old: Any, count: Any) -> Any:
        if not handles(selector):
            return None
        if update_many_kernel is not None:
            return lambda selector, alpha, changed, old, count: update_many_kernel(
                selector, alpha, changed, old, count
            )

        def one_by_one(selector, alpha, changed, old, count):
            for m in range(count):
                update_kernel(selector, alpha, changed[m], old[m], alpha[changed[m]])

        return one_by_one

    @overload(rebuild, strict=False)
    def _rebuild(selector: Any, alpha: Any) -> Any:
        if not handles(selector):
            return None
        return lambda selector, alpha: rebuild_kernel(selector, alpha)

    @overload(granularity, strict=False)
    def _granularity(selector: Any) -> Any:
        if not handles(selector):
            return None
        return lambda selector: granularity_kernel(selector)
