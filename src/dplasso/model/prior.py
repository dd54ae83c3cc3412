"""Where a fit starts from: a linear model that is public (docs/prior.md)."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Prior:
    """A public linear model with a weight for every column of the records.

    `weights`, shape (K, D): of the margins, K = 1 for two classes and for a regression; finite.
    They act on the rows that the fit's own weights act on: unit rows, or clipped rows for the
    LASSO.
    `intercept`, shape (K,): the margins' constants; of a regression for targets in [-1, 1].
    `standard_error`, shape (K, D): standard deviation of each weight by noise, or None.
    `source`: what it is, in words.
    `digest`: 64 hexadecimal digits that change with any of its numbers.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    standard_error: NDArray[np.float64] | None
    source: str
    digest: str

    def __post_init__(self) -> None:
        error = self.standard_error
        if self.weights.ndim != 2 or self.intercept.shape != self.weights.shape[:1]:
            raise ValueError("the weights and intercepts of its prior do not fit together")
        if error is not None and error.shape != self.weights.shape:
            raise ValueError("the standard errors of its prior do not fit its weights")
        numbers = [self.weights, self.intercept] + ([] if error is None else [error])
        if not all(np.isfinite(part).all() for part in numbers):
            raise ValueError("its prior has NaN or infinity")


def prior_of(
    weights: NDArray[np.float64],
    intercept: NDArray[np.float64],
    source: str,
    standard_error: NDArray[np.float64] | None = None,
) -> Prior:
    """Return a prior with its digest; ValueError if its numbers are not finite or do not fit."""
    numbers = [weights, intercept] + ([] if standard_error is None else [standard_error])
    digest = sha256()
    for part in numbers:
        plain = np.ascontiguousarray(part, dtype="<f8")
        # Adding zero makes both zeros one.
        digest.update(repr(plain.shape).encode() + (plain + 0.0).tobytes())
    return Prior(weights, intercept, standard_error, source, digest.hexdigest())
