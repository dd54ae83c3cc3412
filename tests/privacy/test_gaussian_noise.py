"""The ziggurat draws what it says: exactly, by its own numbers, and as far as draws can show."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from dplasso.privacy import gaussian_noise
from dplasso.privacy.accounting import LARGEST_SCALE, SMALLEST_SCALE, TAIL
from dplasso.privacy.gaussian_noise import (
    LAYERS,
    add_noise,
    noise_table,
    noisy,
    settle,
)
from dplasso.privacy.randomness import next_words, refill, stream_from_key, word_buffers
from privacy.reference import as_fraction, chacha20_block, curve, rectangles, variate

# Chance that a right implementation fails one statistical test, were its seed drawn afresh.
ALARM = 1e-6
SCALES = (SMALLEST_SCALE, 1.37 * 2**32, LARGEST_SCALE)


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(60):
        yield


def buffers(count, seed=0):
    key = np.random.default_rng(seed).integers(0, 2**32, 8, dtype=np.uint64)
    return word_buffers(stream_from_key(key.astype(np.uint32)), count)


# --- The table, exactly --------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_every_point_under_the_curve_lies_in_one_rectangle(scale):
    table = noise_table(scale)
    size, heights = rectangles(table)
    assert len(size) == LAYERS
    assert size[0] >= TAIL * scale
    assert heights[-1] > 1
    np.testing.assert_allclose(table.heights, [float(h) for h in heights], rtol=2**-52)
    for layer in range(1, LAYERS):
        # The first integer outside the rectangle is under the curve nowhere above its bottom.
        assert as_fraction(curve(table, size[layer])) <= heights[layer]
    # Little is thrown away: 256 rectangles of the area are a few per cent more than the curve.
    assert 256 * table.area < 1.1 * scale * math.sqrt(math.pi / 2)


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_taken_without_looking_is_under_the_curve(scale):
    table = noise_table(scale)
    widths, heights = rectangles(table)
    for layer, whole in enumerate(table.whole.tolist()):
        assert 0 <= whole <= widths[layer]
        if whole:
            assert as_fraction(curve(table, whole - 1)) >= heights[layer + 1]
    # And that is most of what comes.
    taken = sum(w / s for w, s in zip(table.whole.tolist(), widths, strict=True))
    assert taken / LAYERS > 0.95


@pytest.mark.parametrize("scale", [16.0, 64.0, 256.0])
def test_the_factor_that_the_accounting_charges_bounds_every_integer(scale):
    """Against floored normal variates, at scales where double precision sees the difference."""
    integers = np.arange(int(TAIL * scale))
    x = (integers + 0.5) / scale
    drawn = np.exp(-0.5 * x * x)
    drawn /= 2 * drawn.sum()
    floored = norm.sf(integers / scale) - norm.sf((integers + 1) / scale)
    charged = TAIL**2 / (24 * scale**2)
    moved = np.abs(np.log(drawn / floored)).max()
    assert charged / 2 < moved <= charged


@pytest.mark.parametrize("scale", [SMALLEST_SCALE * 0.999, LARGEST_SCALE * 1.001, math.nan])
def test_scales_out_of_range_are_refused(scale):
    with pytest.raises(ValueError, match="a standard deviation must be"):
        noise_table(scale)


# --- One word ------------------------------------------------------------------------------------


NONE_LEFT = np.zeros((0, 4), dtype=np.int64)


def fed(words):
    """Return a buffer that has these words."""
    words = np.append(words, np.zeros(128, dtype=np.uint64))
    return buffers(1)[0]._replace(words=words, position=np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize("layer", [1, 100, 255])
def test_each_block_has_equally_many_words(layer):
    """Read all words of a rectangle, at the scale where the fewest bits choose the block."""
    table = noise_table(LARGEST_SCALE)
    high_bits = 55 - table.low_bits
    width = int(table.blocks[layer])
    whole = table._replace(whole=np.full(LAYERS, 2**62))
    words = np.arange(2**high_bits, dtype=np.uint64) << np.uint64(9 + table.low_bits)
    words |= np.uint64(layer)
    each, excess = divmod(2**high_bits, width)
    assert excess
    # A word that is thrown away is followed by this one, of the block in the middle.
    again = fed(np.full(excess, words[words.size // 2 + 1]))
    drawn = np.zeros(words.size, dtype=np.int64)
    add_noise(whole, again, words, drawn, 0.0, NONE_LEFT)
    counts = np.bincount(drawn >> table.low_bits, minlength=width)
    counts[width // 2] -= excess
    assert counts.tolist() == [each] * width


def hard_words(table, rng):
    """Return words at random, and those of the integers where something begins or ends."""
    high_bits, found = 55 - table.low_bits, rng.integers(0, 2**64, 3000, dtype=np.uint64).tolist()
    for layer in range(0, LAYERS, 5):
        width, whole = int(table.blocks[layer]), int(table.whole[layer])
        for block in {0, 1, whole >> table.low_bits, width - 1, *rng.integers(0, width, 3)}:
            # The first word of the block, which may be thrown away, and those next to it.
            first = -(-(int(block) << high_bits) // width)
            for high in (first, first + 1):
                for low in (0, 2**table.low_bits - 1, whole % 2**table.low_bits):
                    if high < 2**high_bits:
                        rest = low << 9 | int(rng.integers(0, 2)) << 8 | layer
                        found.append(high << (9 + table.low_bits) | rest)
    return np.array(found, dtype=np.uint64)


@pytest.mark.parametrize("scale", SCALES)
def test_words_give_the_variates_of_the_reference(scale):
    """In whole numbers and fractions, for words at random and those at every edge."""
    table, rng = noise_table(scale), np.random.default_rng(5)
    words = hard_words(table, rng)
    further = rng.integers(0, 2**64, 2 * words.size, dtype=np.uint64)
    start = rng.integers(-(2**40), 2**40, words.size)
    drawn, buffer = start.copy(), fed(further)
    assert add_noise(table, buffer, words, drawn, 0.0, NONE_LEFT) == 0
    rest, (_, heights) = iter(further.tolist()), rectangles(table)
    expected = [variate(table, heights, word, rest) for word in words.tolist()]
    assert (drawn - start).tolist() == expected
    assert len(list(rest)) == further.size - int(buffer.position[0])


# --- Draws ---------------------------------------------------------------------------------------

DRAWS = 2**21
BINS = 64


def draws(table, *, count=DRAWS, seed=1):
    totals = np.zeros(count, dtype=np.int64)
    noisy(table, buffers(1, seed)[0], totals)
    return totals


def p_values(values, scale):
    """Test shape, low bits, signs and neighbours in the order they were drawn."""
    uniform = norm.cdf((values + 0.5) / scale)
    shape = np.bincount((uniform * BINS).astype(int), minlength=BINS)
    low = np.bincount(values & 255, minlength=256)
    places = (uniform * 8).astype(int)
    pairs = np.bincount(8 * places[::2] + places[1::2], minlength=64)
    squares = float(((values / scale) ** 2).sum())
    spread = chi2.cdf(squares, values.size)
    return {
        "shape": goodness(shape),
        "low bits": goodness(low),
        "pairs": goodness(pairs),
        "signs": 2
        * min(
            binom.cdf((k := (values < 0).sum()), values.size, 0.5),
            binom.sf(k - 1, values.size, 0.5),
        ),
        "variance": 2 * min(spread, 1 - spread),
    }


def goodness(counts):
    expected = counts.sum() / counts.size
    return float(chi2.sf(((counts - expected) ** 2).sum() / expected, counts.size - 1))


@pytest.mark.parametrize("scale", SCALES)
def test_draws_are_normal(scale):
    for name, p in p_values(draws(noise_table(scale)), scale).items():
        assert p > ALARM / 5, name


# --- Comparisons that double precision leaves open -----------------------------------------------


def test_forcing_open_comparisons_changes_no_distribution(monkeypatch):
    scale = 2.0**33
    table = noise_table(scale)
    unsettled = np.zeros((2**15, 4), dtype=np.int64)
    buffer, totals = buffers(1, 3)[0], np.zeros(2**15, dtype=np.int64)
    left = add_noise(table, buffer, next_words(buffer, 2**15), totals, 1e-3, unsettled)
    assert left > 100
    monkeypatch.setattr(gaussian_noise, "AMBIGUOUS", 1e-3)
    monkeypatch.setattr(gaussian_noise, "MOST_UNSETTLED", 2**15)
    for name, p in p_values(draws(table, count=2**15, seed=3), scale).items():
        assert p > ALARM / 5, name


def test_the_exact_decision_agrees_with_many_digits():
    table = noise_table(1.234 * 2**34)
    widths, heights = rectangles(table)
    rng = np.random.default_rng(0)
    decided = {True: 0, False: 0}
    for _ in range(60):
        layer = int(rng.integers(0, 255))
        magnitude = int(rng.integers(int(table.whole[layer]), widths[layer]))
        step = heights[layer + 1] - heights[layer]
        part = (as_fraction(curve(table, magnitude)) - heights[layer]) / step
        if not 0 < part < 1:
            continue
        # The word next to the curve, so that the further words decide.
        word = int(part * 2**64)
        further = [int(w) for w in rng.integers(0, 2**64, 2, dtype=np.uint64)]
        rest = part * 2**64 - word
        under = Fraction(further[0], 2**64) < rest
        for value in (magnitude, -magnitude - 1):
            assert settle(table, value, layer, [word, *further]) == under
            assert settle(table, value, layer, [word - 1, *further]) or word == 0
            assert not settle(table, value, layer, [word + 1, *further])
        decided[under] += 1
    assert min(decided.values()) > 5


def test_words_that_do_not_settle_are_refused():
    table = noise_table(2.0**30)
    layer, (widths, heights) = 100, rectangles(table)
    magnitude = (int(table.whole[layer]) + widths[layer]) // 2
    step = heights[layer + 1] - heights[layer]
    part = (as_fraction(curve(table, magnitude)) - heights[layer]) / step
    with pytest.raises(ValueError, match="do not settle"):
        settle(table, magnitude, layer, [int(part * 2**64)])


# --- Streams -------------------------------------------------------------------------------------


def test_a_refill_is_sixteen_blocks_of_the_rfc():
    buffer = buffers(3)[2]
    key = buffer.state[4:12].astype("<u4").tobytes()
    # The counter crosses 32 bits: its high word is where RFC 8439 has the first of its nonce.
    buffer.state[12] = 2**32 - 5
    refill(buffer)
    for lane in range(16):
        counter = 2**32 - 5 + lane
        nonce = b"".join(
            int(word).to_bytes(4, "little")
            for word in (counter >> 32, buffer.state[14], buffer.state[15])
        )
        words = np.frombuffer(chacha20_block(key, counter % 2**32, nonce), dtype="<u8")
        np.testing.assert_array_equal(buffer.words[8 * lane : 8 * lane + 8], words)
    assert buffer.state[12:14].tolist() == [11, 1]
    assert buffer.position[0] == 0


def test_buffers_of_a_key_and_of_other_keys_never_meet():
    stream = stream_from_key(np.arange(8, dtype=np.uint32))
    found = []
    for buffer in word_buffers(stream, 40) + word_buffers(stream, 40):
        for _ in range(4):
            refill(buffer)
            found.append(buffer.words.copy())
    words = np.concatenate(found)
    assert np.unique(words).size == words.size
    assert {int(b.state[14]) for b in word_buffers(stream, 40)} == set(range(40))
