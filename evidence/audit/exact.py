"""Exact audits: no sampling, so no false alarms; all neighbours and all transcripts of small fits.

The probabilities come from the implementation's own numbers (`SolverTarget.step`). Two claims are
put to the test. A *step* is eps0-bounded-range: given the same earlier vertices, the log-ratios of
the next vertex's probabilities lie within eps0 of each other. A *fit* is (epsilon, delta)-DP: its
transcript is a tree of steps, so a transcript's probability is a product along one path.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.claims import (
    LARGEST_EPSILON,
    Claim,
    Data,
    Finding,
    Target,
    finding,
    largest_refuted,
    make_data,
)

# What the rounding of a step's numbers may add to a log-ratio: 2^-42 of the probability in all is
# charged to delta, and no outcome here is so rare that it could matter more than this.
ROUNDING = 1e-9

Progress = Callable[[int, int], None]
# (data, earlier vertices) -> log-probabilities of the next vertex, shape (2, D): row 0 for -e_j,
# row 1 for +e_j. The earlier vertices are a list of (coordinate, sign).
Prefix = tuple[tuple[int, int], ...]
StepDistribution = Callable[[Data, Prefix], NDArray[np.float64]]


@dataclass(frozen=True)
class SolverTarget(Target):
    """An implementation whose steps have a distribution in closed form.

    `step`: ``step(data, prefix)``: the distribution of the next vertex, computed from the
    implementation's own numbers.
    """

    step: StepDistribution


class Neighbourhood(NamedTuple):
    """Data sets with something in common, and the positions of those that are neighbours."""

    name: str
    data: list[Data]
    pairs: list[tuple[int, int]]


def records(n_columns: int, bound: float) -> list[tuple[tuple[float, ...], int]]:
    """Return all entries in {-B, 0, B} with either label, and two records far beyond the bound."""
    ordinary = list(product((-bound, 0.0, bound), repeat=n_columns))
    beyond = [(1e30,) * n_columns, (-3.0 * bound,) + (1e300,) * (n_columns - 1)]
    return [(entries, label) for entries in ordinary + beyond for label in (0, 1)]


def neighbourhoods(claim: Claim, n_columns: int = 2) -> Iterator[Neighbourhood]:
    """Enumerate neighbours around a few small data sets.

    They are, under add-remove the base and every record added to it, under replace-one every two of
    the latter. The bases: an almost empty one, where a single record decides everything; one with a
    gradient that stands out by about two nats, where log-ratios are largest; and a mixed one.
    """
    bound = claim.feature_bound
    company = np.zeros((2, n_columns))
    # The summed gradient of one column, in records: each gives half a bound at zero weights.
    ahead = min(200, max(1, round(8.0 / claim.eps0)))
    strong = np.zeros((ahead, n_columns))
    strong[:, 0] = bound
    mixed = bound * np.array([[(i + k) % 3 - 1 for k in range(n_columns)] for i in range(3)])
    bases = (
        ("empty records", company, np.array([0, 1])),
        ("one strong column", strong, np.arange(ahead) % 8 == 0),
        ("mixed records", mixed, np.array([1, 0, 0])),
    )
    for name, rows, labels in bases:
        added = [
            make_data(np.vstack([rows, entries]), np.append(labels, label))
            for entries, label in records(n_columns, bound)
        ]
        if claim.neighbors == "add-remove":
            data = [make_data(rows, labels), *added]
            yield Neighbourhood(name, data, [(0, i) for i in range(1, len(data))])
        else:
            yield Neighbourhood(name, added, list(combinations(range(len(added)), 2)))


def hockey_stick(log_p: NDArray[np.float64], log_q: NDArray[np.float64], epsilon: float) -> float:
    """Return ``sum max(0, P - e^epsilon Q)``: the delta at which P and Q are `epsilon` apart."""
    with np.errstate(over="ignore"):
        return float(np.maximum(0.0, np.exp(log_p) - np.exp(np.add(log_q, epsilon))).sum())


def epsilon_at_delta(log_p: NDArray[np.float64], log_q: NDArray[np.float64], delta: float) -> float:
    """Return the smallest epsilon for which two distributions are (epsilon, delta)-close.

    From below, to within 1e-9; infinity where outcomes that are impossible on one side, of
    log-probability -inf, hold more than delta.
    """

    def exceeds(epsilon: float) -> bool:
        one, other = hockey_stick(log_p, log_q, epsilon), hockey_stick(log_q, log_p, epsilon)
        return max(one, other) > delta

    return math.inf if exceeds(LARGEST_EPSILON) else largest_refuted(exceeds)


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
    target: SolverTarget, around: Neighbourhood, progress: Progress | None = None
) -> tuple[Finding, Finding]:
    """Audit step and fit on all given neighbours, over all transcripts of few steps."""
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
