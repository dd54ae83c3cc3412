"""The contract of what a fit releases (docs/architecture.md), and releases from files."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dplasso.files.archive import array_of
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.gradient_descent.release import NoisyWeights, noisy_weights_from
from dplasso.gradient_descent.state import GradientState, empty_state, gradient_state_from
from dplasso.model.staged import STAGED_ARRAYS, StagedRelease, empty_staged, staged_from


class Release(Protocol):
    """All that leaves a fit: private by composition, and everything else is a function of it.

    Attributes
    ----------
    kind : str
        What a file calls it.
    """

    @property
    def kind(self) -> str: ...

    @property
    def n_outputs(self) -> int:
        """Return how many margins a record has: K for more than two classes, otherwise 1."""

    def __len__(self) -> int:
        """Return the number of steps it was drawn in."""

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs with the same settings can be one, as far as both have come."""

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Return the weights, shape (n_outputs, D), and the intercepts, shape (n_outputs,)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""


def digest_of(release: Release) -> str:
    """Return the digest by which a ledger's entry knows what it has paid for.

    `release`: of a whole fit.

    Returns: SHA-256 of its arrays, 64 hexadecimal digits.
    """
    return sha256(b"".join(array.tobytes() for array in release.arrays().values())).hexdigest()


# The arrays of each kind of release, with the types they have in a file.
RELEASE_ARRAYS: dict[str, dict[str, str]] = {
    VertexRelease.kind: {"vertex": "<i8", "sign": "|i1"},
    NoisyWeights.kind: {"weights": "<f8", "columns": "<i8", "numbers": "<f8"},
    GradientState.kind: {
        "weights": "<f8",
        "velocity": "<f8",
        "averaged": "<f8",
        "columns": "<i8",
        "numbers": "<f8",
    },
    StagedRelease.kind: STAGED_ARRAYS,
}


def release_from(
    kind: str,
    members: Mapping[str, bytes],
    params: Mapping[str, Any],
    n_features: int,
    n_classes: int = 2,
) -> Release:
    """Rebuild a release from what a file holds.

    `kind`: a key of `RELEASE_ARRAYS`.
    `members`: of the archive, with its arrays.
    `params`: the parameters of the fit.
    `n_features`: D.
    `n_classes`: number of classes; 0 for a regression.

    Raises ValueError if they do not fit together.
    """
    if kind not in RELEASE_ARRAYS:
        raise ValueError(f"its release is of the unknown kind {kind!r}")
    arrays = {name: array_of(members, name, dtype) for name, dtype in RELEASE_ARRAYS[kind].items()}
    if kind == NoisyWeights.kind:
        return noisy_weights_from(arrays, n_features)
    if kind == GradientState.kind:
        return gradient_state_from(arrays, n_features)
    if kind == StagedRelease.kind:
        return staged_from(arrays, float(params["feature_bound"]), n_features)
    return _vertices(arrays, params, n_features, n_classes)


def n_outputs_of(n_classes: int) -> int:
    """Return how many margins a record has: K for more than two classes, otherwise 1."""
    return n_classes if n_classes > 2 else 1


def _vertices(
    arrays: Mapping[str, NDArray[Any]],
    params: Mapping[str, Any],
    n_features: int,
    n_classes: int,
) -> Release:
    return VertexRelease(
        transcript=Transcript(arrays["vertex"].astype(np.int64, copy=False), arrays["sign"]),
        n_features=n_features,
        # What "auto" stands for with the paper's mechanism.
        l1_radius=10.0 if params["l1_radius"] == "auto" else float(params["l1_radius"]),
        feature_bound=float(params["feature_bound"]),
        fit_intercept=bool(params["fit_intercept"]),
        n_outputs=n_outputs_of(n_classes),
    )


def empty_release(
    params: Mapping[str, Any], n_features: int, n_steps: int, *, staged: bool, n_classes: int = 2
) -> Release:
    """Return the release of a fit with these parameters before its first step."""
    if staged:
        bound = float(params["feature_bound"])
        return empty_staged(n_steps, bound, n_features, n_outputs_of(n_classes))
    if "l1_radius" not in params:
        return empty_state(n_features)
    arrays = {name: np.zeros(0, kind) for name, kind in RELEASE_ARRAYS[VertexRelease.kind].items()}
    return _vertices(arrays, params, n_features, n_classes)
