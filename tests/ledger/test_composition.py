"""Adding up costs: against the accountant's own composition, and in exact integers."""

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

from dplasso import BudgetError, LedgerError
from dplasso.ledger import UNITS, affords, charge_of, epsilon_total, largest_epsilon
from dplasso.ledger.composition import capacity, refuse_overspending
from dplasso.privacy.budget import Budget as FitBudget
from dplasso.privacy.exponential_mechanism import EXPONENT_SLACK, TRUE_SIGN
from ledger.workers import budget_with, charge, raw_charge, vertices


def noise(**changes):
    """Return a mechanism that is not made of bounded-range steps, as the ledger sees one."""
    values = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6, "n_iter": 300}
    values |= {"neighbors": "replace-one", "rho": 0.02, "sampling_delta": 0.0, "rows_per_person": 1}
    values["eps0_accounted"] = None
    return SimpleNamespace(**(values | changes))


def test_a_charge_is_the_accounted_step_not_the_smaller_one_that_is_drawn():
    mechanism = vertices(50)
    accounted = 50 * Fraction(mechanism.eps0_accounted) ** 2 / 8
    drawn = 50 * Fraction(mechanism.eps0_accounted * (1.0 - EXPONENT_SLACK)) ** 2 / 8
    cost = charge_of(mechanism)
    assert 0 <= cost.rho - accounted * UNITS < 1
    assert 0 <= cost.draw_delta - Fraction(mechanism.sampling_delta) * UNITS < 1
    assert cost.rho > drawn * UNITS * (1 + Fraction(EXPONENT_SLACK))
    assert (cost.n_iter, cost.eps0) == (50, mechanism.eps0_accounted)


def test_a_mechanism_may_name_its_rho():
    cost = charge_of(noise(rho=0.1, sampling_delta=3e-9))
    assert 0 <= cost.rho - Fraction(0.1) * UNITS < 1
    assert 0 <= cost.draw_delta - Fraction(3e-9) * UNITS < 1
    assert (cost.eps0, cost.mechanism, cost.n_iter) == (None, "gaussian", 300)
    assert (cost.epsilon, cost.delta, cost.neighbors) == (1.0, 1e-6, "replace-one")
    # A bounded-range parameter is what old entries were charged by, so it goes before.
    steps = charge_of(noise(eps0_accounted=0.5))
    assert steps.rho == 300 * UNITS // 4 // 8
    assert steps.eps0 == 0.5


@pytest.mark.parametrize(
    "changes",
    [
        *({"rho": rho} for rho in (math.inf, math.nan, -1.0)),
        *({"sampling_delta": part} for part in (math.nan, -1e-9, 1.0)),
        {"eps0_accounted": math.inf},
    ],
)
def test_a_cost_that_is_none_is_refused(changes):
    with pytest.raises(LedgerError, match="'gaussian' is not private"):
        charge_of(noise(**changes))


def test_what_is_not_private_has_no_price():
    for budget in (vertices(5, math.inf), FitBudget(epsilon=1.0, delta=1e-6, leak=TRUE_SIGN)):
        with pytest.raises(LedgerError, match="not private"):
            charge_of(budget)


LIMIT = UNITS // 10**6  # a tenth of delta 1e-5
FIXED = capacity(3.0, 1e-5, LIMIT)


class TestFilter:
    """Limits that were fixed before anything was charged (see composition.py)."""

    def test_draws_saved_buy_no_rho(self):
        # By the sums alone this would be within (3, 1e-5).
        budget = budget_with([raw_charge(FIXED)], limit=LIMIT)
        assert epsilon_total(FIXED + FIXED // 10**5, 0, 1e-5) < 3.0
        assert not affords(budget, raw_charge(FIXED // 10**5))
        # Nor does rho that was saved buy draws.
        begun = budget_with([raw_charge(1)], limit=LIMIT)
        assert affords(begun, raw_charge(FIXED - 1, LIMIT))
        assert not affords(begun, raw_charge(1, LIMIT + 1))
        assert not affords(budget_with([raw_charge(1, LIMIT)], limit=LIMIT), raw_charge(1, 1))

    @pytest.mark.parametrize("n_iter", [1, 100, 300_000])
    def test_a_first_fit_may_take_the_very_numbers_of_the_budget_and_is_the_last(self, n_iter):
        cost = charge(3.0, 1e-5, n_iter)
        empty = budget_with([], limit=LIMIT)
        assert cost.rho > FIXED
        assert affords(empty, cost)
        assert not affords(empty, cost, 2)
        full = budget_with([cost], limit=LIMIT)
        assert epsilon_total(full.rho, full.draw_delta, 1e-5) <= 3.0
        assert not affords(full, raw_charge(0))
        assert not affords(budget_with([raw_charge(1)], limit=LIMIT), cost)
        assert largest_epsilon(full, delta=1e-6, n_iter=10) == 0
        assert largest_epsilon(empty, delta=1e-5, n_iter=n_iter) == pytest.approx(3.0, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (1.0, 1e-5), (8.0, 1e-9), (300, 0.1)])
def test_capacity_is_the_largest_on_the_private_side(epsilon, delta):
    whole = capacity(epsilon, delta, 0)
    assert epsilon_total(whole, 0, delta) <= epsilon
    assert epsilon_total(whole + whole // 10**11, 0, delta) > epsilon
    assert epsilon_total(0, 0, delta) == capacity(1e-12, 1e-300, 0) == 0


def test_draws_eat_into_delta():
    tenth = UNITS // 10**6
    assert capacity(1.0, 1e-5, 0) > capacity(1.0, 1e-5, tenth) > capacity(1.0, 1e-5, 9 * tenth)
    assert capacity(1.0, 1e-5, 11 * tenth) == 0
    assert epsilon_total(1, 11 * tenth, 1e-5) == math.inf
    # Many short steps: the draws alone can use a small delta up.
    assert not affords(budget_with([], delta=1e-7), charge(0.01, 1e-4, 300_000))


def test_the_refusal_says_what_is_left():
    budget = budget_with([charge(2.0)])
    with pytest.raises(BudgetError) as refusal:
        refuse_overspending(budget, charge(3.0), "team.ledger")
    text = str(refusal.value)
    for word in ("'x'", "team.ledger", "epsilon 3 ", "delta 1e-06", "100 steps"):
        assert word in text
    left = float(text.split("at most epsilon ")[1].split()[0])
    assert affords(budget, charge(left))
    assert not affords(budget, charge(left * 1.00001))
    empty = budget_with([raw_charge(capacity(3.0, 1e-5, 0))])
    with pytest.raises(BudgetError, match="nothing is left"):
        refuse_overspending(empty, charge(0.1), "team.ledger")
