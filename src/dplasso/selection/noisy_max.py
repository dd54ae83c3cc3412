"""Noisy maximum: add noise to every score, take the best. O(D) per draw; no noise for the argmax.

`gumbel` is the exponential mechanism over the 2D signed vertices, drawn literally: Gumbel noise on
each vertex's score, then the maximum. It is the reference the fast structures are tested against.
`laplace` is line 8 of the paper's Algorithm 1 (arXiv 2310.19978) with its argmin read as argmax,
followed by the true sign; it is not differentially private.

The Gumbel maximum is taken as an exponential race: the maximum of ``score + Gumbel`` is the minimum
of ``log(E) - score`` for standard exponential E, and E keeps its precision where winners live, near
zero. Scores are taken relative to the largest in integers, so only candidates too far behind to
matter lose digits.

`argmax` adds none: brute force, and the reference for the structures without privacy.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.privacy.randomness import exponential, random_word
from dplasso.selection.contract import VARIATES, register
from dplasso.selection.log_weights import descent_sign


class GumbelState(NamedTuple):
    """State of the noisy maximum with Gumbel noise.

    `exponent`: log-weight per fixed-point unit of alpha.
    """

    exponent: float
    counters: NDArray[np.int64]


class LaplaceState(NamedTuple):
    """State of the noisy maximum with Laplace noise (`mechanism="paper"`).

    `noise_scale`: scale of the noise in fixed-point units of alpha.
    """

    noise_scale: float
    counters: NDArray[np.int64]


@njit(cache=True, nogil=True)
def largest_magnitude(alpha):
    """Return max |alpha|, in units."""
    largest = np.int64(0)
    for k in range(alpha.size):
        largest = max(largest, abs(alpha[k]))
    return largest


@njit(cache=True, nogil=True)
def behind(largest, score):
    """Return ``largest - score >= 0`` as a double; exact until the rounding to 53 bits."""
    # The difference can reach 2^64: wrap around in unsigned words, where it is exact.
    return np.float64(np.uint64(largest) - np.uint64(score))


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def select_laplace(selector, alpha, stream):
    """Return the coordinate of largest noisy magnitude and the true descending sign."""
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
    """State of the exact argmax: nothing of its own."""

    counters: NDArray[np.int64]


@njit(cache=True, nogil=True)
def select_argmax(selector, alpha, stream):
    """Return the first coordinate of largest magnitude and the descending sign."""
    best = np.int64(0)
    largest = np.int64(-1)
    for j in range(alpha.size):
        magnitude = abs(alpha[j])
        if magnitude > largest:
            largest = magnitude
            best = j
    return best, descent_sign(alpha[best])


register(ArgmaxState, select_argmax)
