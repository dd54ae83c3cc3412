"""Random words for private draws: ChaCha20 keyed by the operating system, state held explicitly.

A stream is four small arrays that kernels carry along; nothing hides in a global, so two fits,
tasks or processes share a stream only if they are passed the same key. The generator is the
ChaCha20 block function of RFC 8439 with a 64-bit block counter.

Draws work on whole 64-bit words. A comparison that 64 bits do not settle is refined with more
words: `bernoulli` is exact for the double it is given, `uniform` keeps 53 significant bits however
small its value. Called from Python, draws run interpreted, which costs less than compiling them;
only `fill_words` is a kernel of its own.
"""

import os
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dplasso.errors import ParameterError, shown
from dplasso.runtime.compilation import kernel

WORDS_PER_BLOCK = 8
_TWO_64 = 18446744073709551616.0
_TWO_MINUS_64 = 5.421010862427522e-20
# Below this a 64-bit word carries fewer than 53 significant bits.
_FULL_PRECISION = np.uint64(1 << 53)
_LARGEST_WORD = np.uint64(2**64 - 1)


# Blocks computed together: the loops over them are the processor's vectors.
LANES = 16


class RandomStream(NamedTuple):
    """State of one ChaCha20 stream, which is computed `LANES` blocks at a time.

    `state`, shape (16,): constants, 256-bit key, 64-bit block counter and nonce; the nonce tells
    the streams of one key apart.
    `words`, shape (8 LANES,): the current words.
    `position`, shape (1,): those already used.
    """

    state: NDArray[np.uint32]
    words: NDArray[np.uint64]
    position: NDArray[np.int64]

    def __reduce__(self) -> NoReturn:
        # Two copies would draw the same noise: neither pickle nor `copy` may make one.
        raise TypeError(
            "a random stream cannot be pickled or copied, since its copy would repeat its words; "
            "make another with random_stream()"
        )


