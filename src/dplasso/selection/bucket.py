"""Dynamic bucketed rejection: draws at a cost free of D, updates that mostly cost one compare.

Coordinates are kept sorted by *level*, a function of alpha_k alone: one permutation of the
coordinates in which each level is a contiguous segment. Levels are ``2^shift`` units of magnitude
wide, which makes the weights inside one differ by a factor of at most 2 (or as many as asked), so
that

1. drawing a level by (members x upper bound of their weight),
2. drawing a member uniformly,
3. accepting it with (its weight / the bound)

is exact and succeeds after about 1.4 tries. Bounds are whole numbers of ticks, rounded up, so that
steps 1 and 2 are one uniform integer below the total, without rounding; step 3 undoes the rounding
up. Levels so far below the top that a member's bound is a single tick need not be told apart: they
are one stretch of the permutation. A coordinate is left out only where ``exp`` underflows: beyond
about 745 nats behind the top its weight is 0, which the delta charged for inexact draws covers.

A coordinate that crosses to a neighbouring level swaps with the segment's edge member; one share
moves a gradient by less than a level or two, so an update is O(1). The same segments give the
non-private argmax: scan the topmost.

Far from zero, beyond ``2^(bits + 1)`` levels, the width grows in proportion to the magnitude, so
the number of levels is bounded. Weights there are so steep that only a handful of coordinates
matter; they are drawn by an exponential race over the members within reach of the top.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.privacy.randomness import below, bernoulli, exponential
from dplasso.selection.contract import MOVES, TRIES, new_counters, register, stored
from dplasso.selection.log_weights import cosh_factor, descent_sign, draw_sign, relative_weight

# Private draws: levels of equal width up to 2^13 of them, 2^12 to the octave beyond.
PRIVATE_BITS = 12
# The argmax needs levels relative to the top: 2^4 to the octave, from four records' worth upwards.
ARGMAX_BITS = 4
ARGMAX_SHIFT = 34
LARGEST = np.int64(2**63 - 1)
# The race leaves out candidates behind the best by more than this many nats plus log D: together
# they hold less than 2^-63 of the probability.
CUTOFF_NATS = 64.0 * np.log(2.0)
_EDGE_FACTORS = 128
# Bounds are products of a few rounded numbers: none may end below the true weight.
_MARGIN = 1.0 + 2.0**-40


class BucketState(NamedTuple):
    """State of the bucketed selection.

    `exponent`: log-weight per fixed-point unit of alpha; infinity for the non-private argmax.
    `signed`: weights ``2 cosh(exponent * alpha)`` with a drawn sign, or ``exp(exponent *
    |alpha|)`` with the true one.
    `shift`, `bits`: level width ``2^shift`` units; `bits` as in `level_of`.
    `linear`: draws are by rejection while the top level is below this one.
    `order`, shape (D,): coordinates, grouped by level.
    `position`, shape (D,): where in `order` each coordinate stands.
    `start`, shape (levels + 1,): level l occupies ``order[start[l]:start[l + 1]]``.
    `top`, shape (1,): no level above this one has members.
    `decay`, shape (W,): bound, in ticks, of the level i below the top, where it is more than one
    tick.
    `edge_factor`, shape (128,): `cosh_factor` at the upper edges of the lowest levels (1 above
    them).
    `bound`, `mass`, shape (W,): scratch: ticks of one member, and of all members, of the level i
    below the top.
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


def bucket_state(
    n_columns: int,
    exponent: float,
    signed: bool,
    spread: float = 2.0,
) -> BucketState:
    """Return the structure for `n_columns` coordinates, empty: `rebuild` fills it.

    `spread`: by what factor the weights inside a level may differ: the larger, the fewer changes
    cross a level, and the more tries a draw takes.

    It takes about 8 bytes per coordinate (16 beyond 2^31 of them).

    Raises ValueError if `exponent` is not positive.
    """
    if not exponent > 0:
        raise ValueError(f"exponent must be positive, got {exponent}")
    if np.isinf(exponent):
        shift, bits, linear, decay = ARGMAX_SHIFT, ARGMAX_BITS, 0, np.ones(1)
    else:
        shift = int(np.clip(np.floor(np.log2(np.log(spread) / exponent)), 0, 62))
        bits = PRIVATE_BITS
        # Weights of neighbouring integers may be too far apart for a level to hold two.
        linear = 2 ** (bits + 1) if exponent <= np.log(2.0) else 0
        width = exponent * 2.0**shift
        # All members together stay below 2^63 ticks, and those of one tick weigh next to nothing.
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
    """Return a for a >= 0, else -a - 1: the magnitude, so that level edges are those of a >> shift.

    A solver can then tell in two instructions that a gradient has stayed in its level.
    """
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
    """Return the largest magnitude in the level; the next one's smallest equals it."""
    octave = max(0, (level >> bits) - 1)
    steps = level - (octave << bits) + 1
    if steps > (LARGEST >> (octave + shift)):
        return LARGEST
    return steps << (octave + shift)


@njit(cache=True, nogil=True)
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
    # start[l] serves as level l's write position, then is put back.
    for j in range(alpha.size):
        level = level_of(fold(alpha[j]), shift, bits)
        place = start[level]
        order[place] = j
        position[j] = place
        start[level] = place + 1
    for level in range(start.size - 1, 0, -1):
        start[level] = start[level - 1]
    start[0] = 0


@njit(cache=True, nogil=True)
def move(order, position, start, j, source, target):
    """Carry coordinate j from one level's segment to another's, a swap per level crossed."""
    place = np.int64(position[j])
    for level in range(source, target):
        edge = start[level + 1] - 1
        start[level + 1] = edge
        # In an empty level j stands at the edge already.
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
    """Set the ticks of the levels within reach of the top; return those of all members."""
    start, bound, mass = selector.start, selector.bound, selector.mass
    reach = min(top + 1, mass.size)
    # Members of the levels further down, one tick each.
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


# Called from Python, a draw runs interpreted: it has few steps, which take seconds to compile.
@register_jitable
def reject(selector, alpha, stream, top):
    """Draw a level, a member, and accept it with its weight over the level's bound."""
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
    """Draw a vertex; without privacy, return the steepest one."""
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


@njit(cache=True, nogil=True)
def race_top(selector, alpha, stream, top):
    """Draw by exponential race among the levels in reach of the largest magnitude."""
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


@register_jitable
def level_width(selector):
    """Granularity: inside ``2^shift`` units no level changes."""
    return selector.shift


@register_jitable
def draws_by_bounds(selector):
    """Return whether members of the lowest level are read only where one of them is proposed.

    A race never reaches that level: it begins above thousands, each a fraction of a nat wide.
    """
    return selector.linear > 0


register(
    BucketState, select_bucket, update_many_bucket, rebuild_bucket, level_width, draws_by_bounds
)
