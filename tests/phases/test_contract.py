"""What every phase of every plan keeps to: it spends its share, and goes on where it was."""

import math

import numpy as np
import pytest

from dplasso.phases.contract import NO_SNAPSHOT, check_share
from dplasso.phases.released import Released
from phases.cases import PLANS, Answers, Notes, at_the_door, begin, prepared, rows, small, walked

each_plan = pytest.mark.parametrize("name", PLANS)
# Of the exponent of a draw, withheld for its rounding.
SLACK = 2.0**-19


def spent(taken):
    """Return the squared mu of what passed the door."""
    gaussian = math.fsum((moved / scale) ** 2 for moved, scale, _ in taken.noisy)
    if taken.drawing is None:
        return gaussian
    exponent, moved = taken.drawing
    return gaussian + taken.steps.n_steps * (2.0 * exponent * moved) ** 2 / 4.0


@each_plan
def test_each_phase_spends_its_share_and_all_together_the_budget(name):
    taken, released, begun = walked(PLANS[name])
    whole = begun.budget.mu**2
    for one in taken:
        assert spent(one) <= one.share * whole * (1.0 + 1e-9), one.phase.name
        assert spent(one) >= one.share * whole * (1.0 - SLACK), one.phase.name
    # Of a prior's short list, the length of rows in all columns is known, and its part is left.
    assert released.spent == pytest.approx(1.0, abs=0.004 if "prior of" in name else 1e-9)


@each_plan
def test_no_more_is_drawn_than_the_budget_was_made_for(name):
    taken, _, begun = walked(PLANS[name])
    for one in taken:
        gaussian, vertices = one.phase.draws
        assert sum(size for *_, size in one.noisy) <= gaussian, one.phase.name
        assert one.steps.n_steps <= one.phase.most_steps
        assert one.drawing is None or one.steps.n_steps <= vertices
    assert begun.budget.draws == begun.plan.draws
    assert begun.statement.steps == max(1, begun.plan.n_steps)


@each_plan
@pytest.mark.parametrize("loud", [0.0, 30.0, 1e6])
def test_shares_add_up_to_at_most_one_whatever_is_released(name, loud):
    _, released, _ = walked(PLANS[name], Notes(loud=loud))
    assert released.spent <= 1.0 + 1e-12
    assert all(entry.share >= 0.0 for entry in released.entries)


@each_plan
def test_a_phase_that_asks_for_more_than_is_left_is_refused(name):
    taken, _, _ = walked(PLANS[name])
    for one in taken:
        left = 1.0 - one.before.spent
        for share in (left + 1e-9, -1e-9, math.nan):
            with pytest.raises(RuntimeError, match=repr(one.phase.name)):
                check_share(one.phase, share, one.before)


@each_plan
def test_a_phase_without_a_share_draws_nothing_and_what_is_stated_names_the_others(name):
    taken, _, begun = walked(PLANS[name])
    stated = {one.name: one for one in begun.plan.stated(begun.budget)}
    assert stated == {one.name: one for one in begun.statement.releases}
    for one in taken:
        draws = bool(one.noisy) or one.drawing is not None
        assert draws == (one.share > 0.0), one.phase.name
        assert one.release is not None or not draws
        if not draws:
            continue
        numbers = stated[one.phase.name].numbers
        moved = [one.drawing[1]] if one.drawing else [sensitivity for sensitivity, *_ in one.noisy]
        # In units that are a power of two for one residual, whose bound is stated.
        units = np.array(moved) * numbers.get("feature_bound", 1.0) / numbers["sensitivity"]
        bounds = {own.numbers.get("residual_bound", 1.0) for own in stated.values()}
        exact = [np.log2(units * bound) for bound in bounds]
        assert any(np.allclose(own, np.rint(own), atol=1e-6) for own in exact)
        assert numbers.get("steps", 0.0) >= one.steps.n_steps


@each_plan
def test_gradients_are_of_the_loss_that_is_stated(name):
    taken, _, begun = walked(PLANS[name])
    for one in taken:
        if one.phase.name == "gradients" and one.steps.n_steps:
            stated = one.phase.numbers(begun.budget)["residual_bound"]
            assert one.steps.course.loss.residual_bound == stated


@each_plan
def test_what_is_released_comes_back_from_its_arrays(name):
    _, released, _ = walked(PLANS[name])
    again = Released.from_arrays(released.arrays())
    assert again.digest == released.digest
    assert [type(entry.release) for entry in again.entries] == [
        type(entry.release) for entry in released.entries
    ]
    assert again.spent == released.spent


def same(one, other):
    assert type(one) is type(other)
    for field, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[field], err_msg=field)


@each_plan
def test_a_phase_goes_on_from_a_snapshot_as_it_would_have(name):
    case = PLANS[name]
    taken, _, _ = walked(case)
    with small(case), at_the_door(Notes()) as door:
        begun = prepared(case)
        for place, whole in enumerate(taken):
            mu, n_steps = begun.budget.mu_of(whole.share), whole.steps.n_steps
            for at in {0, 1, n_steps // 2, n_steps - 1} & {*range(n_steps)}:
                door.enter(place)
                first = whole.phase.begin(begin(begun), whole.before, mu, NO_SNAPSHOT)
                first.advance(1, at)
                snapshot = {k: np.array(v) for k, v in first.snapshot(at).items()}
                assert snapshot["done"] == at
                door.enter(place, at)
                again = whole.phase.begin(begin(begun), whole.before, mu, snapshot)
                assert again.n_steps == n_steps
                assert again.done in (0, at)
                again.advance(again.done + 1, n_steps)
                same(again.release(), whole.release)


@each_plan
def test_records_are_known_by_what_was_released_alone(name):
    """Of the same answers every record's fit releases the same, with the same noise."""
    case = PLANS[name]
    X, y = rows(case)
    others = rows(case, seed=9), (X[:50], y[:50]), (0.0 * X, y), (X, y[::-1])
    taken, released, _ = walked(case, Answers())
    for data in others:
        again, also_released, _ = walked(case, Answers(), data)
        for one, other in zip(taken, again, strict=True):
            assert (one.noisy, one.drawing, one.share) == (other.noisy, other.drawing, other.share)
        assert also_released.digest == released.digest


@pytest.mark.parametrize("name", ["logistic", "short list", "three classes", "lasso, kept"])
def test_a_snapshot_of_another_plan_is_refused(name):
    case = PLANS[name]
    taken, _, _ = walked(case)
    with small(case), at_the_door(Notes()):
        begun = prepared(case)
        fit = begin(begun)
        for one in taken:
            if not one.steps.n_steps:
                continue
            mu = begun.budget.mu_of(one.share)
            shorter = {k: v[:-1] if v.ndim else v for k, v in one.steps.snapshot(3).items()}
            with pytest.raises(ValueError, match="weights is not one of"):
                one.phase.begin(fit, one.before, mu, shorter)