def stream_from_key(key: NDArray[np.uint32]) -> RandomStream:
    """Return the stream of a 256-bit key, eight little-endian words; counter and nonce are zero."""
    state = np.zeros(16, dtype=np.uint32)
    state[:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")
    state[4:12] = key
    size = LANES * WORDS_PER_BLOCK
    return RandomStream(state, np.zeros(size, dtype=np.uint64), np.array([size], dtype=np.int64))


def check_random_state(random_state: Any) -> Any:
    """Return what random numbers can be made from, or raise ValueError; nothing is drawn."""
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if whole and random_state < 0:
        raise ParameterError(f"`random_state` must not be negative, got {random_state}")
    generators = np.random.Generator, np.random.RandomState
    if not (random_state is None or whole or isinstance(random_state, generators)):
        raise ParameterError(
            "`random_state` must be None, a non-negative integer, a numpy Generator or a numpy "
            f"RandomState, got {shown(random_state)}"
        )
    return random_state


def random_stream(random_state: Any = None) -> RandomStream:
    """Return a stream that no other call shares, at its beginning.

    ``None`` takes a fresh 256-bit key from the operating system: the only choice that gives
    privacy.
    """
    check_random_state(random_state)
    if random_state is None:
        key = np.frombuffer(os.urandom(32), dtype="<u4")
    elif isinstance(random_state, np.random.Generator):
        key = random_state.integers(0, 2**32, size=8, dtype=np.uint64).astype(np.uint32)
    elif isinstance(random_state, np.random.RandomState):
        key = random_state.randint(0, 2**32, size=8, dtype=np.uint64).astype(np.uint32)
    else:
        key = np.random.SeedSequence(int(random_state)).generate_state(8, dtype=np.uint32)
    return stream_from_key(np.asarray(key, dtype=np.uint32))


@register_jitable(forceinline=True)
def _quarter_round(a, b, c, d):
    a = np.uint32(a + b)
    d = np.uint32(d ^ a)
    d = np.uint32((d << np.uint32(16)) | (d >> np.uint32(16)))
    c = np.uint32(c + d)
    b = np.uint32(b ^ c)
    b = np.uint32((b << np.uint32(12)) | (b >> np.uint32(20)))
    a = np.uint32(a + b)
    d = np.uint32(d ^ a)
    d = np.uint32((d << np.uint32(8)) | (d >> np.uint32(24)))
    c = np.uint32(c + d)
    b = np.uint32(b ^ c)
    b = np.uint32((b << np.uint32(7)) | (b >> np.uint32(25)))
    return a, b, c, d


@register_jitable(forceinline=True)
def _two_rounds(block):
    """Return the 16 words of a block after a round of its columns and one of its diagonals."""
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = block
    a, e, i, n = _quarter_round(a, e, i, n)
    b, f, j, o = _quarter_round(b, f, j, o)
    c, g, k, p = _quarter_round(c, g, k, p)
    d, h, m, q = _quarter_round(d, h, m, q)
    a, f, k, q = _quarter_round(a, f, k, q)
    b, g, m, n = _quarter_round(b, g, m, n)
    c, h, i, o = _quarter_round(c, h, i, o)
    d, e, j, p = _quarter_round(d, e, j, p)
    return a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q


@kernel
def fill_words(state, words):
    """Set `words`, whole lots of LANES blocks, to the next of a stream."""
    work = np.empty((16, LANES), dtype=np.uint32)
    counter = np.uint64(state[12]) | (np.uint64(state[13]) << np.uint64(32))
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    i, j, k, m = state[8], state[9], state[10], state[11]
    p, q = state[14], state[15]
    lot = np.uint64(LANES * WORDS_PER_BLOCK)
    for begin in range(np.uint64(0), np.uint64(words.size), lot):
        # Straight on, lanes the only loop: so it is compiled to vectors of lanes.
        for lane in range(np.uint64(LANES)):
            count = counter + np.uint64(lane)
            n, o = np.uint32(count & np.uint64(0xFFFFFFFF)), np.uint32(count >> np.uint64(32))
            block = a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q
            block = _two_rounds(_two_rounds(_two_rounds(_two_rounds(_two_rounds(block)))))
            block = _two_rounds(_two_rounds(_two_rounds(_two_rounds(_two_rounds(block)))))
            work[0, lane] = block[0] + a
            work[1, lane] = block[1] + b
            work[2, lane] = block[2] + c
            work[3, lane] = block[3] + d
            work[4, lane] = block[4] + e
            work[5, lane] = block[5] + f
            work[6, lane] = block[6] + g
            work[7, lane] = block[7] + h
            work[8, lane] = block[8] + i
            work[9, lane] = block[9] + j
            work[10, lane] = block[10] + k
            work[11, lane] = block[11] + m
            work[12, lane] = block[12] + n
            work[13, lane] = block[13] + o
            work[14, lane] = block[14] + p
            work[15, lane] = block[15] + q
        for lane in range(np.uint64(LANES)):
            for pair in range(np.uint64(WORDS_PER_BLOCK)):
                low = np.uint64(work[np.uint64(2) * pair, lane])
                high = np.uint64(work[np.uint64(2) * pair + np.uint64(1), lane])
                place = begin + lane * np.uint64(WORDS_PER_BLOCK) + pair
                words[place] = low | (high << np.uint64(32))
        counter += np.uint64(LANES)
    state[12] = np.uint32(counter & np.uint64(0xFFFFFFFF))
    state[13] = np.uint32(counter >> np.uint64(32))


@register_jitable
def refill(stream):
    """Compute the next words of a stream."""
    fill_words(stream.state, stream.words)
    stream.position[0] = 0


@register_jitable
def random_word(stream: Any) -> Any:
    """Draw 64 random bits as a uint64."""
    if stream.position[0] == stream.words.size:
        refill(stream)
    position = stream.position[0]
    stream.position[0] = position + 1
    return stream.words[position]


def next_words(stream: RandomStream, count: int) -> NDArray[np.uint64]:
    """Draw many words of 64 random bits, each of them once, not in the order of the stream."""
    lot = LANES * WORDS_PER_BLOCK
    words, done = np.empty(count, dtype=np.uint64), count // lot * lot
    fill_words(stream.state, words[:done])
    while done < count:
        if stream.position[0] == lot:
            refill(stream)
        position = int(stream.position[0])
        some = stream.words[position : position + count - done]
        words[done : done + some.size] = some
        stream.position[0] += some.size
        done += some.size
    return words


@register_jitable
def uniform(stream):
    """Draw a double in (0, 1] with 53 significant bits at every magnitude."""
    word = random_word(stream)
    value = np.float64(word)
    if word < _FULL_PRECISION:
        value += (np.float64(random_word(stream)) + 0.5) * _TWO_MINUS_64
    return value * _TWO_MINUS_64


@register_jitable
def exponential(stream):
    """Draw a standard exponential variate, accurate to the last bits near zero."""
    return -np.log1p(-uniform(stream))


@register_jitable
def below(stream: Any, count: Any) -> Any:
    """Draw an integer in [0, count) without modulo bias."""
    bound = np.uint64(count)
    # 2^64 mod count: the words below it would favour small remainders.
    excess = np.uint64((_LARGEST_WORD - bound + np.uint64(1)) % bound)
    word = random_word(stream)
    while word < excess:
        word = random_word(stream)
    return np.int64(word % bound)


@register_jitable
def bernoulli(stream, probability):
    """Return True with exactly the probability that the double names."""
    if probability >= 1.0:
        return True
    rest = probability
    while rest > 0.0:
        rest *= _TWO_64
        whole = np.floor(rest)
        word = random_word(stream)
        threshold = np.uint64(whole)
        if word != threshold:
            return word < threshold
        rest -= whole
    return False


def word_buffers(stream: RandomStream, count: int) -> list[RandomStream]:
    """Return independent streams, at most 2^32, of one fresh key and different nonces."""
    key = np.array([random_word(stream) for _ in range(4)], dtype=np.uint64).view(np.uint32)
    buffers = [stream_from_key(key) for _ in range(count)]
    for number, buffer in enumerate(buffers):
        buffer.state[14] = number
        # The other nonce word sets these streams apart from the first of the same key.
        buffer.state[15] = 1
    return buffers
