"""Where a fit starts from: a linear model that is public (docs/prior.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A model file's arrays of a prior, and their types: where in the rows of weights, one after the
# other, those that follow stand (empty: all do), and their noise (empty: none; one number: of all).
ARRAYS = {"prior_place": "<i8", "prior_weight": "<f8", "prior_error": "<f8"}
# Digits of the digest that a text shows.
_SHOWN = 16


@dataclass(frozen=True)
class MatchedPrior:
    """A public linear model, matched to the records: a weight for each of their columns.

    `weights`, shape (K, D): of the margins, K = 1 for two classes and for a regression; finite.
    They act on the rows that the fit's own weights act on: unit rows, or clipped rows for the
    LASSO.
    `intercept`, shape (K,): the margins' constants; of a regression for targets in [-1, 1].
    `standard_error`, shape (K, D): standard deviation of each weight by noise, or None.
    `source`: what it is, in words.
    `digest`: 64 hexadecimal digits that change with any of its numbers.
    """

    weights: NDArray[np.float64] = field(repr=False)
    intercept: NDArray[np.float64] = field(repr=False)
    standard_error: NDArray[np.float64] | None = field(repr=False)
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

    @property
    def told(self) -> str:
        """What it is, for the statement."""
        return f"{self.source} (digest {self.digest[:_SHOWN]})"

    def to_json(self) -> dict[str, Any]:
        """Return what a model file's header says of it."""
        outputs, n_features = self.weights.shape
        return {
            "source": self.source,
            "digest": self.digest,
            "shape": [outputs, n_features],
            "intercept": self.intercept.tolist(),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return a model file's arrays of it: of mostly zeros, the other weights alone."""
        flat, error = self.weights.ravel(), self.standard_error
        places = np.flatnonzero(flat)
        dense = 2 * places.size > flat.size
        noise = np.zeros(0) if error is None else error.ravel()
        if noise.size and (noise == noise[0]).all():
            noise = noise[:1]
        arrays = (places[: 0 if dense else None], flat if dense else flat[places], noise)
        return {
            name: np.ascontiguousarray(array, dtype=ARRAYS[name])
            for name, array in zip(ARRAYS, arrays, strict=True)
        }


def matched_prior(
    weights: NDArray[np.float64],
    intercept: NDArray[np.float64],
    source: str,
    standard_error: NDArray[np.float64] | None = None,
) -> MatchedPrior:
    """Return a prior with its digest; ValueError if its numbers are not finite or do not fit."""
    numbers = [weights, intercept] + ([] if standard_error is None else [standard_error])
    digest = sha256()
    for part in numbers:
        plain = np.ascontiguousarray(part, dtype="<f8")
        # Adding zero makes both zeros one.
        digest.update(repr(plain.shape).encode() + (plain + 0.0).tobytes())
    return MatchedPrior(weights, intercept, standard_error, source, digest.hexdigest())


def prior_from(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> MatchedPrior:
    """Rebuild a prior from a model file; ValueError if its parts do not fit together."""
    outputs, n_features = entry["shape"]
    intercept = np.array(entry["intercept"], dtype=np.float64)
    place, weight, noise = (arrays[name] for name in ARRAYS)
    if place.size:
        flat = np.zeros(outputs * n_features)
        flat[place] = weight
    else:
        flat = np.array(weight) if weight.size else np.zeros(outputs * n_features)
    shape = outputs, n_features
    error = None
    if noise.size:
        error = np.full(shape, noise[0]) if noise.size == 1 else noise.reshape(shape)
    prior = matched_prior(flat.reshape(shape), intercept, entry["source"], error)
    if prior.digest != entry["digest"]:
        raise ValueError("the digest of its prior does not fit")
    return prior
