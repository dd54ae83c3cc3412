"""The contract every loss fulfils (docs/architecture.md).

A loss is a NamedTuple of public numbers, in a file of its own, that says

=================  ========================================================================
`residual_bound`   C: no residual (of several, no vector of them) is larger
`offset`           what it adds to every margin: a number, or one for each margin
`n_outputs`        margins of a record
`n_labels`         labels of a record: 1, unless each margin is of a label of its own
`two_targets`      of one margin: whether targets are 0 and 1 and no others
`curvature`        a bound on its second derivative, and so on the steps that are stable
`class_parts`      what part of each record counts for each class but the first
`link`             what margins say: probabilities of the classes, or mean targets
`link_terms`       C of the link, and whether it bounds the length of all residuals together
`starting_offset`  the offset that minimises it without columns; for the LASSO alone
=================  ========================================================================

and has kernels for the functions below, tied to it by `register`: `gradient` or `residual_vector`,
and the others for some solvers.

What the mechanisms take for the sensitivity of a record is `residual_bound`, so a kernel that let a
residual out of it would break the guarantee. Targets are float64: 0 or 1, numbers of classes, or
numbers in [-1, 1]. Weights of records are not the loss's: see `dplasso.losses.targets`.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

from dplasso.runtime.dispatch import implement, implementation


def gradient(loss: Any, margin: float, target: float) -> float:
    """Return the residual q of a record with one margin; ``|q| <= residual_bound``."""
    return float(implementation("gradient", loss)(loss, margin, target))


def residual_vector(loss: Any, margins: Any, target: float, residuals: Any) -> None:
    """Set `residuals` to those of a record, of one margin or several."""
    implementation("residual_vector", loss)(loss, margins, target, residuals)


def second_derivative(loss: Any, margin: float, target: float) -> float:
    """Return how fast the residual grows with the margin, from 0 to `curvature`; 0 if clipped."""
    return float(implementation("second_derivative", loss)(loss, margin, target))


def value(loss: Any, margin: float, target: float) -> float:
    """Return the loss of a record: for the history of Algorithm 1."""
    return float(implementation("value", loss)(loss, margin, target))


def margins_within(loss: Any, q: float, target: float, tolerance: float) -> tuple[Any, Any]:
    """Return the lowest and the highest margin whose residual is within a tolerance of q.

    Rounded inwards to float32; exchanged where no margin is. For Algorithm 2.
    """
    lowest, highest = implementation("margins_within", loss)(loss, q, target, tolerance)
    return lowest, highest


def tangent_offset(loss: Any, q: float, target: float) -> float:
    """Return ``value - q * margin`` at any margin with residual q: for Algorithm 2's history."""
    return float(implementation("tangent_offset", loss)(loss, q, target))


def without_offset(loss: Any) -> Any:
    """Return the loss of margins that hold the offset already."""
    return loss._replace(offset=0.0 * loss.offset) if "offset" in loss._fields else loss


@njit(cache=True, nogil=True)
def one_residual(loss, margins, target, residuals):
    """Do what `residual_vector` does, for a loss of one margin."""
    residuals[0] = gradient(loss, margins[0], target)


_CONTRACT = {
    function.__name__: function
    for function in (
        *(gradient, residual_vector, second_derivative),
        *(value, margins_within, tangent_offset),
    )
}


def register(loss_class: type, **kernels: Callable[..., Any]) -> None:
    """Make known to the solvers the kernels of a loss, by the names and with the arguments above.

    With one margin, `residual_vector` follows from `gradient`.
    """
    if "gradient" in kernels:
        kernels = {"residual_vector": one_residual} | kernels
    for name, kernel in kernels.items():
        implement(_CONTRACT[name], loss_class, kernel)
