"""The transcript of a run: the chosen vertices, from which everything else follows.

With the step ``eta_t = 2 / (t + 2)`` the weights after T steps are ``w = radius * scale(T) * K``
with ``scale(t) = 2 / ((t + 1)(t + 2))``. Step t adds ``sign * (t + 1)`` to one entry of the integer
vector K, so weights are exact. A late start t0 replaces t by t + t0 (docs/model-file.md).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Transcript:
    """The vertices a fit chose, in order. Differentially private by composition when the fit is.

    Attributes
    ----------
    vertex : ndarray of int64, shape (T,)
        Coordinate of each vertex; the number of columns stands for the intercept.
    sign : ndarray of int8, shape (T,)
        +1 for the vertex ``+radius e_j``, -1 for ``-radius e_j``.
    """

    vertex: NDArray[np.int64]
    sign: NDArray[np.int8]

    def __post_init__(self) -> None:
        if self.vertex.shape != self.sign.shape or self.vertex.ndim != 1:
            raise ValueError(
                "a transcript needs as many signs as vertices, got "
                f"{self.sign.shape} signs and {self.vertex.shape} vertices"
            )

    def __len__(self) -> int:
        return int(self.vertex.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transcript):
            return NotImplemented
        return np.array_equal(self.vertex, other.vertex) and np.array_equal(self.sign, other.sign)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class History:
    """Course of a run without privacy (`epsilon=inf`); no private fit has one.

    Attributes
    ----------
    objective : ndarray of float64, shape (T,)
        Mean logistic loss before each step. Exact with ``drift_tol=0``; otherwise the tangent
        model at the margins last refreshed, which never exceeds the true loss.
    gap : ndarray of float64, shape (T,)
        Frank-Wolfe dual gap before each step, of the mean loss, by the gradients in use.
    """

    objective: NDArray[np.float64]
    gap: NDArray[np.float64]


def weight_scale(step: int) -> float:
    """Return ``w_m`` after `step` steps: 2 / ((t + 1)(t + 2))."""
    t = float(step)
    return 2.0 / ((t + 1.0) * (t + 2.0))


def weights(
    transcript: Transcript, l1_radius: float, late_start: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the coordinates with a weight, ascending, and their weights."""
    sizes = np.arange(2, len(transcript) + 2, dtype=np.int64) + late_start
    steps = transcript.sign.astype(np.int64) * sizes
    coordinates, place = np.unique(transcript.vertex, return_inverse=True)
    totals = np.zeros(coordinates.size, dtype=np.int64)
    np.add.at(totals, place, steps)
    kept = totals != 0
    scale = l1_radius * weight_scale(len(transcript) + late_start)
    return coordinates[kept], totals[kept].astype(np.float64) * scale
