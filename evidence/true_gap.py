"""The Frank-Wolfe gap and the loss recomputed from the weights, in float64."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dplasso.frank_wolfe.transcript import Transcript, weights


def true_gap(
    X: Any, y: NDArray[Any], dense: NDArray[np.float64], radius: float
) -> tuple[float, float]:
    """Compute the mean logistic loss and the Frank-Wolfe gap from scratch.

    The gap is ``(<alpha, w> + radius max|alpha|) / N`` with ``alpha = X.T (sigma(X w) - y)``.
    Labels are 0 or 1; both are of the
    mean over records.
    """
    margin = X @ dense
    loss = float(np.mean(np.logaddexp(0.0, margin) - y * margin))
    alpha = X.T @ (expit(margin) - y)
    gap = (float(alpha @ dense) + radius * float(np.abs(alpha).max())) / X.shape[0]
    return loss, gap


def true_gaps(
    X: Any, y: NDArray[Any], transcript: Transcript, radius: float, marks: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the true gap before given steps of a run, counted from 1; no intercept."""
    found = np.empty(marks.size)
    for place, step in enumerate(marks):
        dense = np.zeros(X.shape[1])
        if step > 1:
            taken = Transcript(transcript.vertex[: step - 1], transcript.sign[: step - 1])
            coordinates, values = weights(taken, radius)
            dense[coordinates] = values
        found[place] = true_gap(X, y, dense, radius)[1]
    return found
