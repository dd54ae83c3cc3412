"""Black-box audits, by many runs or by one: what keeps its claim, and what is refuted."""

import math
from dataclasses import replace

import numpy as np
import pytest
from evidence.audit.one_run import audit_one_run, guess
from evidence.audit.solver import solver_target

from audit import mutants
from audit.mutants import Steps
from dplasso.audit import (
    AuditSettings,
    Claim,
    Target,
    audit_canary,
    audit_canary_step,
    audit_repeats,
    canary_pair,
    estimator_target,
)

# Every audit below is told this; where the claim is true it fails by chance that seldom.
ALARM = 1e-6


def randomised_response(epsilon, delta, seed):
    """Release whether the canary was there: exactly (epsilon, delta)-private, and no better."""
    rng = np.random.default_rng(seed)
    claim = Claim(epsilon, delta, "add-remove", 1, 1.0, epsilon)
    truthful = delta + (1 - delta) / (1 + math.exp(-epsilon))
    present = canary_pair(claim)[0].X.shape[0]
    releases = {s: Steps(np.zeros(1, int), np.array([s])) for s in (-1, 1)}

    def fit(data):
        there = 1 if data.X.shape[0] == present else -1
        return releases[there if rng.random() < truthful else -there]

    return Target(claim, fit)


def test_where_labels_alone_are_private_the_canary_keeps_its_features():
    one, other = canary_pair(Claim(1.0, 0.0, "label", 1, 1.0, 1.0))
    assert (one.X != other.X).nnz == 0
    assert (one.y != other.y).sum() == 1


def test_a_true_claim_without_room_is_seldom_refuted():
    """150 audits at a rate of 0.05: 17 or fewer alarms but for one time in 1,000."""
    alarms = step_alarms = 0
    for seed in range(150):
        target = randomised_response(1.0, 0.02, seed)
        alarms += audit_canary(target, 100, 0.05).violated
        pure = randomised_response(0.6, 0.0, seed)
        # Its log-odds differ by 2 epsilon: that is what it claims as a bounded range.
        pure = replace(pure, claim=replace(pure.claim, eps0=1.2))
        step_alarms += audit_canary_step(pure, 100, 0.05).violated
    assert alarms <= 17
    assert step_alarms <= 17


def test_it_finds_nearly_all_of_what_is_lost():
    """Power: with 10,000 runs the bound is within a fifth of the truth."""
    finding = audit_canary(randomised_response(1.0, 0.0, 0), 10_000, ALARM)
    assert 0.8 < finding.audited <= 1.0
    assert not finding.violated
    finding = audit_canary(randomised_response(1.5, 0.0, 0), 4000, ALARM)
    assert finding.audited > 1.0
    overstated = replace(
        randomised_response(1.5, 0.0, 0), claim=Claim(1.0, 0.0, "add-remove", 1, 1.0, 1.0)
    )
    assert audit_canary(overstated, 4000, ALARM).violated


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_the_default_keeps_its_claim(neighbors):
    chosen = AuditSettings(neighbors=neighbors)
    assert not audit_canary(solver_target(chosen), 100, ALARM).violated
    assert not audit_canary_step(solver_target(replace(chosen, n_iter=2)), 200, ALARM).violated
    assert not audit_repeats(solver_target(replace(chosen, n_iter=12)), 50, ALARM).violated
    public = audit_canary(estimator_target(chosen), 50, ALARM)
    assert not public.violated
    assert public.figures["trials"] == [25, 25]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
class TestTheTrueSign:
    def test_whole_fits(self, neighbors):
        target = mutants.true_sign(AuditSettings(epsilon=0.1, neighbors=neighbors))
        finding = audit_canary(target, 1000, ALARM)
        assert finding.violated
        assert finding.audited > 3
        likely, unlikely = np.divide(finding.figures["hits"], finding.figures["trials"])
        assert likely > 0.98
        assert unlikely < 0.02


class TestMutants:
    def test_a_dropped_factor_of_two_is_caught(self):
        target = mutants.factor_two_dropped(AuditSettings(epsilon=3.0, n_iter=2))
        finding = audit_canary_step(target, 1200, ALARM)
        assert finding.violated
        assert finding.about == "step"
        assert finding.audited > 1.1 * finding.claimed

    def test_reused_noise_is_caught(self):
        finding = audit_repeats(mutants.noise_reused(AuditSettings(n_iter=12)), 20, ALARM)
        assert finding.violated
        assert finding.figures["distinct"] == 1
        whole = audit_canary(mutants.noise_reused(AuditSettings()), 400, ALARM)
        assert whole.violated

    def test_an_8_bit_seed_is_caught(self):
        """400 draws of 256 seeds all differ with probability 0."""
        finding = audit_repeats(mutants.byte_as_seed(AuditSettings(n_iter=12)), 400, ALARM)
        assert finding.violated
        assert 150 < finding.figures["distinct"] <= 256
        whole = audit_canary(mutants.byte_as_seed(AuditSettings()), 1000, ALARM)
        assert whole.violated
        assert whole.figures["score"] == "seen"


def coin_by_coin(epsilon, seed, m):
    """Show who is in by randomised response: the one-run audit's hardest true claim."""
    rng = np.random.default_rng(seed)

    def fit(data):
        there = np.zeros(m, dtype=bool)
        there[data.X.indices] = True
        kept = rng.random(m) < 1 / (1 + np.exp(-epsilon))
        return Steps(np.arange(m), np.where(there == kept, 1, -1))

    return Target(Claim(epsilon, 0.0, "add-remove", m, 1.0, 1.0), fit)


def test_one_run_seldom_refutes_a_true_claim_without_room():
    """150 audits at a rate of 0.05: 17 or fewer alarms but for one time in 1,000."""
    alarms = 0
    for seed in range(150):
        coins = np.random.default_rng([seed, 1])
        alarms += audit_one_run(coin_by_coin(1.0, seed, 60), 60, 0.05, coins=coins).violated
    assert alarms <= 17


def test_it_finds_most_of_what_is_lost():
    target = coin_by_coin(2.0, 0, 4000)
    finding = audit_one_run(target, 4000, ALARM, coins=np.random.default_rng(0))
    assert 1.5 < finding.audited <= 2.0
    assert not finding.violated
    smaller = replace(target, claim=replace(target.claim, epsilon=1.5))
    assert audit_one_run(smaller, 4000, ALARM, coins=np.random.default_rng(0)).violated


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_one_fit_of_the_default_and_of_the_true_sign(neighbors):
    chosen = AuditSettings(neighbors=neighbors, n_iter=1200, epsilon=0.1)
    sound = audit_one_run(estimator_target(chosen), 300, ALARM)
    assert not sound.violated
    broken = estimator_target(replace(chosen, mechanism="paper", delta=1e-9))
    finding = audit_one_run(broken, 300, 1e-4)
    assert finding.violated
    assert finding.audited > 3
    assert finding.figures["correct"] >= 0.97 * finding.figures["guesses"]


def test_guesses_are_a_fixed_number_from_both_ends():
    scores = np.array([3.0, -1.0, 0.0, 0.0, 0.0, 5.0])
    guessed = guess(scores, 4, np.random.default_rng(0))
    assert (guessed[[5, 0]] == 1).all()
    assert guessed[1] == -1
    assert np.abs(guessed).sum() == 4
    # Ties are broken by chance: each of the three is guessed "out" now and then.
    coins = np.random.default_rng(1)
    out = sum(guess(scores, 4, coins)[2:5] == -1 for _ in range(60))
    assert (out > 5).all()
