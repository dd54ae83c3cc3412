"""ChaCha20 by its published vectors, what is drawn from its words, and whose key it has."""

import copy
import os
import pickle
import sys

import numpy as np
import pytest
from scipy.stats import binom, chi2, kstest

from dplasso import DPFrankWolfeClassifier
from dplasso.privacy.randomness import (
    RandomStream,
    below,
    bernoulli,
    exponential,
    fill_words,
    next_words,
    random_stream,
    random_word,
    refill,
    stream_from_key,
    uniform,
)
from estimators.workers import noise_data
from privacy.reference import chacha20_block

# Chance that a right implementation fails one statistical test, were its seed drawn afresh.
ALARM = 1e-6

# RFC 8439: section 2.3.2; the second block of 2.4.2; appendix A.1, vector 1.
COUNTING_KEY = bytes(range(32))
VECTORS = [
    (
        *(COUNTING_KEY, 1, "000000090000004a00000000"),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        *(COUNTING_KEY, 2, "000000000000004a00000000"),
        "69a6749f3f630f4122cafe28ec4dc47e26d4346d70b98c73f3e9c53ac40c5945"
        "398b6eda1a832c89c167eacd901d7e2bf363740373201aa188fbbce83991c4ed",
    ),
    (
        *(bytes(32), 0, "00" * 12),
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
]


def many(draw, stream, *given, count, dtype=None):
    """Return what so many draws give."""
    return np.array([draw(stream, *given) for _ in range(count)], dtype)


def many_words(stream, count):
    return many(random_word, stream, count=count, dtype=np.uint64)


def scripted(*words):
    """Return a stream whose next words are these."""
    stream = random_stream(0)
    stream.words[-len(words) :] = words
    stream.position[0] -= len(words)
    return stream


def stream_at(key, counter, nonce):
    stream = stream_from_key(np.frombuffer(key, dtype="<u4"))
    stream.state[12] = counter
    stream.state[13:] = np.frombuffer(nonce, dtype="<u4")
    return stream


class TestChaCha20:
    @pytest.mark.parametrize(("key", "counter", "nonce", "block"), VECTORS)
    def test_published_vectors(self, key, counter, nonce, block):
        nonce, block = bytes.fromhex(nonce), bytes.fromhex(block)
        assert chacha20_block(key, counter, nonce) == block
        words = many_words(stream_at(key, counter, nonce), 8)
        assert words.astype("<u8").tobytes() == block

    def test_blocks_follow_each_other(self):
        words = many_words(stream_at(COUNTING_KEY, 0, bytes(12)), 320)
        expected = b"".join(chacha20_block(COUNTING_KEY, i, bytes(12)) for i in range(40))
        assert words.astype("<u8").tobytes() == expected

    def test_the_counter_has_64_bits(self):
        stream = stream_at(COUNTING_KEY, 2**32 - 1, bytes(12))
        words = many_words(stream, 16)
        # The carry goes to the next word, which the RFC's layout counts as nonce.
        carried = (1).to_bytes(4, "little") + bytes(8)
        assert words[8:].astype("<u8").tobytes() == chacha20_block(COUNTING_KEY, 0, carried)

    @pytest.mark.parametrize("counter", [0, 7, 2**32 - 20])
    def test_many_words_at_a_time_are_those_that_come_one_by_one(self, counter):
        stream, other = (stream_at(COUNTING_KEY, counter, bytes(range(12))) for _ in range(2))
        words = np.empty(5 * 128, dtype=np.uint64)
        fill_words(stream.state, words)
        np.testing.assert_array_equal(words, many_words(other, words.size))
        np.testing.assert_array_equal(stream.state, other.state)

    @pytest.mark.parametrize("counts", [(1, 3), (127, 2, 300), (128, 128), (5, 0, 1000)])
    def test_every_word_is_drawn_once(self, counts):
        stream, lots = random_stream(3), 12
        found = np.concatenate([next_words(stream, count) for count in counts])
        assert found.size == sum(counts)
        again = random_stream(3)
        every = []
        for _ in range(lots):
            refill(again)
            every.append(again.words.copy())
        assert np.unique(found).size == found.size
        assert np.isin(found, np.concatenate(every)).all()


class TestBelow:
    @pytest.mark.parametrize("bound", [1, 3, 97])
    def test_is_uniform(self, bound):
        counts = np.bincount(many(below, random_stream(1), bound, count=100_000), minlength=bound)
        assert counts.size == bound
        statistic = ((counts - 100_000 / bound) ** 2 / (100_000 / bound)).sum()
        assert chi2.sf(statistic, max(1, bound - 1)) > ALARM

    @pytest.mark.parametrize("bound", [3, 10, 2**62 + 12345, 2**63 - 1])
    def test_rejects_exactly_the_excess(self, bound):
        excess = 2**64 % bound
        # The last word would not do as the second: its remainder is that of the rejected one.
        assert below(scripted(excess - 1, 2**64 - 2), bound) == (2**64 - 2) % bound != excess - 1
        assert below(scripted(excess, 2**64 - 1), bound) == excess % bound


class TestBernoulli:
    @pytest.mark.parametrize("probability", [1e-3, 1 - 1e-3, 1 / 3])
    def test_frequency(self, probability):
        hits, count = sum(many(bernoulli, random_stream(4), probability, count=100_000)), 100_000
        tails = binom.cdf(hits, count, probability), binom.sf(hits - 1, count, probability)
        assert min(tails) > ALARM / 2

    def test_certain_and_impossible(self):
        stream = random_stream(5)
        for probability, hits in ((0.0, 0), (1.0, 1000), (1.5, 1000), (-0.0, 0)):
            assert many(bernoulli, stream, probability, count=1000).sum() == hits

    def test_a_tie_is_settled_by_the_next_word(self):
        for probability, yes, no in (
            (1.5 * 2.0**-64, [(0,), (1, 2**63 - 1)], [(1, 2**63), (1, 2**63 + 1), (2,)]),
            (0.5, [(2**63 - 1,)], [(2**63 + 1,)]),
            # Far below a word.
            (2.0**-130, [(0, 0, 2**61)], [(0, 0, 2**62), (0, 1)]),
            (5e-324, [], [(0, 0, 0, 0, 1)]),
        ):
            assert all(bernoulli(scripted(*words), probability) for words in yes)
            assert not any(bernoulli(scripted(*words), probability) for words in no)

    def test_uses_the_words_it_compares(self):
        stream = scripted(2**63, 7, 8)
        bernoulli(stream, 0.25)
        assert random_word(stream) == 7


class TestUniform:
    def test_distribution(self):
        values = many(uniform, random_stream(6), count=100_000)
        assert values.min() > 0
        assert values.max() <= 1
        assert kstest(values, "uniform").pvalue > ALARM

    def test_keeps_53_bits_near_zero(self):
        # A leading word of 1 leaves all but one bit to the second.
        value = uniform(scripted(1, 2**62 + 2**20))
        assert value == (1 + 0.25 + 2.0**-44 + 2.0**-65) * 2.0**-64
        neighbours = [uniform(scripted(1, word)) for word in (2**62, 2**62 + 2**12)]
        assert neighbours[0] != neighbours[1]

    def test_is_never_zero(self):
        assert uniform(scripted(0, 0)) == 2.0**-129

    def test_exponentials(self):
        values = many(exponential, random_stream(7), count=100_000)
        assert kstest(values, "expon").pvalue > ALARM
        # Near zero an exponential equals its uniform to first order, in full precision.
        small = exponential(scripted(1, 2**62))
        assert small == pytest.approx(1.25 * 2.0**-64, rel=1e-15)


class TestSeeds:
    def test_none_asks_the_operating_system(self, monkeypatch):
        asked = []

        def urandom(count):
            asked.append(count)
            return bytes(range(count))

        monkeypatch.setattr(os, "urandom", urandom)
        stream = random_stream(None)
        assert asked == [32]
        assert stream.state[4:12].tobytes() == bytes(range(32))
        assert stream.state[12:].tolist() == [0] * 4

    @pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
    def test_generators_repeat_and_move_on(self, make):
        generator, again = make(3), make(3)
        first = random_stream(generator).state.tobytes()
        assert first == random_stream(again).state.tobytes()
        assert first != random_stream(generator).state.tobytes()


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_cannot_be_copied(copied):
    with pytest.raises(TypeError, match="would repeat"):
        copied(random_stream(None))


def streams_within(value, seen=None):
    """Count the random streams that can be reached from a value."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, str | bytes | np.ndarray):
        return 0
    seen.add(id(value))
    if isinstance(value, RandomStream):
        return 1
    if type(value).__module__.startswith("dplasso") and hasattr(value, "__dict__"):
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    parts = value if isinstance(value, list | tuple | set) else ()
    return sum(streams_within(part, seen) for part in parts)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_fitted_estimator_holds_no_stream(seed):
    model = DPFrankWolfeClassifier(n_iter=5, random_state=seed).fit(*noise_data())
    assert streams_within(model) == 0
    for name, module in list(sys.modules.items()):
        if name.startswith("dplasso"):
            assert streams_within(dict(vars(module))) == 0, name
    model.kept = [random_stream(None)]
    assert streams_within(model) == 1


def test_all_256_bits_come_from_the_system():
    keys = np.array([random_stream(None).state[4:12] for _ in range(64)])
    # Two of 64 words agree with probability 5e-7, thrice with 1e-19.
    assert all(np.unique(word).size > 61 for word in keys.T)
    # Two of all 512 agree with probability 3e-5, four pairs with 1e-18.
    assert np.unique(keys).size > 508
    # Each of 256 bits is both 0 and 1 among 64 keys but with probability 3e-17.
    bits = np.unpackbits(keys.astype("<u4").view(np.uint8), axis=1)
    assert bits.shape == (64, 256)
    assert bits.any(axis=0).all()
    assert not bits.all(axis=0).any()
