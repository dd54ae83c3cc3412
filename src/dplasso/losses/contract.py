"""The contract every loss fulfils (docs/architecture.md).

A loss is a NamedTuple of public numbers with a field `residual_bound` (C), tied to five kernels by
`register`. What the mechanisms take for the sensitivity of a record is that same field, so a kernel
that let a residual out of [-C, C] would break the guarantee. `curvature` bounds the loss's second
derivative, and so the steps that are stable; `n_outputs` is how many margins a record has.

================  =======================================================================
function          duty
================  =======================================================================
`gradient`        the residual q at a margin; ``|q| <= loss.residual_bound``
`margins_within`  the lowest and the highest margin whose residual is within a tolerance of q,
                  rounded inwards to float32; exchanged where nothing is inside
`value`           the loss at a margin
`tangent_offset`  ``value - q * margin`` at any margin with residual q
`probability`     the mean target that a margin stands for: the inverse of the loss's minimiser
================  =======================================================================

A loss of several margins, one for each class, has one kernel, tied to it by `register_vector`:
`residual_vector` fills in the residuals at some margins, whose L2 norm is at most C.
"""

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import overload

from dplasso.runtime.dispatch import implementation, is_state, remember


def gradient(loss: Any, margin: float, target: float) -> float:
    """Return the residual of a record; see the module's table."""
    return float(implementation("gradient", loss)(loss, margin, target))


def margins_within(loss: Any, q: float, target: float, tolerance: float) -> tuple[Any, Any]:
    """Return the margins with about the same residual; see the module's table."""
    lowest, highest = implementation("margins_within", loss)(loss, q, target, tolerance)
    return lowest, highest


def value(loss: Any, margin: float, target: float) -> float:
    """Return the loss of a record; see the module's table."""
    return float(implementation("value", loss)(loss, margin, target))


def tangent_offset(loss: Any, q: float, target: float) -> float:
    """Return where the tangent of slope q meets margin zero; see the module's table."""
    return float(implementation("tangent_offset", loss)(loss, q, target))


def probability(loss: Any, margin: float) -> float:
    """Return what a margin says of the target; see the module's table."""
    return float(implementation("probability", loss)(loss, margin))


def residual_vector(loss: Any, margins: Any, target: int, residuals: Any) -> None:
    """Set `residuals` to those of a record with several margins; see the module."""
    implementation("residual_vector", loss)(loss, margins, target, residuals)


@njit(cache=True, nogil=True)
def one_residual(loss, margins, target, residuals):
    """Do what `residual_vector` does, for a loss of one margin."""
    residuals[0] = gradient(loss, margins[0], target)


def register_vector(loss_class: type, residual_vector_kernel: Callable[..., Any]) -> None:
    """Make a loss of several margins known to the solvers.

    `loss_class`: a NamedTuple class with a field `residual_bound`, defined at the top of an
    importable module.
    `residual_vector_kernel`: a numba function with the arguments of `residual_vector`.
    """
    remember("residual_vector", loss_class, residual_vector_kernel)

    @overload(residual_vector, strict=False)
    def _residual_vector(loss: Any, margins: Any, target: Any, residuals: Any) -> Any:
        if not is_state(loss, loss_class):
            return None
        return lambda loss, margins, target, residuals: residual_vector_kernel(
            loss, margins, target, residuals
        )


def register(
    loss_class: type,
    gradient_kernel: Callable[..., Any],
    margins_within_kernel: Callable[..., Any],
    value_kernel: Callable[..., Any],
    tangent_offset_kernel: Callable[..., Any],
    probability_kernel: Callable[..., Any],
) -> None:
    """Make a loss known to the solvers.

    `loss_class`: a NamedTuple class with a field `residual_bound`, defined at the top of an
    importable module.
    `gradient_kernel`, `margins_within_kernel`, `value_kernel`, `tangent_offset_kernel`,
    `probability_kernel`: numba functions with the arguments of the functions above.
    """
    remember("gradient", loss_class, gradient_kernel)
    remember("margins_within", loss_class, margins_within_kernel)
    remember("value", loss_class, value_kernel)
    remember("tangent_offset", loss_class, tangent_offset_kernel)
    remember("probability", loss_class, probability_kernel)

    @overload(gradient, strict=False)
    def _gradient(loss: Any, margin: Any, target: Any) -> Any:
        if not is_state(loss, loss_class):
            return None
        return lambda loss, margin, target: gradient_kernel(loss, margin, target)

    @overload(margins_within, strict=False)
    def _margins_within(loss: Any, q: Any, target: Any, tolerance: Any) -> Any:
        if not is_state(loss, loss_class):
            return None
        return lambda loss, q, target, tolerance: margins_within_kernel(loss, q, target, tolerance)

    @overload(value, strict=False)
    def _value(loss: Any, margin: Any, target: Any) -> Any:
        if not is_state(loss, loss_class):
            return None
        return lambda loss, margin, target: value_kernel(loss, margin, target)

    @overload(tangent_offset, strict=False)
    def _tangent_offset(loss: Any, q: Any, target: Any) -> Any:
        if not is_state(loss, loss_class):
            return None
        return lambda loss, q, target: tangent_offset_kernel(loss, q, target)

    @overload(probability, strict=False)
    def _probability(loss: Any, margin: Any) -> Any:
        if not is_state(loss, loss_class):
            return None
        return lambda loss, margin: probability_kernel(loss, margin)
