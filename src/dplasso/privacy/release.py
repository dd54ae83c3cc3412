"""The one door: every statistic of private records leaves through `release` or `drawing_from`.

What comes out is all that a fit, a score or a search may use besides public parameters. Tests put a
recorder in the door's place: it sees each statistic before its noise, with the sensitivity that the
noise was made for, and answers a neighbouring data set with what was released before
(docs/assurance.md).
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

    `statistic`: a sum of `dplasso.privacy.share.share` over records, or a part of it.
    `sensitivity`: how far one record (or person, by the fit's neighbour relation) can move the
    statistic in L2, in its units.
    `noise`: made for that sensitivity; None where neighbours agree in the statistic (a number of
    records that is public) and in fits without privacy.
    """
    released: NDArray[np.int64] = _door.release(statistic, sensitivity, noise)
    return released


def drawing_from(selector: Any, sensitivity: float) -> Any:
    """Return a selection structure that compiled loops may draw coordinates with.

    `sensitivity`: how far one record can move each column gradient, in fixed-point units.
    """
    return _door.drawing_from(selector, sensitivity)
