"""ChaCha20 as the RFC writes it and the Gaussian curve as it is printed, slow and obvious."""

import math
from fractions import Fraction

import mpmath
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, ZCDpEvent
from dp_accounting.rdp import RdpAccountant

from dplasso.privacy.accounting import renyi_orders


def exact_delta(mu, epsilon):
    """Compute the curve of arXiv 1805.06530, theorem 8, in 60 digits more than what cancels."""
    with mpmath.workdps(60 + int(0.5 * (epsilon / mu + mu / 2) ** 2 / math.log(10))):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mpmath.ncdf(upper) - mpmath.exp(epsilon) * mpmath.ncdf(lower)


def event_of(budget):
    """Return a whole private fit as an event of dp_accounting."""
    if not budget.draws.vertices:
        return GaussianDpEvent(noise_multiplier=1.0 / budget.whole)
    if budget.eps0_accounted is not None:
        step = ZCDpEvent(rho=budget.eps0_accounted**2 / 8.0)
        return SelfComposedDpEvent(step, budget.draws.vertices)
    return ZCDpEvent(rho=budget.rho + budget.before**2 / 2.0)


def epsilon_of_event(event, delta):
    """Return what dp_accounting reports for an event by all orders."""
    return RdpAccountant(renyi_orders()).compose(event).get_epsilon(delta)


def _quarter_round(x, a, b, c, d):
    for target, source, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[target] = (x[target] + x[source]) % 2**32
        x[mixed] ^= x[target]
        x[mixed] = (x[mixed] << turn | x[mixed] >> (32 - turn)) % 2**32


def chacha20_block(key, counter, nonce):
    """Return the 64 bytes of RFC 8439 section 2.3 for a 32-byte key and a 12-byte nonce."""
    text = b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce
    start = [int.from_bytes(text[i : i + 4], "little") for i in range(0, 64, 4)]
    x = list(start)
    for _ in range(10):
        for column in range(4):
            _quarter_round(x, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            lane = [4 * row + (column + row) % 4 for row in range(4)]
            _quarter_round(x, *lane)
    return b"".join(((a + b) % 2**32).to_bytes(4, "little") for a, b in zip(x, start, strict=True))


def curve(table, magnitude):
    """Return f as the docstring of `gaussian_noise` writes it."""
    x = (mpmath.mpf(magnitude) + 0.5) / mpmath.mpf(table.scale)
    return mpmath.exp(-x * x / 2)


def as_fraction(value):
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction((-1) ** sign * int(mantissa)) * Fraction(2) ** exponent


def rectangles(table):
    """Return the exact widths of the rectangles, and the heights where they begin and end."""
    widths, heights = [int(blocks) << table.low_bits for blocks in table.blocks], [Fraction(0)]
    for width in widths:
        heights.append(heights[-1] + Fraction(table.area) / width)
    return widths, heights


def variate(table, heights, word, further):
    """Draw a variate from whole words, as the docstring of `gaussian_noise` says, exactly.

    `heights`: of the rectangles.
    """
    high_bits = 55 - table.low_bits
    while True:
        layer, sign, low = word & 255, word >> 8 & 1, (word >> 9) % 2**table.low_bits
        n_blocks, high = int(table.blocks[layer]), word >> (9 + table.low_bits)
        block, rest = divmod(high * n_blocks, 2**high_bits)
        while rest < 2**high_bits % n_blocks:
            high = next(further) >> (9 + table.low_bits)
            block, rest = divmod(high * n_blocks, 2**high_bits)
        magnitude = block << table.low_bits | low
        inside = magnitude < table.whole[layer]
        if not inside:
            step = heights[layer + 1] - heights[layer]
            height = heights[layer] + Fraction(next(further), 2**64) * step
            inside = height < as_fraction(curve(table, magnitude))
        if inside:
            return -magnitude - 1 if sign else magnitude
        word = next(further)
