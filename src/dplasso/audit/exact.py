"""Exact audits: no sampling, so no false alarms; all neighbours and all transcripts of small fits.

The probabilities come from the implementation's own numbers (`Target.step`). Two claims are put to
the test. A *step* is eps0-bounded-range: given the same earlier vertices, the log-ratios of the
next vertex's probabilities lie within eps0 of each other. A *fit* is (epsilon, delta)-DP: its
transcript is a tree of steps, so a transcript's probability is a product along one path.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.bounds import epsilon_at_delta
from dplasso.audit.claims import Claim, Data, Finding, Prefix, StepDistribution, Target, finding
from dplasso.audit.problems import Neighbourhood

# What the rounding of a step's numbers may add to a log-ratio: 2^-42 of the probability in all is
# charged to delta, and no outcome here is so rare that it could matter more than this.
ROUNDING = 1e-9

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Transcripts:
    """Every transcript of one data set, with the distribution of each step on the way.

    `prefixes`: what `steps` follow.
    `steps`, shape (len(prefixes), V): log-probabilities of the next of V vertices.
    `paths`, shape (V ** T,): log-probabilities of whole transcripts.
    """

    prefixes: list[Prefix]
    steps: NDArray[np.float64]
    paths: NDArray[np.float64]


def all_transcripts(step: StepDistribution, data: Data, n_iter: int) -> Transcripts:
    """Return all V^T transcripts of a fit of T steps; V is twice the number of coordinates."""
    coordinates = step(data, ()).shape[1]
    vertices = [(j, sign) for sign in (-1, 1) for j in range(coordinates)]
    prefixes: list[Prefix] = []
    layers: list[NDArray[np.float64]] = []
    paths = np.zeros(1)
    for length in range(n_iter):
        layer = [*product(vertices, repeat=length)]
        steps = np.array([step(data, prefix).ravel() for prefix in layer])
        paths = (paths[:, None] + steps).ravel()
        prefixes += layer
        layers.append(steps)
    return Transcripts(prefixes, np.vstack(layers), paths)


def log_ratios(
    one: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return range and largest magnitude of log-ratios; infinite where one side is impossible."""
    both = np.isneginf(one) & np.isneginf(other)
    with np.errstate(invalid="ignore"):
        ratio = np.where(both, 0.0, one - other)
    # An outcome that is impossible on both sides bounds nothing: give it another one's ratio.
    low = np.where(both, np.inf, ratio).min(axis=-1)
    high = np.where(both, -np.inf, ratio).max(axis=-1)
    return high - low, np.maximum(np.abs(low), np.abs(high))


def audit_exact(
    target: Target, around: Neighbourhood, progress: Progress | None = None
) -> tuple[Finding, Finding]:
    """Audit step and fit on all given neighbours, over all transcripts of few steps."""
    if target.step is None:
        raise ValueError("the exact audit needs the step's distribution in closed form")
    claim = target.claim
    enumerated = []
    for done, data in enumerate(around.data):
        enumerated.append(all_transcripts(target.step, data, claim.n_iter))
        if progress is not None:
            progress(done + 1, len(around.data))
    return _audit_steps(claim, around, enumerated), _audit_fits(claim, around, enumerated)


def _audit_steps(claim: Claim, around: Neighbourhood, found: list[Transcripts]) -> Finding:
    """Find the step with the widest range of log-ratios."""
    widest, largest = [], 0.0
    for a, b in around.pairs:
        widths, sizes = log_ratios(found[a].steps, found[b].steps)
        place = int(np.argmax(widths))
        widest.append((float(widths[place]), (a, b), place))
        largest = max(largest, float(sizes.max()))
    worst, where, at = max(widest, key=itemgetter(0))
    return finding(
        claim,
        f"exact step ({around.name})",
        "step",
        worst,
        violated=worst > claim.eps0 + ROUNDING,
        detail=(
            f"over {len(around.pairs):,} pairs of neighbours and {len(found[0].prefixes):,} "
            f"histories, the log-ratios of a step's probabilities spread over {worst:.6g}; "
            f"eps0 = {claim.eps0:.6g} is claimed"
        ),
        figures={
            "pairs": len(around.pairs),
            "histories": len(found[0].prefixes),
            "largest_log_ratio": largest,
            "of_claim": worst / claim.eps0,
            "pair": list(where),
            "history": [list(vertex) for vertex in found[0].prefixes[at]],
        },
    )


def _audit_fits(claim: Claim, around: Neighbourhood, found: list[Transcripts]) -> Finding:
    """Find the pair whose transcripts are furthest apart."""
    epsilons = [
        (epsilon_at_delta(found[a].paths, found[b].paths, claim.delta), (a, b))
        for a, b in around.pairs
    ]
    worst, where = max(epsilons, key=itemgetter(0))
    return finding(
        claim,
        f"exact fit ({around.name})",
        "fit",
        worst,
        violated=worst > claim.epsilon + ROUNDING,
        detail=(
            f"over {len(around.pairs):,} pairs of neighbours and all {found[0].paths.size:,} "
            f"transcripts of {claim.n_iter} steps, epsilon is {worst:.6g} at delta "
            f"{claim.delta:g}; {claim.epsilon:.6g} is claimed"
        ),
        figures={
            "pairs": len(around.pairs),
            "transcripts": int(found[0].paths.size),
            "of_claim": worst / claim.epsilon,
            "pair": list(where),
        },
    )
