"""Numbers of records, released with noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.gaussian_noise import LARGEST_SCALE
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import Gaussian, release


@dataclass(frozen=True)
class Classes:
    """What a fit that counts the records of each class knows of them.

    `counts`: counts them: exact numbers in parts of a record, and how many bits of it they are.
    `offset`: the margins to start from, by noisy counts and the standard deviation of their noise.
    `loss`: where all classes are to weigh the same, instead of that: the loss in which a record of
    each counts for so much.
    """

    counts: Callable[[], tuple[list[int], int]]
    offset: Callable[[NDArray[np.float64], float], Any]
    loss: Callable[[NDArray[np.float64]], Any] | None = None


def noisy_counts(
    counts: Sequence[int], sensitivity: float, mu: float, stream: RandomStream, part_bits: int = 0
) -> NDArray[np.float64]:
    """Count records privately with a budget of `mu`: at least 1 each if there is noise.

    `counts`: exact, in parts of a record, `part_bits` bits of it.
    `sensitivity`: how far they can move between neighbours, in L2; 0 releases them as they are.
    """
    exact = np.array(counts, dtype=np.int64)
    if sensitivity == 0 or math.isinf(mu):
        return release(exact, sensitivity * 2.0**part_bits, None) / 2.0**part_bits
    # In units of 2^-32, coarser where the noise is so large that its words would not reach.
    scale, bits = sensitivity / mu * 2.0**32, 32
    while scale > LARGEST_SCALE:
        scale, bits = scale / 2.0, bits - 1
    # Beyond, no part makes up a unit, and a count that were rounded could still move by one.
    exact = exact << bits - part_bits if bits >= part_bits else np.zeros_like(exact)
    noise = Gaussian(scale, word_buffers(stream, 1)[0])
    return np.maximum(1.0, release(exact, sensitivity * 2.0**bits, noise) / 2.0**bits)
