"""What a fit releases: the kinds there are (docs/architecture.md).

All that leaves a fit is private by composition, and everything else is a function of it. Each kind
says, besides `coefficients()`: the weights, shape (n_outputs, D), and the intercepts:

`kind`: what a file calls it.
`types`: types of its arrays in a file. `optional`: those that a file need not have.
`method`: what made it, of classes and of numbers.
`vertices`: the vertices drawn, if any are.
`refitted`: the weights that noisy gradients led to, if there are any.
`n_records`: noisy number of records, where they are counted for it.
`standard_errors`, shape (k,): standard deviation of each weight by the noise alone, of the columns
that have one; None where the method has none.
`scales`, shape (k,): what those columns are multiplied by before rows are scaled, or None.
`n_outputs`: how many margins a record has.
`prior_slope`: what the weights and intercepts of a public start are multiplied by before these are
added.
`len()`: the number of steps it was drawn in. `complete(n_steps)`: whether these are all of a fit's,
which takes so many at most.
`agrees_with(other)`: whether two runs with the same settings can be one, as far as both have come.
`arrays()`, `from_arrays(arrays, public)`: what a file has to hold of it, and how it is rebuilt from
that and from the fit's parameters and sizes (see `public_values`).
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.state import GradientState
from dplasso.model.staged import StagedRelease

# The kinds that a fit can begin with, and one that it can only end with.
Begun = VertexRelease | GradientState | StagedRelease
Release = Begun | NoisyWeights

RELEASES: dict[str, type[Release]] = {
    one.kind: one for one in (VertexRelease, NoisyWeights, GradientState, StagedRelease)
}


def digest_of(release: Release) -> str:
    """Return the digest, 64 hexadecimal digits, by which a ledger knows what it has paid for."""
    return sha256(b"".join(array.tobytes() for array in release.arrays().values())).hexdigest()


def n_outputs_of(n_classes: int, *, many_labels: bool = False) -> int:
    """Return how many margins a record has: K for more than two classes, otherwise 1.

    With `many_labels`, of which a record has or has not each, one for each.
    """
    return n_classes if n_classes > 2 or many_labels else 1


def public_values(
    params: Mapping[str, Any], n_features: int, n_classes: int, n_steps: int
) -> dict[str, Any]:
    """Return what a release follows from besides its arrays: the fit's parameters and sizes."""
    sizes = {"n_features": n_features, "n_outputs": n_outputs_of(n_classes), "n_steps": n_steps}
    return {**params, **sizes}


def empty_release(kind: str, public: Mapping[str, Any]) -> Begun:
    """Return the release of a fit before its first step; `kind` is what a mechanism begins with."""
    begun: Any = RELEASES[kind]
    release: Begun = begun.empty(public)
    return release
