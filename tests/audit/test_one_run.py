from dataclasses import replace

import numpy as np
import pytest
from evidence.audit.one_run import audit_one_run, guess

from audit.mutants import Steps, settings
from dplasso.audit import Claim, Target, estimator_target

ALARM = 1e-6


def coin_by_coin(epsilon, seed, m):
    """Show who is in by randomised response: the one-run audit's hardest true claim."""
    rng = np.random.default_rng(seed)

    def fit(data):
        there = np.zeros(m, dtype=bool)
        there[data.X.indices] = True
        kept = rng.random(m) < 1 / (1 + np.exp(-epsilon))
        return Steps(np.arange(m), np.where(there == kept, 1, -1))

    return Target(Claim(epsilon, 0.0, "add-remove", m, 1.0, 1.0), fit)


def test_a_true_claim_without_room_is_seldom_refuted():
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
    chosen = settings(neighbors=neighbors, n_iter=1200, epsilon=0.1)
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
