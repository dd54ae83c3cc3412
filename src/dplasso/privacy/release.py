"""The one way out: every statistic of private records leaves by `release` or `drawing_from`.

Tests put a recorder in place of `Door` (docs/assurance.md).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.gaussian_noise import noise_table, noisy
from dplasso.privacy.randomness import RandomStream


class Gaussian:
    """Integer Gaussian noise of one standard deviation, in the units of the statistic."""

    def __init__(self, scale: float, words: RandomStream) -> None:
        self.scale, self._table, self._words = scale, noise_table(scale), words

    def add(self, statistic: NDArray[np.int64]) -> None:
        """Add a variate to each integer, in place."""
        noisy(self._table, self._words, statistic)


class Door:
    """What `release` and `drawing_from` do; a recorder overrides both."""

    def release(self, statistic: Any, sensitivity: float, noise: Gaussian | None) -> Any:  # noqa: ARG002
        """Return a statistic with its noise."""
        if noise is not None:
            noise.add(statistic)
        return statistic

    def drawing_from(self, selector: Any, sensitivity: float) -> Any:  # noqa: ARG002
        """Return a structure to draw with."""
        return selector


_door = Door()


def release(
    statistic: NDArray[np.int64], sensitivity: float, noise: Gaussian | None
) -> NDArray[np.int64]:
    """Return an exact statistic of private records, changed in place, with its noise.

    `sensitivity`: in L2 and in units of the statistic; `noise` was made for it. No noise is for
    fits without privacy, and for what neighbours agree in.
    """
    released: NDArray[np.int64] = _door.release(statistic, sensitivity, noise)
    return released


def drawing_from(selector: Any, sensitivity: float) -> Any:
    """Return a selection structure to draw with; a record moves a gradient by `sensitivity`."""
    return _door.drawing_from(selector, sensitivity)
