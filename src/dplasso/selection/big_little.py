"""Big steps over groups and little steps inside one: the paper's Algorithm 4, corrected.

The D coordinates form about sqrt(D) groups of about sqrt(D) neighbours. A draw runs A-ExpJ
(Efraimidis and Spirakis 2006) over the groups' weights, jumping over whole groups, and then over
the members of the chosen group.

**Jumps.** A-ExpJ keeps the smallest key so far and draws how much weight to skip before the next
smaller key. After weight t, that jump X has ``P(X > x) = t / (t + x)`` once the key is integrated
out. So ``t + X = t / U`` for one uniform U, and the key is not needed. With weights in whole ticks
the next record is in tick ``floor(t / U)``. Whether it lies beyond a boundary is a comparison of
integers (`beyond`) with 128 bits of U. A draw needs about ln(D) jumps.

**Weights in ticks.** Member k of group g has ``floor(w) + 1`` ticks, where w is its weight divided
by ``exp(exponent * reference_g)``, in units that give the group's largest member about 2^25 to 2^48
ticks. A group's sum is the integer sum of its members' ticks, so updates cannot make it drift. In a
draw a group's ticks are its sum scaled to the highest reference, rounded up.

**Exactness.** Ticks are upper bounds of weights, and rejection undoes both roundings: a group is
accepted with probability (scaled sum / ticks) and a member with (weight / ticks). Otherwise the
draw starts again. Loose or outdated upper bounds therefore cause no bias. The remaining error is
the rounding of `exp` and its argument, below 2^-45 of the weight of every coordinate that matters,
and 2^-60 from comparing 128 bits.

**Rebase.** A group is recomputed before the next draw if a member exceeds the range of ticks, or if
its sum is so small that rounding up would waste draws.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.randomness import bernoulli, random_word
from dplasso.runtime.compilation import kernel
from dplasso.selection.log_weights import draw_sign, relative_weight
from dplasso.selection.selector import MOVES, TRIES, VARIATES, new_counters, register

_TWO_64 = 18446744073709551616.0
_LARGEST_JUMP = 2.0**62
# Keeps scaled sums above the true values despite a few roundings.
_MARGIN = 1.0 + 2.0**-40
_HALF_WORD = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)


class BigLittleState(NamedTuple):
    """State of the big-step little-step selection.

    `exponent`: log-weight per fixed-point unit of alpha.
    `signed`: whether weights are ``2 cosh(exponent * alpha)`` with a random sign, or else
    ``exp(exponent * |alpha|)`` with the true sign.
    `size`: members of a group; the last group may have fewer.
    `scale`: ticks of a weight equal to ``exp(exponent * reference)``.
    `most`, `least`: a member above `most` ticks, or a group below `least`, needs a rebase.
    `ticks`, shape (D,): upper bound of each member's weight, relative to its group's reference.
    `total`, shape (G,): sum of the ticks of each group; 0 marks a group to recompute.
    `reference`, shape (G,): largest magnitude of each group when it was last recomputed.
    `ratio`, shape (G,): ``exp(exponent * (reference - largest reference))``.
    `scaled`, shape (G,): scratch for the groups' ticks on a common scale.
    `stale`, shape (G + 1,): the number of groups to recompute, followed by these groups.
    """

    exponent: float
    signed: bool
    size: int
    scale: float
    most: int
    least: int
    ticks: NDArray[np.int64]
    total: NDArray[np.int64]
    reference: NDArray[np.int64]
    ratio: NDArray[np.float64]
    scaled: NDArray[np.int64]
    stale: NDArray[np.int64]
    counters: NDArray[np.int64]
    shift: int = 0


def big_little_state(n_columns: int, exponent: float, signed: bool) -> BigLittleState:
    """Return an empty structure for `n_columns` coordinates, 8 bytes each; `rebuild` fills it.

    Raises ValueError if `exponent` is not finite and positive.
    """
    if not (np.isfinite(exponent) and exponent > 0):
        raise ValueError(f"exponent must be finite and positive, got {exponent}")
    size = math.isqrt(n_columns - 1) + 1
    groups = -(-n_columns // size)
    # The sum of all groups on a common scale stays below 2^62.
    most_bits = min(52, 62 - groups.bit_length() - size.bit_length())
    return BigLittleState(
        float(exponent),
        signed,
        size,
        2.0 ** (most_bits - 5),
        2**most_bits,
        16 * max(size, groups),
        np.zeros(n_columns, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
        np.ones(groups),
        np.zeros(groups, dtype=np.int64),
        np.zeros(groups + 1, dtype=np.int64),
        new_counters(),
    )


@kernel
def weight_in_ticks(selector, magnitude, reference):
    """Return a member's weight in ticks of its group, as a double."""
    weight = relative_weight(selector.exponent, magnitude, reference, selector.signed)
    return selector.scale * weight


@kernel
def recompute_group(selector, alpha, group):
    """Set a group's reference to its largest magnitude and recount its ticks."""
    begin = group * selector.size
    end = min(begin + selector.size, alpha.size)
    reference = np.int64(0)
    for j in range(begin, end):
        reference = max(reference, abs(alpha[j]))
    total = np.int64(0)
    for j in range(begin, end):
        magnitude = abs(alpha[j])
        ticks = np.int64(weight_in_ticks(selector, magnitude, reference)) + 1
        selector.ticks[j] = ticks
        total += ticks
    selector.reference[group] = reference
    selector.total[group] = total


