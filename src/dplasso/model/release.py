"""The contract of what a fit releases (docs/architecture.md), and the kinds there are."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.state import GradientState
from dplasso.model.staged import StagedRelease


class Release(Protocol):
    """All that leaves a fit: private by composition, and everything else is a function of it.

    `kind`: what a file calls it.
    `types`: types of its arrays in a file.
    `method`: what made it, of classes and of numbers.
    `vertices`: the vertices drawn, if any are.
    `refitted`: the weights that noisy gradients led to, if there are any.
    `n_records`: noisy number of records, where they are counted for it.
    `standard_error`: standard deviation of each weight by the noise alone.
    `n_outputs`: how many margins a record has: K for more than two classes, otherwise 1.
    """

    kind: ClassVar[str]
    types: ClassVar[dict[str, str]]
    method: ClassVar[tuple[str, str]]

    @property
    def vertices(self) -> VertexRelease | None: ...
    @property
    def refitted(self) -> NoisyWeights | None: ...
    @property
    def n_records(self) -> float | None: ...
    @property
    def standard_error(self) -> float | None: ...
    @property
    def n_outputs(self) -> int: ...

    def __len__(self) -> int:
        """Return the number of steps it was drawn in."""

    def agrees_with(self, other: Any) -> bool:
        """Return whether two runs with the same settings can be one, as far as both have come."""

    def coefficients(self) -> tuple[Any, NDArray[np.float64]]:
        """Return the weights, shape (n_outputs, D), and the intercepts, shape (n_outputs,)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file has to hold of it."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], public: Mapping[str, Any]) -> Self:
        """Rebuild it from its arrays, and the fit's parameters and sizes (see `public_values`)."""


def digest_of(release: Release) -> str:
    """Return the digest by which a ledger's entry knows what it has paid for.

    SHA-256 of the arrays of a whole fit, 64 hexadecimal digits.
    """
    return sha256(b"".join(array.tobytes() for array in release.arrays().values())).hexdigest()


RELEASES: dict[str, type[Release]] = {
    one.kind: one for one in (VertexRelease, NoisyWeights, GradientState, StagedRelease)
}


def n_outputs_of(n_classes: int) -> int:
    """Return how many margins a record has: K for more than two classes, otherwise 1."""
    return n_classes if n_classes > 2 else 1


def public_values(
    params: Mapping[str, Any], n_features: int, n_classes: int, n_steps: int
) -> dict[str, Any]:
    """Return what a release follows from besides its arrays: the fit's parameters and sizes."""
    sizes = {"n_features": n_features, "n_outputs": n_outputs_of(n_classes), "n_steps": n_steps}
    return {**params, **sizes}


def empty_release(kind: str, public: Mapping[str, Any]) -> Release:
    """Return the release of a fit before its first step; `kind` is what a mechanism begins with."""
    first: dict[str, Any] = {
        one.kind: one.empty for one in (VertexRelease, GradientState, StagedRelease)
    }
    release: Release = first[kind](public)
    return release
