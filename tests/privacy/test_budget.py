"""The one place of costs: never more is spent than asked, in whichever way noise is drawn."""

import inspect
import math
from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.privacy import budget as module
from dplasso.privacy.accounting import (
    EPSILON_OF_RHO,
    LARGEST_SCALE,
    TAIL,
    epsilon_of_steps,
    epsilon_spent,
    gaussian_epsilon,
)
from dplasso.privacy.budget import (
    LARGEST_EPSILON,
    LARGEST_RATIO,
    MARGIN,
    RATIO_RHO,
    Budget,
    Draws,
    build_budget,
)
from dplasso.privacy.exponential_mechanism import SAMPLING_ERROR, TRUE_SIGN
from dplasso.privacy.parameters import share_bits
from privacy.reference import epsilon_of_event, event_of, exact_delta

GAUSSIAN, VERTICES = Draws(gaussian=300_001.0), Draws(vertices=1000)
BOTH = Draws(300_001.0, 200)
KINDS = {"gaussian": GAUSSIAN, "exponential": VERTICES, "exponential and gaussian": BOTH}
each_kind = pytest.mark.parametrize("name", KINDS)


def build(draws=GAUSSIAN, **changes):
    return build_budget(draws, **({"epsilon": 1.0, "delta": 1e-6, "n_iter": 300} | changes))


@each_kind
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_its_event_is_what_it_spends(name, epsilon):
    """By the accountant of dp_accounting, which knows no shares, and by the exact curve."""
    budget = build(KINDS[name], epsilon=epsilon)
    assert (budget.name, budget.leak) == (name, "")
    left = budget.delta - budget.sampling_delta
    by_event = epsilon_of_event(event_of(budget), left)
    assert 0.99 * epsilon < budget.epsilon_spent <= epsilon
    if name == "gaussian":
        # Renyi orders are looser than the curve, and not by much.
        assert exact_delta(budget.mu, budget.epsilon_spent - budget.ratio_error) <= left
        assert 0.8 * by_event < budget.epsilon_spent < by_event
    else:
        assert budget.epsilon_spent == pytest.approx(by_event, rel=1e-12)
    # What a ledger adds up alone is the same cost.
    rho = budget.mu**2 / 2.0 + RATIO_RHO * budget.ratio_error
    assert budget.rho == pytest.approx(rho, rel=1e-15)
    assert EPSILON_OF_RHO[name](budget.mu**2 / 2.0, left) <= epsilon
    if budget.eps0_accounted is not None:
        assert budget.eps0_accounted**2 / 8.0 * 1000 == pytest.approx(budget.rho, rel=1e-12)
    assert ("exact curve" in budget.accountant) == (name == "gaussian")


@each_kind
def test_a_margin_is_left_for_sums_in_another_order(name):
    """A ledger adds up the same costs in another order: 2^-40 of them is given away for that."""
    small = build(KINDS[name])
    larger = replace(small, mu=small.mu * (1.0 + 0.4 * MARGIN))
    left = small.delta - small.sampling_delta
    assert EPSILON_OF_RHO[name](larger.mu**2 / 2.0, left) + small.ratio_error <= 1.0


