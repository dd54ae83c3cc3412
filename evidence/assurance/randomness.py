"""Statistical smoke tests of the random words, against fresh entropy.

They would find a generator that is broken; they cannot show that one is good. That the words are
ChaCha20's is shown by its published vectors (`tests/privacy/test_randomness.py`), and that nobody
can tell ChaCha20's words from chance is an assumption (`docs/threat-model.md`).

Every test gives a two-sided p-value, uniform on [0, 1] for a perfect generator.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.stats import chi2, norm, poisson

from dplasso.privacy.randomness import RandomStream, random_stream, random_word

# A p-value below this is a failure. With ten tests of two sources a sound generator is accused in
# one run of fifty thousand.
ALARM = 1e-6
Words = NDArray[np.uint64]


@njit(cache=True)
def _draw(stream: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = random_word(stream)


def draw_words(stream: RandomStream, count: int) -> Words:
    """Return the next `count` words of a stream, shape (count,)."""
    out = np.empty(count, dtype=np.uint64)
    _draw(stream, out)
    return out


def first_words(n_streams: int, each: int, seeds: bool = False) -> Words:
    """Return the first words of many streams, of the seeds 0, 1, 2 ... or of the system's."""
    parts = [draw_words(random_stream(i if seeds else None), each) for i in range(n_streams)]
    return np.concatenate(parts)


def _bits(words: Words) -> NDArray[np.uint8]:
    return np.unpackbits(words.view(np.uint8)).reshape(words.size, 64)


def _two_sided(lower: float, upper: float) -> float:
    return float(min(1.0, 2.0 * min(lower, upper)))


def _chi_square(statistic: float, freedom: int) -> float:
    return _two_sided(chi2.cdf(statistic, freedom), chi2.sf(statistic, freedom))


def _fair_bits(ones: NDArray[Any], trials: int) -> float:
    """Test counts of independent fair coins."""
    return _chi_square(float((((2.0 * ones - trials) ** 2) / trials).sum()), ones.size)


def _even_cells(counts: NDArray[Any]) -> float:
    expected = counts.sum() / counts.size
    return _chi_square(float(((counts - expected) ** 2 / expected).sum()), counts.size - 1)


def _correlation(words: Words, lag: int) -> float:
    values = words.astype(np.float64) / 2.0**64 - 0.5
    # Products of independent uniforms have variance 1/144.
    score = float((values[lag:] * values[:-lag]).sum()) * 12.0 / np.sqrt(values.size - lag)
    return _two_sided(norm.cdf(score), norm.sf(score))


def _runs(words: Words) -> float:
    bits = _bits(words).ravel()
    changes = int(np.count_nonzero(bits[1:] != bits[:-1]))
    score = (2.0 * changes - (bits.size - 1)) / np.sqrt(bits.size - 1)
    return _two_sided(norm.cdf(score), norm.sf(score))


def _collisions(words: Words, bits: int) -> float:
    """Test the number of pairs of words that agree in their upper `bits` bits."""
    _, counts = np.unique(words >> np.uint64(64 - bits), return_counts=True)
    found = int((counts * (counts - 1) // 2).sum())
    mean = words.size * (words.size - 1) / 2.0 / 2.0**bits
    return _two_sided(poisson.cdf(found, mean), poisson.sf(found - 1, mean))


def word_tests(words: Words) -> dict[str, float]:
    """Return two-sided p-values of words, shape (n,), by the name of the test.

    Raises
    ------
    ValueError
        For fewer than 2^15 words: the approximations would not hold.
    """
    if words.size < 2**15:
        raise ValueError(f"the tests need at least {2**15} words, got {words.size}")
    bits = _bits(words)
    octets = words.view(np.uint8)
    pairs = octets.astype(np.int64)[0::2] * 256 + octets[1::2]
    return {
        "each bit": _fair_bits(bits.sum(axis=0, dtype=np.int64), words.size),
        "each bit's changes": _fair_bits(
            (bits[1:] != bits[:-1]).sum(axis=0, dtype=np.int64), words.size - 1
        ),
        "bytes": _even_cells(np.bincount(octets, minlength=256)),
        "pairs of bytes": _even_cells(np.bincount(pairs, minlength=65536)),
        "runs of bits": _runs(words),
        "correlation, next word": _correlation(words, 1),
        "correlation, next block": _correlation(words, 8),
        "correlation, 64 words on": _correlation(words, 64),
        "collisions in 24 bits": _collisions(words[: 2**15], 24),
        "equal words": _collisions(words, 64),
    }


TITLE = "random words"
QUICK = {"words": 2**16, "streams": 2**14}


def measure(*, words: int = 2**22, streams: int = 2**15) -> dict[str, Any]:
    """Test so many words of one stream, and the first two of many streams."""
    results = {
        "one stream": word_tests(draw_words(random_stream(None), words)),
        "first words of streams": word_tests(first_words(streams, 2)),
    }
    smallest = min(value for tests in results.values() for value in tests.values())
    return {
        "words": words + 2 * streams,
        "tests": sum(len(tests) for tests in results.values()),
        "smallest_p_value": smallest,
        "alarm": ALARM,
        "passed": smallest > ALARM,
        "p_values": results,
    }


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the counts and the smallest p-value, in words."""
    (found,) = results
    return [
        f"{found['words']:,} words from the system's entropy, {found['tests']} tests; "
        f"smallest p-value {found['smallest_p_value']:.2g} (alarm below {found['alarm']:g})"
    ]
