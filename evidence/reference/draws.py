"""The closed form of every selection, loops that draw, and the check of what they draw."""

from decimal import Decimal, localcontext

import numpy as np
from numba import njit
from scipy.stats import binom, chi2

from dplasso.privacy.randomness import random_stream
from dplasso.selection.selector import rebuild, select, update_many

# Chance that a right implementation fails one statistical test, were its seed drawn afresh.
ALARM = 1e-6
# Cells expected to hold fewer draws than this are merged.
_SMALL_CELL = 20.0


@njit(cache=True)
def fill(selector, alpha):
    rebuild(selector, alpha)


def draw(selector, alpha, seed, count):
    """Return `count` vertices and signs drawn from the same gradients."""
    return _drawn(selector, alpha, random_stream(seed), count)


@njit(cache=True)
def _drawn(selector, alpha, stream, count):
    vertex = np.empty(count, np.int64)
    sign = np.empty(count, np.int8)
    for i in range(count):
        vertex[i], sign[i] = select(selector, alpha, stream)
    return vertex, sign


@njit(cache=True)
def change(selector, alpha, coordinates, values, together=1):
    """Set gradients, telling the structure of so many changes at a time, as the solvers do."""
    report_shift = selector.shift
    changed, before = np.empty(together, np.int64), np.empty(together, np.int64)
    count = 0
    for i in range(coordinates.size):
        k, new = coordinates[i], values[i]
        old = alpha[k]
        alpha[k] = new
        if (old ^ new) >> report_shift:
            changed[count], before[count] = k, old
            count += 1
        if count == together:
            update_many(selector, alpha, changed, before, count)
            count = 0
    update_many(selector, alpha, changed, before, count)


def count_vertices(n_columns, vertex, sign):
    """Return an array (D, 2): how often -e_j (column 0) and +e_j (column 1) came."""
    counts = np.zeros((n_columns, 2), dtype=np.int64)
    np.add.at(counts, (vertex, (sign + 1) // 2), 1)
    return counts


def p_value(counts, probabilities):
    """Test counts against the closed form: chi-square, small cells merged, exact if still small."""
    counts, probabilities = np.ravel(counts), np.ravel(probabilities)
    order = np.argsort(-probabilities)
    counts, expected = counts[order], counts.sum() * probabilities[order]
    # Likeliest first; a cell too small to stand alone joins the next ones.
    starts, held = [0], 0.0
    for i, value in enumerate(expected):
        if held >= _SMALL_CELL:
            starts.append(i)
            held = 0.0
        held += value
    observed = np.add.reduceat(counts, starts)
    expected = np.add.reduceat(expected, starts)
    exact = 1.0
    if held < _SMALL_CELL:
        draws, rare = observed.sum(), observed[-1]
        chance = min(1.0, expected[-1] / draws)
        tails = binom.cdf(rare, draws, chance), binom.sf(rare - 1, draws, chance)
        exact = min(1.0, 2.0 * min(tails))
        observed, expected = observed[:-1], expected[:-1]
        expected = expected * (observed.sum() / expected.sum()) if observed.size else expected
    if observed.size < 2:
        return exact
    approximate = chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1)
    return min(1.0, 2.0 * min(exact, float(approximate)))


def vertex_weights(alpha, exponent, *, signed=True):
    """Return Decimals [(weight of -e_j, weight of +e_j), ...], to 60 digits, largest near 1."""
    with localcontext() as context:
        context.prec = 60
        context.Emin, context.Emax = -(10**17), 10**17
        largest = max(abs(int(a)) for a in alpha)
        scale = Decimal(exponent)
        pairs = []
        for a in map(int, alpha):
            if signed:
                pairs.append(tuple((scale * (s * a - largest)).exp() for s in (1, -1)))
            else:
                weight = (scale * (abs(a) - largest)).exp()
                pairs.append((weight, Decimal(0)) if a >= 0 else (Decimal(0), weight))
        return pairs


def vertex_probabilities(alpha, exponent, *, signed=True):
    """Return the closed form of every selection as an array (D, 2); see `vertex_weights`."""
    pairs = vertex_weights(alpha, exponent, signed=signed)
    total = sum(a + b for a, b in pairs)
    return np.array([[float(a / total), float(b / total)] for a, b in pairs])