@given(
    st.floats(1e-9, 1e6), st.floats(1e-15, 0.999999), st.integers(1, 10**6), st.integers(1, 10**9)
)
@example(1e-9, 0.999999, 1, 1)
@example(60.0, 0.999999, 1, 1)
@example(1e6, 1e-6, 10**5, 10**6)
def test_gaussian_noise_never_spends_more_than_asked(epsilon, delta, n_iter, n_coordinates):
    draws = float(n_iter) * n_coordinates + 1.0
    try:
        budget = build(Draws(gaussian=draws), epsilon=epsilon, delta=delta, n_iter=n_iter)
    except ValueError as error:
        assert "too small to cover the rounding" in str(error)  # noqa: PT017
        return
    spent = budget.epsilon_spent
    assert 0 < spent <= min(epsilon, LARGEST_EPSILON)
    assert exact_delta(budget.mu, spent - budget.ratio_error) <= delta * (1 + 1e-12)
    assert budget.sampling_delta < delta / 2
    # No standard deviation in units is smaller than what the rounding was charged for, however many
    # records there are: a unit is 2^-29 of the sensitivity's own unit, or so coarse that the
    # largest noise of a run, and with it a part of that, spans half the largest scale.
    least = min(2.0 ** share_bits(1e12) / budget.mu, LARGEST_SCALE / 2 / LARGEST_RATIO)
    charged = 2 * draws * TAIL**2 / (24 * least**2)
    assert budget.ratio_error >= charged * (1 - 1e-9)
    tail = draws * 2 * math.erfc(TAIL / math.sqrt(2)) * (1 + math.exp(spent))
    assert budget.sampling_delta >= tail * (1 - 1e-12)


# A smaller example than one that fails would take minutes to find, and tell no more.
@settings(deadline=None, max_examples=15, phases=[Phase.generate])
@given(st.floats(0.01, 50.0), st.sampled_from([1e-4, 1e-6, 1e-8]), st.integers(10, 5000))
def test_vertices_spend_what_was_asked_and_no_more(epsilon, delta, n_iter):
    budget = build(Draws(vertices=n_iter), epsilon=epsilon, delta=delta)
    assert 0.99 * epsilon < budget.epsilon_spent <= epsilon
    assert budget.sampling_delta >= n_iter * SAMPLING_ERROR * (1 + math.exp(budget.eps0))
    again = epsilon_spent(budget.eps0, n_iter, delta - budget.sampling_delta)
    assert budget.epsilon_spent == pytest.approx(again, rel=1e-9)
    assert budget.eps0 == budget.eps0_of(1.0, n_iter)


@settings(deadline=None, max_examples=20, phases=[Phase.generate])
@given(
    st.floats(0.05, 20.0), st.sampled_from([1e-5, 1e-8]), st.floats(0.0, 1.0), st.integers(1, 200)
)
def test_vertices_and_noise_together_spend_no_more_than_asked(epsilon, delta, share, n_vertices):
    budget = build(BOTH, epsilon=epsilon, delta=delta)
    vertices = n_vertices * budget.eps0_of(share, n_vertices) ** 2 / 8.0 if share else 0.0
    rho = vertices + budget.mu_of(1.0 - share) ** 2 / 2.0
    assert rho == pytest.approx(budget.rho - RATIO_RHO * budget.ratio_error, rel=1e-12)
    assert 0.99 * epsilon < budget.epsilon_spent <= epsilon
    # rho-zCDP is (rho + 2 sqrt(rho log(1/delta)), delta)-private, which is looser; Gaussian noise
    # is rho-zCDP, and its curve cannot be beaten by any conversion.
    left = delta - budget.sampling_delta
    assert epsilon <= budget.rho + 2 * math.sqrt(budget.rho * -math.log(left))
    assert gaussian_epsilon(budget.mu, left) < budget.epsilon_spent


def test_the_number_of_records_enters_no_cost():
    asked = {*inspect.signature(build_budget).parameters, *(one.name for one in fields(Budget))}
    assert not [name for name in asked if "record" in name or "sample" in name]


