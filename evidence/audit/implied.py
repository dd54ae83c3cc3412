"""The distribution that a structure's own numbers imply, exactly.

A draw turns whole numbers of ticks and acceptances given to `bernoulli` into probabilities, without
rounding of its own. So what a structure really draws from can be read off its state after a draw,
as fractions, and compared with what it should draw from or with its neighbour's.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.privacy.randomness import random_stream
from dplasso.selection.big_little import BigLittleState, weight_in_ticks
from dplasso.selection.bucket import BucketState, upper_edge
from dplasso.selection.log_weights import relative_weight
from dplasso.selection.noisy_max import GumbelState
from dplasso.selection.selector import rebuild, select, update_many


@njit(cache=True, nogil=True)
def follow(selector, alpha, course):
    """Index the first gradients of a course, then tell the structure of each change, as solvers do.

    At the end alpha holds the last gradients.
    """
    report_shift = selector.shift
    changed, before = np.empty(alpha.size, np.int64), np.empty(alpha.size, np.int64)
    alpha[:] = course[0]
    rebuild(selector, alpha)
    for t in range(1, len(course)):
        count = 0
        for k in range(alpha.size):
            old, new = alpha[k], course[t, k]
            alpha[k] = new
            if (old ^ new) >> report_shift:
                changed[count], before[count] = k, old
                count += 1
        update_many(selector, alpha, changed, before, count)


@njit(cache=True, nogil=True)
def _draw(selector, alpha, stream):
    select(selector, alpha, stream)


def acceptance(weight: float, ticks: float) -> Fraction:
    """Return the probability with which ``bernoulli(weight / ticks)`` accepts, as rounded."""
    return min(Fraction(1), Fraction(float(weight) / float(ticks)))


def chances_of_bucket(selector: BucketState, alpha: NDArray[np.int64]) -> list[Fraction]:
    """Return the coordinates' chances, up to a factor: ticks of the level times acceptance.

    The structure has just drawn by rejection (top level below `linear`).

    Raises ValueError if it drew by a race, which has no finite list of chances; AssertionError if a
    bound is below the weight that it bounds.
    """
    top = int(selector.top[0])
    if top >= selector.linear:
        raise ValueError("gradients this far apart are drawn by a race, not by rejection")
    edge = upper_edge(top, selector.shift, selector.bits)
    chances = [Fraction(0)] * alpha.size
    for place, k in enumerate(selector.order):
        level = int(np.searchsorted(selector.start, place, side="right")) - 1
        in_reach = top - level < selector.mass.size
        ticks = int(selector.bound[top - level]) if in_reach else 1
        magnitude = abs(int(alpha[k]))
        relative = relative_weight(selector.exponent, magnitude, edge, selector.signed)
        weight = selector.decay[0] * relative
        if weight > ticks:
            raise AssertionError("a bound below the weight")
        chances[k] = ticks * acceptance(weight, ticks)
    return chances


def chances_of_big_little(selector: BigLittleState, alpha: NDArray[np.int64]) -> list[Fraction]:
    """Return the coordinates' chances, up to a factor: ticks of group and member times acceptance.

    The structure has just drawn.

    Raises AssertionError if a bound is below the weight that it bounds.
    """
    chances = [Fraction(0)] * alpha.size
    for k in range(alpha.size):
        group = k // selector.size
        share = float(selector.total[group]) * selector.ratio[group]
        weight = weight_in_ticks(selector, abs(int(alpha[k])), selector.reference[group])
        if share > selector.scaled[group] or weight > selector.ticks[k]:
            raise AssertionError("a bound below the weight")
        of_group = int(selector.scaled[group]) * acceptance(share, selector.scaled[group])
        of_member = int(selector.ticks[k]) * acceptance(weight, selector.ticks[k])
        chances[k] = of_group * of_member / int(selector.total[group])
    return chances


def implied_log_probabilities(
    selector: Any, gradients: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return the log-probabilities of the signed vertices after a sequence of gradients.

    The structure, freshly allocated, indexes the first gradients and is told of the changes up to
    the last, as in a run. The noisy maximum, whose race has no integers to read, gives its closed
    form.

    Returns shape (2, D): of the vertices ``-e_j`` (row 0) and ``+e_j`` (row 1); -inf where
    impossible.

    Raises ValueError for a structure without a closed form.
    """
    if not isinstance(selector, GumbelState | BucketState | BigLittleState):
        raise ValueError(
            f"the draws of {type(selector).__name__} have no distribution in closed form; the "
            "exact audit takes selector 'bucket' or 'big-little'"
        )
    alpha = np.empty_like(gradients[0])
    follow(selector, alpha, np.array(gradients))
    if isinstance(selector, GumbelState):
        return _closed_form(alpha, selector.exponent)
    _draw(selector, alpha, random_stream())
    if isinstance(selector, BucketState):
        chances = chances_of_bucket(selector, alpha)
    else:
        chances = chances_of_big_little(selector, alpha)
    total = sum(chances)
    logs = np.full((2, alpha.size), -np.inf)
    for k, chance in enumerate(chances):
        share = float(chance / total)
        downhill, uphill = _sign_probabilities(selector, int(alpha[k]))
        # The descending vertex is -e_k for a positive gradient.
        rows = (0, 1) if alpha[k] >= 0 else (1, 0)
        with np.errstate(divide="ignore"):
            logs[rows[0], k] = np.log(share) + np.log(downhill)
            logs[rows[1], k] = np.log(share) + np.log(uphill)
    return logs


def _sign_probabilities(selector: Any, gradient: int) -> tuple[float, float]:
    """Return the probabilities of the descending and of the ascending vertex, as drawn."""
    if not selector.signed:
        return 1.0, 0.0
    odds = float(np.exp(-2.0 * selector.exponent * float(abs(gradient))))
    ascending = odds / (1.0 + odds)
    return 1.0 - ascending, ascending


def _closed_form(alpha: NDArray[np.int64], exponent: float) -> NDArray[np.float64]:
    largest = max(abs(int(a)) for a in alpha)
    behind = [[sign * int(a) - largest for a in alpha] for sign in (1, -1)]
    scores = exponent * np.array(behind, dtype=np.float64)
    logs: NDArray[np.float64] = scores - np.log(np.exp(scores).sum())
    return logs
