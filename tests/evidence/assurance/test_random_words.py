"""Smoke tests of the random words, and their power against weak generators.

A p-value below 1e-6 fails: with fixed seeds these tests always give the same answer, and a sound
generator would fail one of them with probability 4e-5 if the seeds were drawn afresh.
"""

import numpy as np
import pytest
from evidence.assurance.randomness import ALARM, first_words, word_tests

COUNT = 2**16


def failed(words):
    return {name for name, p in word_tests(words).items() if p < ALARM}


def test_one_stream_neighbouring_seeds_and_two_streams_pass():
    assert failed(first_words(1, 4 * COUNT, seeds=True)) == set()
    assert failed(first_words(COUNT // 8, 8, seeds=True)) == set()
    one, other = first_words(2, COUNT, seeds=True).reshape(2, COUNT)
    assert failed(np.stack([one, other], axis=1).ravel()) == set()
    assert failed(one ^ other) == set()


def sound():
    return first_words(1, COUNT, seeds=True)


def linear_congruential():
    words, state = np.empty(COUNT, dtype=np.uint64), 1
    for i in range(COUNT):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        words[i] = state
    return words


def one_leaning_bit():
    # Bit 17 is set with probability 0.53 instead of a half.
    leaning = np.random.default_rng(0).random(COUNT) < 0.06
    return sound() | (np.uint64(1 << 17) * leaning.astype(np.uint64))


def one_byte_seeds():
    seeds = np.random.default_rng(0).integers(0, 256, COUNT // 8)
    return first_words(256, 8, seeds=True).reshape(256, 8)[seeds].ravel()


def thirty_two_bits():
    return sound() & np.uint64(2**64 - 2**32)


def sticky_words():
    # One word in ten has the leading bits of the one before it.
    words = sound()
    words[1::10] = words[:-1:10] ^ (words[1::10] >> np.uint64(4))
    return words


def bytes_in_pairs():
    # Of every pair of bytes, the second is the complement of the first one time in a hundred.
    octets = sound().view(np.uint8).copy()
    octets[1::200] = ~octets[0::200]
    return octets.view(np.uint64)


@pytest.mark.parametrize(
    ("make", "test"),
    [
        (linear_congruential, "each bit's changes"),
        (one_leaning_bit, "each bit"),
        (one_byte_seeds, "equal words"),
        (thirty_two_bits, "bytes"),
        (sticky_words, "correlation, next word"),
        (bytes_in_pairs, "pairs of bytes"),
    ],
)
def test_a_weak_generator_is_found(make, test):
    assert test in failed(make())
