"""Slow, obvious twins of the compiled kernels, and other oracles that tests compare with."""

import math
from itertools import combinations

import numpy as np
from scipy.special import expit

# --- data: crosses -----------------------------------------------------------------------


def crosses_by_name(names, order):
    """Return the set of crosses of one record whose columns, of different attributes, are named."""
    return {" & ".join(pick) for size in range(1, order + 1) for pick in combinations(names, size)}


# --- privacy: ChaCha20 --------------------------------------------------------------------


def _quarter_round(x, a, b, c, d):
    for target, source, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[target] = (x[target] + x[source]) % 2**32
        x[mixed] ^= x[target]
        x[mixed] = (x[mixed] << turn | x[mixed] >> (32 - turn)) % 2**32


def chacha20_block(key, counter, nonce):
    """Return the 64 bytes of RFC 8439 section 2.3 for a 32-byte key and a 12-byte nonce."""
    text = b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce
    start = [int.from_bytes(text[i : i + 4], "little") for i in range(0, 64, 4)]
    x = list(start)
    for _ in range(10):
        for column in range(4):
            _quarter_round(x, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            lane = [4 * row + (column + row) % 4 for row in range(4)]
            _quarter_round(x, *lane)
    return b"".join(((a + b) % 2**32).to_bytes(4, "little") for a, b in zip(x, start, strict=True))


# --- selection ----------------------------------------------------------------------------


def level_of(folded, shift, bits):
    """Return the bucket level of a gradient a >= 0, or of -a - 1, from the size of its number."""
    steps = folded // 2**shift
    octave = max(0, steps.bit_length() - bits - 1)
    return octave * 2**bits + steps // 2**octave


def first_largest(alpha):
    """Return the argmax of |alpha|, the first of equals."""
    return max(range(len(alpha)), key=lambda k: (abs(int(alpha[k])), -k))


def jump_walk(ticks, words):
    """Return the index A-ExpJ ends at, in unbounded integers; `words` come two per jump."""
    words = iter(words)
    chosen, passed, index = 0, ticks[0], 1
    while index < len(ticks):
        u = next(words) * 2**64 + next(words)
        while index < len(ticks) and u * (sum(ticks[: index + 1])) < passed * 2**128:
            index += 1
        if index < len(ticks):
            chosen, passed = index, sum(ticks[: index + 1])
            index += 1
    return chosen


# --- frank_wolfe: fixed point -------------------------------------------------------------


def clipped(value, bound):
    """Return an entry, clipped."""
    return bound if value > bound else -bound if value < -bound else float(value)


def with_constant(X, bound, intercept):
    """Return the dense rows as lists, the intercept's column of `bound` appended."""
    return [[float(x) for x in row] + [bound] * intercept for row in X]


def column_gradients(X, gradient, bound, *, intercept):
    """Return alpha in unbounded integers: the sum of every record's rounded share."""
    rows = with_constant(X, bound, intercept)
    alpha = [0] * (X.shape[1] + intercept)
    for row, q in zip(rows, gradient, strict=True):
        for k, x in enumerate(row):
            alpha[k] += round(float(q) * (2.0**32 / bound) * clipped(x, bound))
    return alpha


def weights_of(vertex, sign, n_coordinates):
    """Return the integer weights K as unbounded integers."""
    total = [0] * n_coordinates
    for step, (j, s) in enumerate(zip(vertex, sign, strict=True), start=1):
        total[int(j)] += int(s) * (step + 1)
    return total


def integer_margins(X, weights, bound, margin_unit, *, intercept):
    """Return the margins in unbounded integers, from the integer weights."""
    rows = with_constant(X, bound, intercept)
    return [
        sum(k * round(clipped(x, bound) * margin_unit) for k, x in zip(weights, row, strict=True))
        for row in rows
    ]


# --- frank_wolfe: the calendar ------------------------------------------------------------


def sigmoid(margin):
    """Return sigma(margin) of a number >= 0."""
    return 1.0 / (1.0 + math.exp(-margin))


def first_outside(full_margin, lowest, highest, step, n_steps):
    """Return the first later step at which a shrinking margin is outside, by looking at each."""
    for later in range(step + 1, n_steps + 1):
        if not lowest <= full_margin * (2.0 / ((later + 1.0) * (later + 2.0))) <= highest:
            return later
    return n_steps + 1


def refreshed(margins, gradient, labels, tolerance):
    """Return the record gradients after a step: new ones where the old are too far off."""
    true = [sigma(margin) - label for margin, label in zip(margins, labels, strict=True)]
    return [
        new if abs(new - old) > tolerance else old for new, old in zip(true, gradient, strict=True)
    ]


def sigma(margin):
    """Return sigma(margin)."""
    return sigmoid(margin) if margin >= 0 else 1.0 - sigmoid(-margin)


class ListCalendar:
    """Rows by due step, as lists; the row scheduled last comes first."""

    def __init__(self, n_rows, n_steps):
        self.rows = {step: [] for step in range(n_steps + 1)}

    def schedule(self, row, step):
        self.unschedule(row)
        if step in self.rows:
            self.rows[step].insert(0, row)

    def unschedule(self, row):
        for rows in self.rows.values():
            if row in rows:
                rows.remove(row)


# --- frank_wolfe: Algorithm 1 in floating point -------------------------------------------


def frank_wolfe(X, y, radius, n_steps, *, transcript=None):
    """Run textbook Frank-Wolfe on dense rows; return a dict of arrays, one entry per step.

    With `transcript` (pairs of coordinate and sign) it takes those vertices; `steepest` is the
    largest |gradient| and `gradient` the one at the vertex taken, both of the mean loss.
    """
    w = np.zeros(X.shape[1])
    course = {"vertex": [], "sign": [], "objective": [], "gap": [], "steepest": [], "gradient": []}
    for step in range(1, n_steps + 1):
        margins = X @ w
        gradient = X.T @ (expit(margins) - y) / len(y)
        j = int(np.argmax(np.abs(gradient)))
        s = -1 if gradient[j] >= 0 else 1
        if transcript is not None:
            j, s = transcript[step - 1]
        course["vertex"].append(j)
        course["sign"].append(s)
        course["objective"].append(np.mean(np.logaddexp(0.0, margins) - y * margins))
        course["gap"].append(gradient @ w - s * radius * gradient[j])
        course["steepest"].append(np.abs(gradient).max())
        course["gradient"].append(gradient[j])
        eta = 2.0 / (step + 2.0)
        w *= 1.0 - eta
        w[j] += eta * s * radius
    return {name: np.array(values) for name, values in course.items()} | {"w": w}
