"""Dynamic bucketed rejection: the cost of a draw does not depend on D, and updates are cheap.

Coordinates are sorted by *level*, a function of alpha_k alone: in one permutation of the
coordinates each level is a contiguous segment. A level is ``2^shift`` units of magnitude wide, so
that the weights inside it differ by a factor of at most 2 (or `spread`). A draw has three steps:

1. draw a level by (members x upper bound of their weight),
2. draw a member uniformly,
3. accept it with probability (weight / bound).

This is exact and succeeds after about 1.4 tries. Bounds are whole numbers of ticks, rounded up, so
steps 1 and 2 need only one uniform integer below the total, and step 3 undoes the rounding. Levels
whose members have a single tick are treated as one segment. A coordinate is left out only if
``exp`` underflows, which the delta for inexact draws covers.

A coordinate that crosses to a neighbouring level swaps places with the member at the edge of the
segment. A single contribution moves a gradient by at most about two levels, so an update is O(1).

Beyond ``2^(bits + 1)`` levels the width grows in proportion to the magnitude. Weights there are so
steep that an exponential race over the members close to the top draws one of them.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.privacy.randomness import below, bernoulli, exponential
from dplasso.runtime.compilation import kernel
from dplasso.selection.log_weights import cosh_factor, descent_sign, draw_sign, relative_weight
from dplasso.selection.selector import MOVES, TRIES, new_counters, register, stored

# Private draws: up to 2^13 levels of equal width, beyond that 2^12 levels per octave.
PRIVATE_BITS = 12
# The argmax needs levels relative to the top: 2^4 per octave, from four contributions upwards.
ARGMAX_BITS = 4
ARGMAX_SHIFT = 34
LARGEST = np.int64(2**63 - 1)
# The race ignores candidates that are more than this many nats plus log D below the best. Together
# they have a probability below 2^-63.
CUTOFF_NATS = 64.0 * np.log(2.0)
_EDGE_FACTORS = 128
# Keeps bounds, which are products of a few rounded numbers, above the true weights.
_MARGIN = 1.0 + 2.0**-40


class BucketState(NamedTuple):
    """State of the bucketed selection.

    `exponent`: log-weight per fixed-point unit of alpha; infinity for the non-private argmax.
    `signed`: whether weights are ``2 cosh(exponent * alpha)`` with a random sign, or else
    ``exp(exponent * |alpha|)`` with the true sign.
    `shift`, `bits`: the level width is ``2^shift`` units; `bits` as in `level_of`.
    `linear`: draws use rejection while the top level is below this one.
    `order`, `position`, shape (D,): coordinates, grouped by level, and the place of each.
    `start`, shape (levels + 1,): level l occupies ``order[start[l]:start[l + 1]]``.
    `top`, shape (1,): no level above this one has members.
    `decay`, shape (W,): bound in ticks of the level i below the top, for bounds above one tick.
    `edge_factor`, shape (128,): `cosh_factor` at the upper edges of the lowest levels.
    `bound`, `mass`, shape (W,): scratch, the ticks of a member and of all of the level i below.
    """

    exponent: float
    signed: bool
    shift: int
    bits: int
    linear: int
    order: NDArray[np.integer]
    position: NDArray[np.integer]
    start: NDArray[np.int64]
    top: NDArray[np.int64]
    decay: NDArray[np.float64]
    edge_factor: NDArray[np.float64]
    bound: NDArray[np.int64]
    mass: NDArray[np.int64]
    counters: NDArray[np.int64]

    @property
    def reads_few(self) -> bool:
        """Whether a member of the lowest level is read only if it is proposed."""
        return self.linear > 0


def bucket_state(
    n_columns: int,
    exponent: float,
    signed: bool,
    spread: float = 2.0,
) -> BucketState:
    """Return an empty structure for `n_columns` coordinates; `rebuild` fills it.

    `spread`: largest ratio of the weights in a level. With a larger value fewer changes cross a
    level, but a draw takes more tries.
    """
    if not exponent > 0:
        raise ValueError(f"exponent must be positive, got {exponent}")
    if np.isinf(exponent):
        shift, bits, linear, decay = ARGMAX_SHIFT, ARGMAX_BITS, 0, np.ones(1)
    else:
        shift = int(np.clip(np.floor(np.log2(np.log(spread) / exponent)), 0, 62))
        bits = PRIVATE_BITS
        # If neighbouring integers have too different weights, no level can hold two of them.
        linear = 2 ** (bits + 1) if exponent <= np.log(2.0) else 0
        width = exponent * 2.0**shift
        # All members together have fewer than 2^63 ticks; members with one tick weigh very little.
        size_bits = int(n_columns).bit_length()
        tick_bits = min(size_bits + 7, 61 - size_bits)
        reach = int(min(np.ceil((tick_bits + 1) * np.log(2.0) / width) + 1, 2 ** (bits + 1)))
        decay = np.exp(-width * np.arange(reach)) * 2.0**tick_bits
    index = np.int32 if n_columns < 2**31 else np.int64
    edge_factor = np.ones(_EDGE_FACTORS)
    if signed:
        edges = np.arange(1, _EDGE_FACTORS + 1) * 2.0**shift
        edge_factor += np.exp(-2.0 * exponent * edges)
    return BucketState(
        float(exponent),
        signed,
        shift,
        bits,
        linear,
        np.empty(n_columns, dtype=index),
        np.empty(n_columns, dtype=index),
        np.zeros(level_of(LARGEST, shift, bits) + 2, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        decay,
        edge_factor,
        np.zeros(decay.size, dtype=np.int64),
        np.zeros(decay.size, dtype=np.int64),
        new_counters(),
    )


@register_jitable
def fold(gradient):
    """Return a for a >= 0, else -a - 1: a magnitude whose level edges are those of a >> shift."""
    return gradient ^ (gradient >> 63)


@register_jitable
def level_of(folded, shift, bits):
    """Return the level of a `fold`: linear up to ``2^(bits + 1)`` levels, then logarithmic."""
    steps = folded >> shift
    level = steps
    octave = 0
    while (steps >> octave) >= (1 << (bits + 1)):
        octave += 1
        level = (octave << bits) + (steps >> octave)
    return level


@register_jitable
def upper_edge(level, shift, bits):
    """Return the largest magnitude in the level, which is the smallest in the next level."""
    octave = max(0, (level >> bits) - 1)
    steps = level - (octave << bits) + 1
    if steps > (LARGEST >> (octave + shift)):
        return LARGEST
    return steps << (octave + shift)


@kernel
def rebuild_bucket(selector, alpha):
    """Sort the coordinates by level (a counting sort)."""
    start = selector.start
    start[:] = 0
    shift, bits = selector.shift, selector.bits
    top = 0
    for k in range(alpha.size):
        level = level_of(fold(alpha[k]), shift, bits)
        start[level + 1] += 1
        top = max(top, level)
    selector.top[0] = top
    for level in range(start.size - 1):
        start[level + 1] += start[level]
    order, position = selector.order, selector.position
    # start[l] is used as the write position of level l, and restored below.
    for j in range(alpha.size):
        level = level_of(fold(alpha[j]), shift, bits)
        place = start[level]
        order[place] = j
        position[j] = place
        start[level] = place + 1
    for level in range(start.size - 1, 0, -1):
        start[level] = start[level - 1]
    start[0] = 0


@kernel
def move(order, position, start, j, source, target):
    """Move coordinate j from one level's segment to another's, with one swap per level crossed."""
    place = np.int64(position[j])
    for level in range(source, target):
        edge = start[level + 1] - 1
        start[level + 1] = edge
        # In an empty level j is at the edge already.
        if edge != place:
            other = order[edge]
            order[place] = other
            position[other] = place
            order[edge] = j
            place = edge
    for level in range(source, target, -1):
        edge = start[level]
        start[level] = edge + 1
        if edge != place:
            other = order[edge]
            order[place] = other
            position[other] = place
            order[edge] = j
            place = edge
    position[j] = place


@kernel
def update_many_bucket(selector, alpha, changed, old, count):
    """Move the coordinates that left their level."""
    order, position, start = selector.order, selector.position, selector.start
    shift, bits = selector.shift, selector.bits
    top = selector.top[0]
    moves = 0
    for m in range(count):
        k = changed[m]
        source = level_of(fold(old[m]), shift, bits)
        target = level_of(fold(alpha[k]), shift, bits)
        if source != target:
            move(order, position, start, k, source, target)
            top = max(top, target)
            moves += 1
    selector.top[0] = top
    selector.counters[MOVES] += moves


@kernel
def scan_top(selector, alpha, top):
    """Return the coordinate of largest magnitude; in a tie, the first one."""
    order, start = selector.order, selector.start
    best = np.int64(alpha.size)
    largest = np.int64(-1)
    level = top
    while True:
        for place in range(start[level], start[level + 1]):
            j = np.int64(order[place])
            magnitude = abs(alpha[j])
            if magnitude > largest or (magnitude == largest and j < best):
                best, largest = j, magnitude
        selector.counters[TRIES] += start[level + 1] - start[level]
        level -= 1
        # The level below can hold a tie only if the magnitude lies on the edge between the two.
        if level < 0 or upper_edge(level, selector.shift, selector.bits) < largest:
            return best


@register_jitable
def weigh_levels(selector, top):
    """Set the ticks of the levels close to the top; return the total ticks of all members."""
    start, bound, mass = selector.start, selector.bound, selector.mass
    reach = min(top + 1, mass.size)
    # The members of lower levels have one tick each.
    total = start[top + 1 - reach]
    for i in range(reach):
        level = top - i
        members = start[level + 1] - start[level]
        if members == 0:
            mass[i] = 0
            continue
        weight = selector.decay[i]
        if level < _EDGE_FACTORS:
            weight *= selector.edge_factor[level]
        bound[i] = np.int64(weight * _MARGIN) + 1
        mass[i] = bound[i] * members
        total += mass[i]
    return total


# Not compiled by itself: a draw called from Python has few steps, and compiling takes seconds.
@register_jitable
def reject(selector, alpha, stream, top):
    """Draw a level and a member, and accept it with probability weight / bound of the level."""
    order, start, mass = selector.order, selector.start, selector.mass
    total = weigh_levels(selector, top)
    below_reach = start[top + 1 - min(top + 1, mass.size)]
    edge = upper_edge(top, selector.shift, selector.bits)
    while True:
        selector.counters[TRIES] += 1
        rest = below(stream, total)
        if rest < below_reach:
            j = np.int64(order[rest])
            ticks = np.int64(1)
        else:
            rest -= below_reach
            i = 0
            while rest >= mass[i]:
                rest -= mass[i]
                i += 1
            ticks = selector.bound[i]
            j = np.int64(order[start[top - i] + rest // ticks])
        magnitude = abs(alpha[j])
        relative = relative_weight(selector.exponent, magnitude, edge, selector.signed)
        weight = selector.decay[0] * relative
        if bernoulli(stream, weight / np.float64(ticks)):
            return j


@register_jitable
def select_bucket(selector, alpha, stream):
    """Draw a vertex, or return the steepest one without privacy."""
    top = selector.top[0]
    while selector.start[top] == selector.start[top + 1]:
        top -= 1
    selector.top[0] = top
    if np.isinf(selector.exponent):
        best = scan_top(selector, alpha, top)
        return best, descent_sign(alpha[best])
    if top < selector.linear:
        chosen = reject(selector, alpha, stream, top)
    else:
        chosen = race_top(selector, stored(alpha), stream, top)
    gradient = alpha[chosen]
    sign = draw_sign(stream, selector.exponent, gradient, selector.signed)
    return chosen, sign


@kernel
def race_top(selector, alpha, stream, top):
    """Draw by an exponential race over the levels close to the largest magnitude."""
    exponent, signed = selector.exponent, selector.signed
    order, start = selector.order, selector.start
    largest = abs(alpha[scan_top(selector, alpha, top)])
    reach = CUTOFF_NATS + np.log(np.float64(alpha.size))
    best = np.int64(0)
    best_key = np.inf
    level = top
    while level >= 0:
        edge = upper_edge(level, selector.shift, selector.bits)
        if exponent * np.float64(largest - edge) > reach:
            break
        for place in range(start[level], start[level + 1]):
            j = np.int64(order[place])
            magnitude = abs(alpha[j])
            key = np.log(exponential(stream)) + exponent * np.float64(largest - magnitude)
            key -= np.log(cosh_factor(exponent, magnitude, signed))
            if key < best_key:
                best, best_key = j, key
        selector.counters[TRIES] += start[level + 1] - start[level]
        level -= 1
    return best


register(BucketState, select_bucket, update_many_bucket, rebuild_bucket)
