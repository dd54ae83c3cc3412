"""Exact audits of fits that count: everything that is released, the counts with the rest.

What a whole fit answers is fixed from outside, by a door that gives counts and vertices as it is
told, and notes what was behind them. So whatever it released, and however one release led to the
next, is compared with what a neighbour would have released after the same.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from evidence.audit.exact import epsilon_at_delta, neighbourhoods
from evidence.audit.replay import replay_state
from scipy.special import logsumexp

from dplasso import DPFrankWolfeClassifier
from dplasso.audit import claim_of
from dplasso.estimators.fitting import method_of
from dplasso.phases.count import COUNT_SHARE
from dplasso.privacy import release as door_module
from dplasso.privacy.release import Door

RELATIONS = "add-remove", "replace-one"
COLUMNS, STEPS = 2, 2
VERTICES = [(j, sign) for sign in (-1, 1) for j in range(COLUMNS)]
# Of noisy counts, in standard deviations of their noise.
LATTICE = np.arange(-2.0, 2.1, 2.0)


@dataclass
class Told(Door):
    """A door that answers counts, and draws vertices, as it is told.

    `counts`: to be released, and the standard deviation that their noise is to have.
    """

    counts: tuple[np.ndarray, float]
    path: list[tuple[int, int]]
    exact: np.ndarray = None
    draws: list[Any] = field(default_factory=list)

    def release(self, statistic, sensitivity, noise):
        assert self.exact is None, "only counts are released"
        # Units of a record, if the noise is what it is to be.
        unit = noise.scale / self.counts[1]
        self.exact = statistic / unit
        statistic[:] = np.rint(self.counts[0] * unit)
        return statistic

    def drawing_from(self, selector, sensitivity):
        state = replay_state(*np.array(self.path).T.copy(), COLUMNS)
        self.draws.append((selector.exponent, state))
        return state


def released(estimator, data, counts, first):
    """Fit where `counts` are released, and then the vertex `first`.

    Returns the exact counts, and the log-probabilities of the first vertex, and of the second after
    it, in the order of `VERTICES`.
    """
    door = Told(counts, [first, (0, 1)])
    with patch.object(door_module, "_door", door):
        estimator.fit(data.X, data.y)
    ((exponent, state),) = door.draws
    seen = state.seen
    scores = exponent * np.concatenate([seen, -seen], axis=1)
    return door.exact, scores - logsumexp(scores, axis=1, keepdims=True)


class Enumerated(NamedTuple):
    """All that a fit may release.

    `exact`: the counts without noise.
    `steps`, shape (released counts, histories, V): log-probabilities of the next vertex.
    `whole`: log-probabilities of counts with all vertices.
    """

    exact: np.ndarray
    steps: np.ndarray
    whole: np.ndarray


def enumerated(estimator, data, lattice, deviation):
    steps, whole = [], []
    for counts in lattice:
        runs = [released(estimator, data, (counts, deviation), first) for first in VERTICES]
        exact, (first, _) = runs[0]
        second = np.array([steps[1] for _, steps in runs])
        steps.append(np.vstack([first, second]))
        # The mass of a cell of the lattice, by the density in its middle.
        density = -0.5 * ((counts - exact) ** 2).sum() / deviation**2
        density += 2.0 * math.log((LATTICE[1] - LATTICE[0]) / math.sqrt(2.0 * math.pi))
        whole.append((density + first[:, None] + second).ravel())
    return Enumerated(exact, np.array(steps), np.concatenate(whole))


@pytest.mark.filterwarnings("ignore::dplasso.WeakPrivacyWarning", "ignore::dplasso.NoiseWarning")
@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_and_vertices_of_a_given_radius(relation):
    """Over all neighbours, all vertices and a lattice of counts: no part costs more than claimed.

    And each costs what is claimed somewhere: noise for half the sensitivity would be refuted.
    """
    given = {"n_iter": STEPS, "l1_radius": 5.0, "classes": (0, 1), "neighbors": relation}
    estimator = DPFrankWolfeClassifier(epsilon=1.0, delta=0.01, **given)
    budget = method_of(estimator).cost(COLUMNS)
    claim = claim_of(budget)
    sensitivity, count_mu = budget.moved_counts(by_class=True), budget.mu_of(COUNT_SHARE)
    deviation = sensitivity / count_mu
    eps0 = budget.eps0_of(1.0 - COUNT_SHARE, STEPS)
    assert STEPS * eps0**2 / 8.0 + count_mu**2 / 2.0 <= budget.rho
    moved = widest = audited = 0.0
    # Around one strong column, where log-ratios are largest.
    _, around, _ = neighbourhoods(replace(claim, eps0=eps0))
    middle = np.bincount(around.data[0].y, minlength=2)
    lattice = [middle + deviation * np.array(z) for z in product(LATTICE, repeat=2)]
    found = [enumerated(estimator, data, lattice, deviation) for data in around.data]
    for a, b in around.pairs:
        one, other = found[a], found[b]
        moved = max(moved, float(np.linalg.norm(one.exact - other.exact)))
        ratios = one.steps - other.steps
        widest = max(widest, float((ratios.max(axis=-1) - ratios.min(axis=-1)).max()))
        audited = max(audited, epsilon_at_delta(one.whole, other.whole, claim.delta))
    assert np.exp(found[0].whole).sum() == pytest.approx(1.0, rel=0.05)
    assert moved == pytest.approx(sensitivity, rel=1e-12)
    assert 0.99 * eps0 < widest <= eps0 * (1.0 + 1e-9)
    assert 0.3 * claim.epsilon < audited <= claim.epsilon