@pytest.mark.parametrize(
    ("neighbors", "rows", "moved", "count", "by_class"),
    [
        ("add-remove", 1, 0.5, 1, 1),
        ("replace-one", 1, 1.0, 0, math.sqrt(2.0)),
        ("add-remove", 7, 3.5, 7, 7),
        # A person of one row is replaced by one of seven, or all rows by as many of another class.
        ("replace-one", 7, 7.0, 6, 7 * math.sqrt(2.0)),
        ("label", 1, 1.0, 0, math.sqrt(2.0)),
        ("label", 7, 7.0, 0, 7 * math.sqrt(2.0)),
    ],
)
def test_what_can_move_between_neighbours(neighbors, rows, moved, count, by_class):
    budget = build(neighbors=neighbors, rows_per_person=rows)
    assert budget.moved(0.5) == moved
    assert budget.moved_by_features(0.5) == (0.0 if neighbors == "label" else moved)
    assert budget.share_of_features(0.5) == (0.0 if neighbors == "label" else 0.5)
    assert budget.moved_counts(by_class=False) == count
    assert budget.moved_counts(by_class=True) == pytest.approx(by_class, rel=1e-15)
    # The budget is the same; the noise grows with the sensitivity.
    assert (budget.mu, budget.epsilon_spent) == (build().mu, build().epsilon_spent)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 8.0])
@pytest.mark.parametrize("rows", [1, 5])
def test_rounding_of_contributions_is_kept_back_where_labels_alone_differ(epsilon, rows):
    """By what T gradients move in standard deviations, of units as coarse as they may be."""
    n_steps, n_coordinates, known = 300, 10**6, {"epsilon": epsilon, "rows_per_person": rows}
    budget = build(Draws(gaussian=float(n_steps * n_coordinates)), neighbors="label", **known)
    each, moved = budget.mu_of(1.0) / math.sqrt(n_steps), rows * math.sqrt(2.0)
    scale = moved / each
    for bits in (29, 32):
        unit = gradient_unit(math.sqrt(2.0), LARGEST_RATIO * scale, bits)
        further = moved * unit + rows * math.sqrt(n_coordinates)
        assert math.sqrt(n_steps) * further / (scale * unit) <= budget.mu
    assert budget.mu_of(1.0) > 0.95 * budget.mu
    whole = build(budget.draws, neighbors="replace-one", **known)
    assert whole.mu_of(1.0) == whole.mu == budget.mu


def test_zcdp_covers_the_curve_and_the_rounding():
    """Of order a, mu-GDP has a mu^2 / 2, and rounding moves each density by half of its error."""
    for epsilon in (0.01, 1.0, 60.0):
        budget = build(Draws(gaussian=1e11), epsilon=epsilon)
        assert budget.ratio_error > 0
        for order in (1.011, 1.1, 2.0, 50.0, 1e6):
            moved = (2 * order - 1) / (order - 1) * budget.ratio_error / 2
            assert order * budget.mu**2 / 2 + moved <= order * budget.rho


@each_kind
def test_several_rows_of_one_person(name):
    budget = build(KINDS[name])
    found = [budget.epsilon_of_rows(rows) for rows in (1, 2, 5, 10)]
    assert found[0] == pytest.approx(budget.epsilon_spent, rel=1e-6)
    # zCDP grows with the square, and epsilon at least in proportion.
    assert all(epsilon > rows for rows, epsilon in zip((2, 5, 10), found[1:], strict=True))
    assert found[3] < 10**2 * budget.rho + 2 * math.sqrt(10**2 * budget.rho * 14)
    # With a budget as large as this the rounding of draws could no longer be paid for.
    assert math.isinf(build(KINDS[name], epsilon=20.0).epsilon_of_rows(100))


@pytest.mark.parametrize("name", ["gaussian", "exponential and gaussian"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.86])
def test_a_fit_leaves_room_for_what_was_released_before_it(name, part):
    whole = build(KINDS[name])
    after = whole.after(part * whole.mu)
    assert after.whole <= whole.mu
    assert after.whole == pytest.approx(whole.mu, rel=1e-8)
    assert (after.before, after.eps0_accounted) == (part * whole.mu, None)
    assert 0.99 < after.epsilon_spent <= 1.0
    assert after.sampling_delta >= whole.sampling_delta
    left = after.delta - after.sampling_delta
    spent = epsilon_of_event(event_of(after), left)
    assert spent <= 1.0 if name != "gaussian" else exact_delta(after.whole, 1.0) <= left
    # The ledger was charged for the earlier release, and is for the fit alone.
    assert after.rho == pytest.approx(after.mu**2 / 2.0, rel=1e-6)
    assert after.epsilon_of_rows(1) == pytest.approx(after.epsilon_spent, rel=1e-6)


