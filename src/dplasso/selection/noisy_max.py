"""Noisy maximum: add noise to every score and choose the largest, in O(D) per draw.

`gumbel` adds Gumbel noise to the score of each of the 2D signed vertices, which is the exponential
mechanism. Tests compare the fast structures with it. `laplace` is line 8 of the paper's Algorithm 1
(arXiv 2310.19978), with argmax instead of argmin, followed by the true sign. It is not
differentially private.

The Gumbel maximum is computed as an exponential race: the maximum of ``score + Gumbel`` is the
minimum of ``log(E) - score`` for standard exponential E. Winners have E near zero, where it has
full precision.

`argmax` adds no noise. Tests compare the structures without privacy with it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.randomness import exponential, random_word
from dplasso.runtime.compilation import kernel
from dplasso.selection.log_weights import descent_sign
from dplasso.selection.selector import NOTHING_REPORTED, VARIATES, register


class GumbelState(NamedTuple):
    """State of the noisy maximum with Gumbel noise.

    `exponent`: log-weight per fixed-point unit of alpha.
    """

    exponent: float
    counters: NDArray[np.int64]
    shift: int = NOTHING_REPORTED


class LaplaceState(NamedTuple):
    """State of the noisy maximum with Laplace noise (`mechanism="paper"`).

    `noise_scale`: scale of the noise in fixed-point units of alpha.
    """

    noise_scale: float
    counters: NDArray[np.int64]
    shift: int = NOTHING_REPORTED


@kernel
def largest_magnitude(alpha):
    """Return max |alpha| in fixed-point units."""
    largest = np.int64(0)
    for k in range(alpha.size):
        largest = max(largest, abs(alpha[k]))
    return largest


@kernel
def behind(largest, score):
    """Return ``largest - score >= 0``, rounded to a double."""
    # The difference can reach 2^64; unsigned subtraction wraps around and is exact.
    return np.float64(np.uint64(largest) - np.uint64(score))


@kernel
def select_gumbel(selector, alpha, stream):
    """Draw a signed vertex with probability proportional to ``exp(-sign * exponent * alpha)``."""
    exponent = selector.exponent
    largest = largest_magnitude(alpha)
    best = np.int64(0)
    best_sign = -1
    best_key = np.inf
    for j in range(alpha.size):
        gradient = alpha[j]
        key = np.log(exponential(stream)) + exponent * behind(largest, gradient)
        if key < best_key:
            best, best_sign, best_key = j, -1, key
        key = np.log(exponential(stream)) + exponent * behind(largest, -gradient)
        if key < best_key:
            best, best_sign, best_key = j, 1, key
    selector.counters[VARIATES] += 2 * alpha.size
    return best, best_sign


@kernel
def select_laplace(selector, alpha, stream):
    """Return the coordinate with the largest noisy magnitude, and the true descent sign."""
    best = np.int64(0)
    best_key = -1.0
    for j in range(alpha.size):
        noise = selector.noise_scale * exponential(stream)
        if random_word(stream) & np.uint64(1):
            noise = -noise
        key = abs(np.float64(alpha[j]) + noise)
        if key > best_key:
            best, best_key = j, key
    selector.counters[VARIATES] += alpha.size
    return best, descent_sign(alpha[best])


register(GumbelState, select_gumbel)
register(LaplaceState, select_laplace)


class ArgmaxState(NamedTuple):
    """State of the exact argmax, which has only counters."""

    counters: NDArray[np.int64]
    shift: int = NOTHING_REPORTED


@kernel
def select_argmax(selector, alpha, stream):
    """Return the first coordinate with the largest magnitude, and the descent sign."""
    best = np.int64(0)
    largest = np.int64(-1)
    for j in range(alpha.size):
        magnitude = abs(alpha[j])
        if magnitude > largest:
            largest = magnitude
            best = j
    return best, descent_sign(alpha[best])


register(ArgmaxState, select_argmax)
