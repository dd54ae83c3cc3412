"""Compiled loops around the contract's three functions, and the check of what they draw."""

import numpy as np
from numba import njit
from scipy.stats import binom, chi2

from dplasso.selection.contract import rebuild, select, update

# Chance that a right implementation fails one statistical test, were its seed drawn afresh.
ALARM = 1e-6
# Cells expected to hold fewer draws than this are pooled.
_SMALL_CELL = 20.0


@njit(cache=True)
def fill(selector, alpha):
    rebuild(selector, alpha)


@njit(cache=True)
def draw(selector, alpha, stream, count):
    """Return `count` vertices and signs drawn from the same gradients."""
    vertex = np.empty(count, np.int64)
    sign = np.empty(count, np.int8)
    for i in range(count):
        vertex[i], sign[i] = select(selector, alpha, stream)
    return vertex, sign


@njit(cache=True)
def change(selector, alpha, coordinates, values):
    """Set gradients one by one, telling the structure of each."""
    for i in range(coordinates.size):
        k = coordinates[i]
        old = alpha[k]
        alpha[k] = values[i]
        update(selector, alpha, k, old, values[i])


def count_vertices(n_columns, vertex, sign):
    """Return an array (D, 2): how often -e_j (column 0) and +e_j (column 1) came."""
    counts = np.zeros((n_columns, 2), dtype=np.int64)
    np.add.at(counts, (vertex, (sign + 1) // 2), 1)
    return counts


def p_value(counts, probabilities):
    """Test counts against the closed form: chi-square, small cells pooled, exact if still small."""
    counts, probabilities = np.ravel(counts), np.ravel(probabilities)
    draws = counts.sum()
    small = draws * probabilities < _SMALL_CELL
    pooled, chance = counts[small].sum(), probabilities[small].sum()
    counts, expected = counts[~small], draws * probabilities[~small]
    exact = 1.0
    if draws * chance >= _SMALL_CELL:
        counts, expected = np.append(counts, pooled), np.append(expected, draws * chance)
    elif small.any():
        tails = binom.cdf(pooled, draws, chance), binom.sf(pooled - 1, draws, chance)
        exact = min(1.0, 2.0 * min(tails))
        expected = expected * (counts.sum() / expected.sum())
    if counts.size < 2:
        return exact
    approximate = chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)
    return min(1.0, 2.0 * min(exact, float(approximate)))
