"""Integer Gaussian noise: floored real Gaussian variates, drawn without floating-point bias.

For an integer n, ``floor(n + g) = n + floor(g)``, so adding ``floor(g)`` to an exact sum is
post-processing of the real Gaussian mechanism (docs/threat-model.md).

An integer ziggurat draws a variate. Under ``f(x) = exp(-(x + 1/2)^2 / (2 s^2))`` lie 256 rectangles
of exactly the same area A. Rectangle i has the width ``w_i = blocks_i 2^low_bits`` and the heights
``h_i`` to ``h_(i+1)``. One 64-bit word chooses rectangle, sign and integer. Most integers lie under
the curve over the whole height and are taken at once (`take_at_once`). For the others,
`draw_exactly` compares a second word with f, and `settle` decides exactly what doubles cannot.

Every integer has exactly the mass that f gives it:

1. The low 9 bits of a word choose rectangle and sign, the next ones the low bits of the integer.
2. The high bits u choose the block ``floor(u blocks_i / 2^H)``. Words with ``u blocks_i mod 2^H <
2^H mod blocks_i`` are rejected, so that every block has equally many u (arXiv 1805.10941). A
rejection draws u again and keeps the rest, so the rectangle keeps its probability of 1/256.
3. The candidate m is accepted with probability ``a_i(m)``, the part of the height of rectangle i
below ``f(m)``. Otherwise everything is drawn again.

So a pass returns m with probability ``sum_i a_i(m) / (512 w_i) = f(m) / (512 A)``. What remains is
the difference between f and the mass of a unit cell, and the tail (`dplasso.privacy.budget`).
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.accounting import LARGEST_SCALE, SMALLEST_SCALE, TAIL
from dplasso.privacy.randomness import RandomStream, fill_words, next_words, random_word
from dplasso.runtime.compilation import kernel

LAYERS = 256
# A standard deviation spans at least 2^10 of the blocks of integers that a rectangle is made of.
_BLOCKS_BITS = 10
# Of a rectangle's entry: below, where blocks are taken at once; above, its width.
_ENTRY_BITS, _ENTRY_MASK = np.uint64(16), np.uint64(2**16 - 1)
# Words that are looked at together; and before those of them that were not taken at once.
_TOGETHER, _AT_ONCE = 2**10, 2**15
# Comparisons nearer than this are settled exactly; more than so many do not come together.
AMBIGUOUS, MOST_UNSETTLED = 2.0**-44, 16


class NoiseTable(NamedTuple):
    """The ziggurat of a standard deviation `scale`, in units.

    `low_bits`: of an integer. `blocks`, shape (256,): widths in blocks of ``2**low_bits``. `whole`,
    shape (256,): integers below are under the curve. `heights`, shape (257,), rounded: exact ones
    follow from `area`. `entries`, shape (256,): width and first block that is not taken at once.
    """

    scale: float
    low_bits: int
    blocks: NDArray[np.uint64]
    whole: NDArray[np.int64]
    heights: NDArray[np.float64]
    area: float
    entries: NDArray[np.uint64]


# A table takes some hundredths of a second, more than a small fit; nothing writes to it.
@lru_cache(maxsize=64)
def noise_table(scale: float) -> NoiseTable:
    """Return the ziggurat of a standard deviation in units; ValueError if that is out of range."""
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise ValueError(
            f"a standard deviation must be {SMALLEST_SCALE:g} to {LARGEST_SCALE:g} units, "
            f"got {scale!r}"
        )
    low_bits = math.floor(math.log2(scale)) - _BLOCKS_BITS
    # The least area whose rectangles reach the top of the curve, to a few digits.
    under_curve = scale * math.sqrt(math.pi / 2.0)
    low, high = 0.9 * under_curve / LAYERS, 1.2 * under_curve / LAYERS
    for _ in range(16):
        middle = 0.5 * (low + high)
        if _widths(scale, low_bits, middle) is None:
            low = middle
        else:
            high = middle
    blocks = _widths(scale, low_bits, high)
    assert blocks is not None
    heights = _exact_heights(blocks, low_bits, high)
    whole = np.zeros(LAYERS, dtype=np.int64)
    for i in range(LAYERS):
        top = float(heights[i + 1]) * (1.0 + 1e-12)
        if top < 1.0:
            # Below: f at the far end of the cell is above the top, by more than any rounding.
            whole[i] = max(0, math.floor(scale * math.sqrt(-2.0 * math.log(top))) - 2)
    widths = np.array(blocks, dtype=np.uint64)
    # A block that is taken in part is looked at.
    taken = np.minimum(whole.astype(np.uint64) >> np.uint64(low_bits), _ENTRY_MASK)
    edges = np.array([float(height) for height in heights])
    entries = (widths << _ENTRY_BITS) | taken
    return NoiseTable(float(scale), low_bits, widths, whole, edges, float(high), entries)


def _widths(scale: float, low_bits: int, area: float) -> list[int] | None:
    """Return the widths of rectangles of this area in blocks; None if they end below the top."""
    width = math.ceil(TAIL * scale / 2**low_bits)
    blocks, height = [], 0.0
    for _ in range(LAYERS):
        blocks.append(width)
        height += area / (width * 2.0**low_bits)
        # Where the curve is this high, and a little beyond: every point under it is covered.
        edge = scale * math.sqrt(max(0.0, -2.0 * math.log(min(1.0, height * (1.0 - 1e-12)))))
        width = math.floor(edge / 2**low_bits) + 1
    return blocks if height >= 1.0 + 1e-9 else None


def _exact_heights(blocks: list[int], low_bits: int, area: float) -> list[Fraction]:
    heights = [Fraction(0)]
    for width in blocks:
        heights.append(heights[-1] + Fraction(area) / (width << low_bits))
    return heights


@kernel
def take_at_once(words, entries, low_bits, totals, places, chosen, values, left):
    """Add to `totals` the variates of their words; return how many places need more.

    Their `places` are set, and nothing is added there. `chosen`, `values`, `left`: room.
    """
    low_mask = (np.uint64(1) << low_bits) - np.uint64(1)
    high_bits = np.uint64(64 - 9) - low_bits
    high_mask = (np.uint64(1) << high_bits) - np.uint64(1)
    n_words, together, n_left = np.uint64(words.size), np.uint64(chosen.size), np.uint64(0)
    for begin in range(np.uint64(0), n_words, together):
        size = together if begin + together < n_words else n_words - begin
        # Apart from what follows, which then has no scattered access and is compiled to vectors.
        for k in range(size):
            chosen[k] = entries[words[begin + k] & np.uint64(255)]
        for k in range(size):
            word = words[begin + k]
            width = chosen[k] >> _ENTRY_BITS
            product = (word >> (np.uint64(9) + low_bits)) * width
            block = product >> high_bits
            magnitude = np.int64((block << low_bits) | ((word >> np.uint64(9)) & low_mask))
            # All ones turn m into -m - 1.
            sign = -np.int64((word >> np.uint64(8)) & np.uint64(1))
            more = (block >= (chosen[k] & _ENTRY_MASK)) | ((product & high_mask) < width)
            values[k] = (magnitude ^ sign) & (np.int64(more) - np.int64(1))
            left[k] = more
        for k in range(size):
            totals[begin + k] += values[k]
            places[n_left] = begin + k
            n_left += left[k]
    return n_left


@kernel
def draw_exactly(table, buffer, firsts, places, totals, ambiguous, unsettled, count):
    """Add variates to some of `totals`, with their first words; return the larger `count`."""
    low_bits = np.uint64(table.low_bits)
    low_mask = (np.uint64(1) << low_bits) - np.uint64(1)
    high_bits = np.uint64(64 - 9) - low_bits
    high_mask = (np.uint64(1) << high_bits) - np.uint64(1)
    # Of a word: rectangle, sign and low bits, which do not depend on the block.
    decided = (np.uint64(1) << (np.uint64(9) + low_bits)) - np.uint64(1)
    blocks, whole, heights, inverse = table.blocks, table.whole, table.heights, 1.0 / table.scale
    words, position = buffer.words, buffer.position[0]
    for k in range(places.size):
        word, drawn = firsts[places[k]], False
        while not drawn:
            # Before the candidate is known: a word is never thrown away for what it chose.
            if position + 2 > words.size:
                fill_words(buffer.state, words)
                position = 0
            layer = np.int64(word & np.uint64(255))
            width = blocks[layer]
            low = (word >> np.uint64(9)) & low_mask
            product = (word >> (np.uint64(9) + low_bits)) * width
            # Lemire, arXiv 1805.10941: each block has equally many multiples without these.
            fair = (product & high_mask) >= width or (
                (product & high_mask) >= (high_mask + np.uint64(1)) % width
            )
            magnitude = np.int64(((product >> high_bits) << low_bits) | low)
            value = -magnitude - 1 if (word >> np.uint64(8)) & np.uint64(1) else magnitude
            drawn = fair
            if fair and magnitude >= whole[layer]:
                word = words[position]
                position += 1
                part = np.float64(word) * 5.421010862427522e-20
                bottom = heights[layer]
                height = bottom + part * (heights[layer + 1] - bottom)
                x = (np.float64(magnitude) + 0.5) * inverse
                above_curve = height - np.exp(-0.5 * x * x)
                drawn = above_curve <= 0.0
                if abs(above_curve) < ambiguous:
                    if count < unsettled.shape[0]:
                        unsettled[count, 0] = places[k]
                        unsettled[count, 1] = layer
                        unsettled[count, 2] = value
                        unsettled[count, 3] = np.int64(word)
                    count += 1
                    drawn, value = True, np.int64(0)
            if drawn:
                totals[places[k]] += value
            else:
                # A point above the curve is replaced by a point of any rectangle, a word that is
                # not fair by one for another block of the same: see the proof above.
                again = words[position]
                position += 1
                word = again if fair else (word & decided) | (again & ~decided)
    buffer.position[0] = position
    return count


def add_noise(
    table: NoiseTable,
    buffer: RandomStream,
    firsts: NDArray[np.uint64],
    totals: NDArray[np.int64],
    ambiguous: float,
    unsettled: NDArray[np.int64],
) -> int:
    """Add a variate to each of `totals` in place; return how many comparisons were left open.

    `firsts`: their first words. Comparisons nearer than `ambiguous` are left open: nothing is
    added, and `unsettled`, shape (U, 4), gets place, rectangle, candidate and word of the first U.
    """
    low_bits, count = np.uint64(table.low_bits), 0
    chosen, left, values = (np.empty(_TOGETHER, kind) for kind in (np.uint64, np.uint64, np.int64))
    places = np.empty(min(_AT_ONCE, totals.size) + 1, np.int64)
    for begin in range(0, totals.size, _AT_ONCE):
        own = slice(begin, begin + _AT_ONCE)
        room = places, chosen, values, left
        n_left = int(take_at_once(firsts[own], table.entries, low_bits, totals[own], *room))
        others = places[:n_left] + begin
        count = draw_exactly(table, buffer, firsts, others, totals, ambiguous, unsettled, count)
    return count


def noisy(table: NoiseTable, buffer: RandomStream, totals: NDArray[np.int64]) -> None:
    """Add a variate to each of some integers, in place, every comparison settled."""
    unsettled = np.zeros((MOST_UNSETTLED, 4), dtype=np.int64)
    count = add_noise(table, buffer, next_words(buffer, totals.size), totals, AMBIGUOUS, unsettled)
    assert count <= MOST_UNSETTLED, "a comparison is left open once in 2^40"
    for place, layer, value, word in unsettled[:count].tolist():
        words = [word % 2**64, int(random_word(buffer)), int(random_word(buffer))]
        if settle(table, value, layer, words):
            totals[place] += value
        else:
            noisy(table, buffer, totals[place : place + 1])


def settle(table: NoiseTable, value: int, layer: int, words: list[int]) -> bool:
    """Return whether a candidate that doubles left open is under the curve.

    `words`: of its height, most significant first. ValueError if they do not settle it.
    """
    magnitude = value if value >= 0 else -value - 1
    heights = _exact_heights([int(b) for b in table.blocks], table.low_bits, table.area)
    read = int.from_bytes(b"".join(word.to_bytes(8, "big") for word in words), "big")
    part = (heights[layer + 1] - heights[layer]) / (1 << (64 * len(words)))
    lowest, highest = (heights[layer] + part * number for number in (read, read + 1))
    exponent = Fraction(2 * magnitude + 1, 2) ** 2 / (2 * Fraction(table.scale) ** 2)
    with localcontext() as context:
        context.prec = 90
        curve = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        slack = Decimal(10) ** -80
        below, above = Fraction(curve - slack), Fraction(curve + slack)
    if highest <= below:
        return True
    if lowest >= above:
        return False
    raise ValueError("the words of a comparison do not settle it")
