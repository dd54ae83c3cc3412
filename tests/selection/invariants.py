"""Slow versions of the structures' kernels, and checks of what private ones hold and imply."""

from decimal import Decimal, localcontext

import numpy as np
from evidence.audit.implied import chances_of_big_little, chances_of_bucket
from evidence.reference.draws import draw, fill, vertex_weights

from dplasso.selection.big_little import BigLittleState
from dplasso.selection.bucket import BucketState


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


class BrokenInvariantError(AssertionError):
    """A structure that does not fit its gradients, or fits of neighbours that differ by more."""


def demand(condition, what):
    if not condition:
        raise BrokenInvariantError(what)


def check(selector, alpha):
    """Raise BrokenInvariantError where the structure contradicts `alpha`."""
    if isinstance(selector, BucketState):
        check_bucket(selector, alpha)
    elif isinstance(selector, BigLittleState):
        check_big_little(selector, alpha)


def check_bucket(selector, alpha):
    order, position, start = selector.order, selector.position, selector.start
    demand(sorted(order) == list(range(alpha.size)), "every coordinate stands in one place")
    demand((order[position] == np.arange(alpha.size)).all(), "position is the inverse of order")
    demand(start[0] == 0 and start[-1] == alpha.size, "segments cover the order")
    demand((np.diff(start) >= 0).all(), "segments do not overlap")
    level = np.array(
        [level_of(max(int(a), -int(a) - 1), selector.shift, selector.bits) for a in alpha]
    )
    place = np.asarray(position, dtype=np.int64)
    demand((start[level] <= place).all(), "no coordinate stands below its level")
    demand((place < start[level + 1]).all(), "no coordinate stands above its level")
    demand(selector.top[0] >= level.max(), "no member above the top")


def check_big_little(selector, alpha):
    waiting = set(selector.stale[1 : 1 + selector.stale[0]].tolist())
    demand(len(waiting) == selector.stale[0], "no group waits twice")
    for group, total in enumerate(selector.total.tolist()):
        demand((group in waiting) == (total == 0), "the groups that wait are marked")
        if total == 0:
            continue
        members = range(group * selector.size, min((group + 1) * selector.size, alpha.size))
        reference = int(selector.reference[group])
        weights = []
        for k in members:
            log_weight = selector.exponent * float(abs(int(alpha[k])) - reference)
            other = np.exp(-2.0 * selector.exponent * abs(float(alpha[k]))) * selector.signed
            weights.append(selector.scale * np.exp(log_weight) * (1.0 + other))
        ticks = [int(selector.ticks[k]) for k in members]
        demand(total == sum(ticks), "a group's sum is the sum of its members")
        demand(total < 2**62 // selector.total.size, "sums leave room for each other")
        for weight, tick in zip(weights, ticks, strict=True):
            slack = 1e-9 * weight
            demand(weight - slack <= tick <= weight + slack + 1.0, "ticks are rounded up weights")
        # Rounding up costs each member at most a tick; beyond that the sum is the true one.
        error = abs(total - sum(weights) - 0.5 * len(ticks))
        demand(error <= 0.5 * len(ticks) + 1e-9 * total, "a group's sum fits its weights")


IMPLIED = ("bucket", "big-little")
_CHANCES = {BucketState: chances_of_bucket, BigLittleState: chances_of_big_little}


def implied(selector, alpha):
    """Return the coordinates' chances that the numbers in a structure imply after a draw."""
    fill(selector, alpha)
    draw(selector, alpha, 0, 1)
    return _CHANCES[type(selector)](selector, alpha)


def total_variation(chances, alpha, exponent, *, signed=True):
    """Return the distance from the closed form, and the smallest of the ratios to it."""
    with localcontext() as context:
        context.prec = 60
        weights = [a + b for a, b in vertex_weights(alpha, exponent, signed=signed)]
        chances = [Decimal(c.numerator) / Decimal(c.denominator) for c in chances]
        total, whole = sum(weights), sum(chances)
        exact = [w / total for w in weights]
        drawn = [c / whole for c in chances]
        distance = sum(abs(a - b) for a, b in zip(exact, drawn, strict=True)) / 2
        visible = [(a, b) for a, b in zip(exact, drawn, strict=True) if a > Decimal(2) ** -60]
        return float(distance), min(float(b / a) for a, b in visible)
