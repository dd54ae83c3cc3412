"""How often a search tries: a random number, so that the best try costs little more than one.

With a fixed number of tries, the best of them costs as much as all. With a number drawn from one of
the laws below it costs a logarithm of their mean (arXiv 2110.03620); `dplasso.tuning.cost` has the
formulas. The laws, K being the number of tries:

    poisson       P(K = k) = e^-m m^k / k!,                       k >= 0, mean m
    geometric     P(K = k) = g (1 - g)^(k - 1),                   k >= 1, mean 1/g
    logarithmic   P(K = k) = (1 - g)^k / (k ln(1/g)),             k >= 1, mean (1/g - 1) / ln(1/g)

A draw compares an integer of 128 random bits with cumulative probabilities in integers, computed to
60 digits: its law differs from the exact one by less than `DRAW_ERROR` in total variation.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

from dplasso.errors import ParameterError
from dplasso.privacy.parameters import check_choice, check_positive
from dplasso.privacy.randomness import RandomStream, random_word

LAWS = ("poisson", "geometric", "logarithmic")
DRAW_ERROR = 2.0**-90
# From so many tries on, the logarithmic law leaves each of them more than Poisson's does.
_LOGARITHMIC_FROM = 4.5
LARGEST_MEAN = 1000.0
_BITS = 128


@dataclass(frozen=True)
class Tries:
    """The law of the number of tries; public. The parameter g is 0 for Poisson's law."""

    law: str
    mean: float
    gamma: float


def tries_of(mean: float, law: str = "auto") -> Tries:
    """Return the law with an expected number of tries.

    "auto" takes the law that leaves a try the most: Poisson's below 4.5, the logarithmic from
    there.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range.
    """
    check_choice("law", law, ("auto", *LAWS))
    mean = check_positive("tries", mean)
    if law == "auto":
        law = "poisson" if mean < _LOGARITHMIC_FROM else "logarithmic"
    if not (1.0 if law == "poisson" else 1.0 + 2.0**-20) <= mean <= LARGEST_MEAN:
        raise ParameterError(
            f"`tries` must lie between 1 and {LARGEST_MEAN:g} (above 1 unless `law=poisson`), "
            f"got {mean!r}"
        )
    if law == "poisson":
        return Tries(law, mean, 0.0)
    if law == "geometric":
        return Tries(law, mean, 1.0 / mean)
    low, high = 1e-6, 1.0 - 2.0**-30
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _logarithmic_mean(middle) > mean:
            low = middle
        else:
            high = middle
    return Tries(law, mean, high)


def _logarithmic_mean(gamma: float) -> float:
    return -(1.0 / gamma - 1.0) / math.log(gamma)


def draw_tries(tries: Tries, stream: RandomStream) -> int:
    """Draw the number of tries; 0 only by Poisson's law."""
    first, thresholds = _cumulative(tries)
    point = (int(random_word(stream)) << 64) | int(random_word(stream))
    return first + min(bisect_right(thresholds, point), len(thresholds) - 1)


@lru_cache(maxsize=16)
def _cumulative(tries: Tries) -> tuple[int, list[int]]:
    """Return the smallest K and, for it and each larger one, 2^128 P(not larger)."""
    with localcontext() as context:
        context.prec = 60
        mean, gamma = Decimal(tries.mean), Decimal(tries.gamma)
        if tries.law == "poisson":
            first, mass = 0, (-mean).exp()
        elif tries.law == "geometric":
            first, mass = 1, gamma
        else:
            first, mass = 1, (1 - gamma) / -gamma.ln()
        total, thresholds, number = Decimal(0), [], first
        # The law's tail is at most 1000 times its last mass here, and goes to the last K.
        while total < Decimal("0.5") or mass > Decimal(2) ** -105:
            total += mass
            thresholds.append(int(total * 2**_BITS))
            number += 1
            if tries.law == "poisson":
                mass *= mean / number
            elif tries.law == "geometric":
                mass *= 1 - gamma
            else:
                mass *= (1 - gamma) * (number - 1) / number
        return first, thresholds
