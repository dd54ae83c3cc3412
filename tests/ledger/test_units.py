"""Whom a charge protects: a total for a row, and one for a person with several, right for both."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import BudgetError, Ledger
from dplasso.ledger import (
    UNITS,
    add_dataset,
    affords,
    charge_of,
    counted,
    create_ledger,
    epsilon_total,
    fits_left,
    largest_epsilon,
    read_budgets,
    reserve,
    rho_limit,
    total_of,
    totals,
)
from dplasso.ledger.entries import spent
from dplasso.privacy.budget import Draws, _sampling_delta, build_budget
from dplasso.privacy.exponential_mechanism import sampling_delta_of
from dplasso.tuning.search_cost import epsilon_of_search, search_cost, tries_of, whole_budget
from ledger.workers import budget_with, charge, raw_charge

COMMON = {"delta": 1e-6}
MECHANISMS = {
    "exponential": lambda **given: budget_of(Draws(0.0, 50), n_iter=50, **given),
    "gaussian": lambda **given: budget_of(Draws(300.0 * 2**24), n_iter=300, **given),
    "exponential and gaussian": lambda **given: budget_of(Draws(2e4, 200), n_iter=300, **given),
}


def budget_of(draws, **given):
    return build_budget(draws, **COMMON, **given)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("rows", [2, 3, 10])
def test_more_rows_cost_what_the_mechanism_itself_says(name, epsilon, rows):
    mechanism = MECHANISMS[name](epsilon=epsilon)
    rho, draws = counted(charge_of(mechanism), rows)
    assert rho == rows**2 * charge_of(mechanism).rho
    own = mechanism.epsilon_of_rows(rows)
    told = epsilon_total(rho, draws, mechanism.delta)
    assert told >= own * (1.0 - 1e-9)
    # Gaussian noise alone is cheaper by its exact curve than by zCDP.
    if math.isfinite(told):
        assert told <= own * (1.15 if name == "gaussian" else 1.01)


@pytest.mark.parametrize("rows", [2, 5, 20])
def test_the_delta_of_draws_grows_as_their_loss_does(rows):
    vertices = MECHANISMS["exponential"](epsilon=1.0)
    exact = sampling_delta_of(rows * vertices.eps0_accounted, 50)
    assert exact <= counted(charge_of(vertices), rows)[1] / UNITS <= 1.000001 * exact
    staged = MECHANISMS["exponential and gaussian"](epsilon=0.5)
    own = _sampling_delta(rows**2 * staged.rho, staged.draws)
    assert own <= counted(charge_of(staged), rows)[1] / UNITS
    noise = MECHANISMS["gaussian"](epsilon=0.5)
    loss = rows**2 * noise.rho + 2 * rows * math.sqrt(40 * noise.rho)
    assert noise.sampling_delta / 2 * (1 + math.exp(loss)) <= (
        counted(charge_of(noise), rows)[1] / UNITS
    )


@given(
    st.integers(1, 10**29),
    st.integers(0, 10**20),
    st.one_of(st.none(), st.integers(1, 40)),
    st.integers(1, 100),
)
def test_a_charge_counts_the_square_of_the_steps_between_two_data_sets(rho, draws, covered, rows):
    one = replace(raw_charge(rho, draws), rows_per_person=covered)
    steps = math.ceil(rows / (covered or 1))
    found = counted(one, rows)
    assert found[0] == steps**2 * rho
    assert found[1] == draws if steps == 1 or not draws else found[1] > draws
    # Whoever has more rows pays no less.
    assert counted(one, rows + 1) >= found


CHARGES = st.lists(
    st.tuples(st.integers(1, 10**27), st.integers(0, 10**18), st.sampled_from([1, 2, 3, 5, None])),
    max_size=6,
)


@settings(max_examples=50)
@given(CHARGES, st.integers(1, 6))
def test_totals_are_right_for_a_row_and_for_every_person(charges, rows):
    made = [replace(raw_charge(rho, d), rows_per_person=m) for rho, d, m in charges]
    budget = budget_with(made, rows=rows)
    found = totals(budget)
    assert set(found) == {1, rows, *(m or 1 for _, _, m in charges)}
    for person, (rho, draws) in found.items():
        assert rho == sum(math.ceil(person / (m or 1)) ** 2 * cost for cost, _, m in charges)
        assert (rho, draws) == spent(budget.entries, person)
    assert (budget.rho, budget.draw_delta) == found[rows]
    assert found[1] == (sum(c[0] for c in charges), sum(c[1] for c in charges))
    # Within a budget for persons, a row is within it too.
    assert list(found.values()) == sorted(found.values())


@settings(max_examples=20)
@given(CHARGES, st.integers(1, 6), st.integers(1, 6), st.integers(1, 10**28))
def test_a_budget_compares_what_its_persons_pay(charges, rows, covered, rho):
    made = [replace(raw_charge(cost, d), rows_per_person=m) for cost, d, m in charges]
    budget = budget_with(made, rows=rows)
    one = replace(raw_charge(rho), rows_per_person=covered)
    whole, draws = counted(one, rows)
    room = rho_limit(budget, draws, 1) - budget.rho
    assert affords(budget, one) == (whole <= room)
    assert (fits_left(budget, one) > 0) == affords(budget, one)


def test_what_a_person_cannot_pay_is_refused_and_says_why(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, 1.0, 1e-5, dataset="visits", rows_per_person=5)
    cost = charge_of(MECHANISMS["gaussian"](epsilon=0.5))
    with pytest.raises(BudgetError) as refusal:
        reserve(path, "visits", cost)
    told = str(refusal.value)
    assert "in all for each person with up to 5 rows; it covers each row and so counts 25" in told
    assert "times: rows_per_person=5 would count once" in told
    left = float(told.split("at most epsilon ")[1].split()[0])
    assert read_budgets(path)[0].entries == ()
    reserve(path, "visits", charge_of(MECHANISMS["gaussian"](epsilon=0.5, rows_per_person=5)))
    add_dataset(path, "other", 1.0, 1e-5, rows_per_person=5)
    reserve(path, "other", charge_of(MECHANISMS["gaussian"](epsilon=left)))


def test_of_a_search_for_rows_nobody_knows_what_it_costs_a_person(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, 100.0, 1e-5, rows_per_person=2)
    with pytest.raises(BudgetError, match=r"search for each row .*; give rows_per_person=2 and g"):
        reserve(path, None, charge_of(search_cost(0.5, 1e-6, tries_of(3))))
    assert read_budgets(path)[0].entries == ()
    known = search_cost(0.5, 1e-6, tries_of(3), rows_per_person=2)
    reserve(path, None, charge_of(known))
    assert read_budgets(path)[0].rho == charge_of(known).rho


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("covered", "fits"), [(1, 1), (2, 1), (5, 1), (5, 3)])
def test_the_rest_of_a_budget_for_persons(name, covered, fits):
    budget = budget_with([raw_charge(10**26)], rows=5)
    planned = {"mechanism": name, "delta": 1e-6, "n_iter": 100, "fits": fits}
    draws = Draws(100 * 2.0**24 * ("gaussian" in name), 100 * ("exponential" in name))

    def cost(epsilon):
        known = {"epsilon": epsilon, "rows_per_person": covered, "n_iter": 100}
        return charge_of(budget_of(draws, **known))

    left = largest_epsilon(budget, rows_per_person=covered, **planned)
    assert left > 0.05
    assert affords(budget, cost(left), fits)
    assert not affords(budget, cost(1.00001 * left), fits)
    if covered == 5:
        assert largest_epsilon(budget, **planned) == left


def test_the_total_of_a_person_in_all_data_sets_is_the_sum(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, 1.0, 1e-6, dataset="january")
    add_dataset(path, "february", 1.0, 1e-6)
    for name, epsilon in (("january", 0.5), ("february", 0.9)):
        reserve(path, name, charge(epsilon, 1e-7))
    budgets = read_budgets(path)
    rho, draws = (sum(getattr(each, name) for each in budgets) for name in ("rho", "draw_delta"))
    epsilon, delta = total_of(budgets)
    assert delta == 1e-6
    assert epsilon == epsilon_total(rho, draws, delta) > 0.9
    # Somebody protected in March with two rows may have as many in January.
    add_dataset(path, "march", 1.0, 1e-6, rows_per_person=2)
    both = [spent(each.entries, 2) for each in budgets]
    rho, draws = (sum(part) for part in zip(*both, strict=True))
    assert total_of(read_budgets(path))[0] == epsilon_total(rho, draws, delta) > 1.9 * epsilon
    add_dataset(path, "april", 2.0, 1e-5, neighbors="replace-one")
    assert total_of(read_budgets(path)) is None


def test_the_total_counts_a_search_that_has_a_whole_budget_by_its_own_promise(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, 1.0, 1e-9, dataset="january")
    add_dataset(path, "february", 1.0, 1e-6)
    cost = search_cost(1.0, 1e-9, tries_of(10))
    reserve(path, "january", charge_of(whole_budget(cost, Ledger(path, "january"))))
    january, february = read_budgets(path)
    # The charge is less zCDP than the search costs, so it says nothing at another delta.
    by_charge = epsilon_total(january.rho, january.draw_delta, february.delta)
    assert by_charge < epsilon_of_search(cost.try_rho, cost.tries, february.delta) < 1.0
    assert total_of((january, february)) == (1.0, 1e-6 + 1e-9)
    reserve(path, "february", charge(0.5))
    (february,) = read_budgets(path)[1:]
    alone = epsilon_total(february.rho, february.draw_delta, 1e-6)
    assert total_of(read_budgets(path)) == (pytest.approx(1.0 + alone), 1e-6 + 1e-9)
    # Nothing is known of more rows than the search covers.
    add_dataset(path, "march", 1.0, 1e-6, rows_per_person=2)
    assert total_of(read_budgets(path))[0] == math.inf