def test_what_leaves_too_little_or_is_not_counted_is_refused():
    with pytest.raises(ValueError, match="have already used most of it"):
        build().after(0.9 * build().mu)
    # The draws for edges take too much of delta, or more than all of it.
    for delta in (1e-50, 9e-51):
        budget = build(Draws(gaussian=3e3), delta=delta)
        with pytest.raises(ValueError, match=f"delta={delta:g} is too small .* a larger delta"):
            budget.after(0.1 * budget.mu)
    with pytest.raises(ValueError, match="leave n_records out"):
        build(VERTICES).after(0.01)


def test_where_rounding_would_cost_too_much_the_fit_is_refused():
    for draws, given_, words in (
        (GAUSSIAN, {"delta": 1e-53}, r"too small to cover the rounding of 3e\+05 random draws"),
        (Draws(gaussian=3e11), {"epsilon": 60.0, "delta": 1e-30}, "too small to cover"),
        (BOTH, {"delta": 1e-12}, "too small to cover the rounding"),
        # Of contributions, where labels alone differ.
        (Draws(gaussian=1e14), {"epsilon": 1e-7, "neighbors": "label"}, "too small to cover the"),
        (VERTICES, {"delta": 4e-10}, r"^delta must be above 4\.79e-10 for n_iter=1000"),
    ):
        with pytest.raises(ValueError, match=words):
            build(draws, **given_)
    assert build(VERTICES, delta=4.9e-10).epsilon_spent > 0.99


def test_very_few_vertices_at_a_huge_epsilon_spend_less_than_asked():
    budget = build(Draws(vertices=1), epsilon=1000.0)
    assert 10 < budget.eps0 < 30
    assert budget.epsilon_spent < 1000
    on_draws = SAMPLING_ERROR * (1 + math.exp(budget.eps0))
    assert on_draws <= budget.sampling_delta <= 0.95e-6


@pytest.mark.parametrize(("n_iter", "plain"), [(1, True), (5, True), (6, False), (50, False)])
def test_few_vertices_cost_no_more_than_the_sum_of_their_eps0(n_iter, plain):
    budget, former = (build(Draws(vertices=n_iter), plain_sum=one) for one in (True, False))
    assert (budget.eps0 > former.eps0) == plain
    assert max(budget.epsilon_spent, former.epsilon_spent) <= 1.0
    if plain:
        assert n_iter * Fraction(budget.eps0) <= Fraction(budget.epsilon_spent)
        assert budget.eps0 == pytest.approx(1.0 / n_iter, rel=1e-5)
        again = epsilon_of_steps(budget.eps0, n_iter, 1e-6 - budget.sampling_delta)
        assert budget.epsilon_of_rows(1) == pytest.approx(again)


def test_without_privacy_nothing_has_a_cost():
    paper = Budget(epsilon=1.0, delta=1e-6, leak=TRUE_SIGN)
    for name, budget in (
        *(("none", build(draws, epsilon=math.inf)) for draws in KINDS.values()),
        ("paper", paper),
    ):
        assert budget.name == name
        assert {budget.mu, budget.epsilon_spent, budget.rho, budget.eps0} == {math.inf}
        assert budget.mu_of(0.3) == budget.epsilon_of_rows(2) == math.inf
        assert budget.sampling_delta == budget.ratio_error == 0.0
        assert budget.eps0_accounted is None


def test_what_is_computed_once_is_computed_of_what_was_asked(monkeypatch):
    """The slow calibrations are kept by all they depend on."""
    assert build(BOTH).mu != build(BOTH, epsilon=1.1).mu != build(BOTH, delta=1e-7).mu
    before = build(BOTH).mu
    monkeypatch.setattr(module.accounting, "bracket", None)
    assert build(BOTH, neighbors="replace-one").mu == before
