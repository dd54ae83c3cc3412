"""Weights of coordinates relative to a reference magnitude, and the sign of the vertex.

The signed exponential mechanism draws coordinate j with weight ``2 cosh(c alpha_j)``, and then the
vertex ``-radius e_j`` with probability ``1 / (1 + exp(-2 c alpha_j))``. Together this is the
exponential mechanism over the 2D signed vertices. The paper's listing uses the weights
``exp(scale |alpha_j|)`` and the true sign instead, which is not private.
"""

import math

import numpy as np
from numba.extending import register_jitable

from dplasso.privacy.randomness import bernoulli
from dplasso.runtime.compilation import kernel


@register_jitable
def descent_sign(gradient):
    """Return the sign of the descending vertex: minus that of the gradient, -1 for zero."""
    return -1 if gradient >= 0 else 1


@kernel
def cosh_factor(exponent, magnitude, signed):
    """Return ``1 + exp(-2 exponent magnitude)`` for signed weights, else 1.

    ``2 cosh(x) = exp(x) (1 + exp(-2x))`` keeps large arguments from overflowing.
    """
    if not signed:
        return 1.0
    return 1.0 + np.exp(-2.0 * exponent * np.float64(magnitude))


@kernel
def relative_weight(exponent, magnitude, reference, signed):
    """Return the weight of `magnitude` divided by ``exp(exponent * reference)``.

    The subtraction is exact in integers, so the error does not grow with the magnitudes.
    """
    shift = np.float64(magnitude - reference)
    return np.exp(exponent * shift) * cosh_factor(exponent, magnitude, signed)


@register_jitable
def draw_sign(stream, exponent, gradient, signed):
    """Draw the sign of the vertex at the chosen coordinate."""
    if not signed:
        return descent_sign(gradient)
    # Draw the less likely sign, whose small probability has full relative precision.
    odds = math.exp(-2.0 * exponent * np.float64(abs(gradient)))
    ascends = bernoulli(stream, odds / (1.0 + odds))
    return -descent_sign(gradient) if ascends else descent_sign(gradient)
