"""The distribution a structure's numbers imply, exactly, and its distance from the closed form."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from dplasso.privacy.randomness import random_stream
from dplasso.selection.big_little import weight_in_ticks
from dplasso.selection.bucket import upper_edge
from dplasso.selection.weights import relative_weight
from reference import vertex_weights
from selection.drivers import draw, fill


def acceptance(weight, ticks):
    """Return what `bernoulli` is given, as a fraction of one."""
    return min(Fraction(1), Fraction(float(weight) / float(ticks)))


def implied_by_bucket(selector, alpha):
    """Coordinates' chances by rejection: ticks of the level times acceptance."""
    fill(selector, alpha)
    draw(selector, alpha, random_stream(0), 1)
    top = int(selector.top[0])
    edge = upper_edge(top, selector.shift, selector.bits)
    chances = [Fraction(0)] * alpha.size
    for place, k in enumerate(selector.order):
        level = int(np.searchsorted(selector.start, place, side="right")) - 1
        in_reach = top - level < selector.mass.size
        ticks = int(selector.bound[top - level]) if in_reach else 1
        magnitude = abs(int(alpha[k]))
        relative = relative_weight(selector.exponent, magnitude, edge, selector.signed)
        weight = selector.decay[0] * relative
        assert weight <= ticks, "a bound below the weight"
        chances[k] = ticks * acceptance(weight, ticks)
    return chances


def implied_by_big_little(selector, alpha):
    """Coordinates' chances: ticks of group and member, each times acceptance."""
    fill(selector, alpha)
    draw(selector, alpha, random_stream(0), 1)
    chances = [Fraction(0)] * alpha.size
    for k in range(alpha.size):
        group = k // selector.size
        share = float(selector.total[group]) * selector.ratio[group]
        assert share <= selector.scaled[group], "a bound below the group's sum"
        of_group = int(selector.scaled[group]) * acceptance(share, selector.scaled[group])
        weight = weight_in_ticks(selector, abs(int(alpha[k])), selector.reference[group])
        assert weight <= selector.ticks[k], "a bound below the weight"
        of_member = int(selector.ticks[k]) * acceptance(weight, selector.ticks[k])
        chances[k] = of_group * of_member / int(selector.total[group])
    return chances


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
