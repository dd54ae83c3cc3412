"""The distribution a structure's numbers imply, exactly, and its distance from the closed form."""

from decimal import Decimal, localcontext

from evidence.audit.implied import chances_of_big_little, chances_of_bucket
from evidence.reference.draws import draw, fill, vertex_weights

from dplasso.privacy.randomness import random_stream
from dplasso.selection.big_little import BigLittleState
from dplasso.selection.bucket import BucketState

IMPLIED = ("bucket", "big-little")
_CHANCES = {BucketState: chances_of_bucket, BigLittleState: chances_of_big_little}


def implied(selector, alpha):
    """Return the coordinates' chances that the numbers in a structure imply after a draw."""
    fill(selector, alpha)
    draw(selector, alpha, random_stream(0), 1)
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
