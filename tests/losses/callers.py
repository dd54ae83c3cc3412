"""Calls of the contract's functions from compiled code."""

from numba import njit

from dplasso.losses.contract import (
    gradient,
    margins_within,
    probability,
    tangent_offset,
    value,
)


@njit
def call_all(loss, margin, target, q, tolerance):
    """Return what each function gives, picked by the type of the loss."""
    return (
        gradient(loss, margin, target),
        margins_within(loss, q, target, tolerance),
        value(loss, margin, target),
        tangent_offset(loss, q, target),
        probability(loss, margin),
    )
