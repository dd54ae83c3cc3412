"""What is audited: a claim as data, an implementation as plain functions.

An auditor knows nothing of the estimator. It is given a `Target`: the claim, a function that fits
and returns the release, and, for the exact audits, a function that says how likely each vertex is.
Anything of that shape can be audited, broken implementations included.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.privacy.mechanisms import SAMPLING_ERROR
from dplasso.privacy.statement import Accounted


class Data(NamedTuple):
    """Records that a fit gets: entries of shape (N, D), and labels, 0 or 1."""

    X: csr_array
    y: NDArray[np.int64]


class Release(Protocol):
    """What a fit releases: coordinate and sign of each step's vertex, shape (T,), in order."""

    @property
    def vertex(self) -> NDArray[Any]: ...  # noqa: D102
    @property
    def sign(self) -> NDArray[Any]: ...  # noqa: D102


Fit = Callable[[Data], Release]
# (data, earlier vertices) -> log-probabilities of the next vertex, shape (2, D): row 0 for -e_j,
# row 1 for +e_j. The earlier vertices are a list of (coordinate, sign).
Prefix = tuple[tuple[int, int], ...]
StepDistribution = Callable[[Data, Prefix], NDArray[np.float64]]


@dataclass(frozen=True)
class Claim:
    """The promise that an audit tries to refute.

    `epsilon`, `delta`: of a whole fit of `n_iter` steps.
    `neighbors`: which data sets the promise compares.
    `feature_bound`: bound B on the magnitude of an entry.
    `eps0`: bounded-range parameter of one step; 0 with Gaussian noise.
    `step_delta`: probability with which a step's draw may fall outside `eps0`.
    """

    epsilon: float
    delta: float
    neighbors: str
    n_iter: int
    feature_bound: float
    eps0: float
    step_delta: float


@dataclass(frozen=True)
class Target:
    """An implementation under audit.

    `fit`: ``fit(data)`` trains once, with fresh randomness, and returns the release.
    `step`: ``step(data, prefix)``: the distribution of the next vertex, computed from the
    implementation's own numbers; None where it has none in closed form.
    """

    claim: Claim
    fit: Fit
    step: StepDistribution | None = None


@dataclass(frozen=True)
class Finding:
    """What one audit found.

    `claimed`, `delta`: what it tried to refute: the claim of a step or of a whole fit, see `about`.
    `audited`: lower bound on the true epsilon, 0 where the attack found nothing; exact audits give
    its value on the pairs they tried. NaN where the audit refutes independence and bounds no
    epsilon.
    `false_alarm`: probability that a true claim is called violated; 0 for exact audits.
    `about`: "step", "fit" or "randomness".
    `detail`: one sentence.
    `figures`: the numbers behind it, for JSON.
    """

    name: str
    claimed: float
    audited: float
    delta: float
    false_alarm: float
    violated: bool
    about: str
    detail: str
    figures: dict[str, Any]


def finding(
    claim: Claim,
    name: str,
    about: str,
    audited: float,
    *,
    violated: bool,
    detail: str,
    figures: dict[str, Any],
    false_alarm: float = 0.0,
) -> Finding:
    """Return a finding about a claim: about a step that is eps0 alone, else epsilon and delta."""
    claimed, delta = (claim.eps0, 0.0) if about == "step" else (claim.epsilon, claim.delta)
    return Finding(name, claimed, audited, delta, false_alarm, violated, about, detail, figures)


def bound_in_words(name: str, audited: float, claimed: float) -> str:
    """Return the end of a sentence: an attack that found nothing proves nothing."""
    if audited == 0:
        return f"the attack found nothing against the claimed {name} of {claimed:.4g}"
    return f"{name} is at least {audited:.4g}; {claimed:.4g} is claimed"


def claim_of(mechanism: Accounted) -> Claim:
    """Return the claim of a mechanism; ValueError without privacy: there is nothing to audit then.

    That of ``mechanism="paper"``, which has no guarantee, is what its authors' accounting says:
    epsilon in all and ``epsilon / sqrt(8 T log(1/delta))`` a step (arXiv 2310.19978).
    """
    if math.isinf(mechanism.epsilon):
        raise ValueError("epsilon=inf claims nothing: there is nothing to audit.")
    if mechanism.name == "paper":
        root = math.sqrt(8.0 * mechanism.n_iter * -math.log(mechanism.delta))
        eps0, step_delta = mechanism.epsilon / root, 0.0
    else:
        eps0 = mechanism.eps0
        step_delta = SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))
    stated = ("epsilon", "delta", "neighbors", "n_iter", "feature_bound")
    known = {name: getattr(mechanism, name) for name in stated}
    return Claim(**known, eps0=eps0, step_delta=step_delta)