@kernel
def rescale(selector):
    """Update the groups' factors to the scale of the highest reference."""
    highest = np.int64(0)
    for group in range(selector.reference.size):
        highest = max(highest, selector.reference[group])
    for group in range(selector.reference.size):
        behind = np.float64(selector.reference[group] - highest)
        selector.ratio[group] = np.exp(selector.exponent * behind)


@kernel
def rebuild_big_little(selector, alpha):
    """Recompute every group."""
    for group in range(selector.total.size):
        recompute_group(selector, alpha, group)
    rescale(selector)
    selector.stale[0] = 0


@kernel
def recount(selector, j, old, new):
    """Recount coordinate j; return 1 if the next draw must recompute its group."""
    total, stale = selector.total, selector.stale
    group = j // selector.size
    if total[group] == 0 or abs(old) == abs(new):
        return 0
    weight = weight_in_ticks(selector, abs(new), selector.reference[group])
    if weight < selector.most:
        counted = np.int64(weight) + 1
        after = total[group] + counted - selector.ticks[j]
        if after >= selector.least:
            selector.ticks[j] = counted
            total[group] = after
            return 0
    total[group] = 0
    stale[0] += 1
    stale[stale[0]] = group
    return 1


@kernel
def update_many_big_little(selector, alpha, changed, old, count):
    """Recount the coordinates that changed."""
    left = 0
    for m in range(count):
        k = np.int64(changed[m])
        left += recount(selector, k, old[m], alpha[k])
    selector.counters[MOVES] += left


@kernel
def refresh(selector, alpha):
    """Recompute the groups that updates marked as stale."""
    waiting = selector.stale[0]
    if waiting == 0:
        return
    for i in range(1, waiting + 1):
        recompute_group(selector, alpha, selector.stale[i])
    selector.stale[0] = 0
    rescale(selector)


@kernel
def high_and_low(a, b):
    """Return the upper and lower words of the 128-bit product of two words."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF_WORD
    b_low, b_high = b & _LOW_HALF, b >> _HALF_WORD
    low = a_low * b_low
    cross = a_high * b_low + (low >> _HALF_WORD)
    other = a_low * b_high + (cross & _LOW_HALF)
    high = a_high * b_high + (cross >> _HALF_WORD) + (other >> _HALF_WORD)
    return high, (other << _HALF_WORD) | (low & _LOW_HALF)


@kernel
def beyond(word, next_word, passed, boundary):
    """Return whether ``passed / U >= boundary`` for 128 bits of U, the leading ones in `word`."""
    # U boundary < passed, in units of 2^-128: (word 2^64 + next_word) boundary < passed 2^128.
    high, low = high_and_low(word, np.uint64(boundary))
    carry, _ = high_and_low(next_word, np.uint64(boundary))
    if low + carry < low:
        high += np.uint64(1)
    return high < np.uint64(passed)


@kernel
def walk(selector, ticks, begin, end, stream):
    """Draw an index from [begin, end) with probability proportional to its ticks, by A-ExpJ."""
    chosen = begin
    passed = ticks[begin]
    index = begin + 1
    while index < end:
        word, next_word = random_word(stream), random_word(stream)
        selector.counters[VARIATES] += 1
        u = (np.float64(word) + (np.float64(next_word) + 0.5) / _TWO_64) / _TWO_64
        # Boundaries up to here are certainly passed; the next few are compared exactly.
        certain = np.int64(min(np.float64(passed) / u * (1.0 - 2.0**-45), _LARGEST_JUMP))
        boundary = passed + ticks[index]
        while boundary <= certain or beyond(word, next_word, passed, boundary):
            index += 1
            if index == end:
                return chosen
            boundary += ticks[index]
        chosen = index
        passed = boundary
        index += 1
    return chosen


@kernel
def select_big_little(selector, alpha, stream):
    """Draw a vertex: first a group by big steps, then a member of it by little steps."""
    refresh(selector, alpha)
    scaled = selector.scaled
    for group in range(scaled.size):
        share = np.float64(selector.total[group]) * selector.ratio[group]
        scaled[group] = np.int64(share * _MARGIN) + 1
    while True:
        selector.counters[TRIES] += 1
        selector.counters[VARIATES] += 1
        group = walk(selector, scaled, 0, scaled.size, stream)
        share = np.float64(selector.total[group]) * selector.ratio[group]
        if not bernoulli(stream, share / np.float64(scaled[group])):
            continue
        begin = group * selector.size
        j = walk(selector, selector.ticks, begin, min(begin + selector.size, alpha.size), stream)
        gradient = alpha[j]
        weight = weight_in_ticks(selector, abs(gradient), selector.reference[group])
        selector.counters[VARIATES] += 1
        if bernoulli(stream, weight / np.float64(selector.ticks[j])):
            selector.counters[VARIATES] += selector.signed
            sign = draw_sign(stream, selector.exponent, gradient, selector.signed)
            return j, sign


register(BigLittleState, select_big_little, update_many_big_little, rebuild_big_little)
