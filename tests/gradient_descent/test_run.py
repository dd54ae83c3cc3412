"""A whole fit: nothing is released that the budget has not paid for, and nothing twice."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dplasso.gradient_descent import measures
from dplasso.gradient_descent.counts import Classes, noisy_counts
from dplasso.gradient_descent.plan import RunPlan, largest, plan_stages
from dplasso.gradient_descent.records import records_of
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.run import GradientRun
from dplasso.gradient_descent.solve import NoisyGradientDescent, gradient_unit
from dplasso.gradient_descent.state import GradientState
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import count_classes, targets_of
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_STEPS, build_gaussian
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent.cases import records, stream
from recorder import recording

ALARM = 1e-6


def counted(count, *rest):
    """Return one noisy count."""
    return float(noisy_counts([count], *rest)[0])


def budget(epsilon=1.0, delta=1e-6, n_iter=20, n_coordinates=100, **options):
    return build_gaussian(
        epsilon=epsilon, delta=delta, n_iter=n_iter, n_coordinates=n_coordinates, **options
    )


def plan(n_steps, max_weights=None, n_features=12, **options):
    stages = plan_stages(n_steps, max_weights, n_features)
    public = {"fit_intercept": True, "norm_bound": None, "n_records": None, "significant": False}
    return RunPlan(stages=stages, **(public | options))


def make(a_plan, X, y, *, mechanism=None, seed=0, prefix=None, classes=None):
    fit = GradientRun(
        a_plan,
        mechanism or budget(n_iter=a_plan.ends[-1]),
        records_of(X, Logistic(0.5), targets_of(y), ONE_THREAD),
        stream(seed),
        threads=ONE_THREAD,
        prefix=prefix,
        classes=classes,
    )
    fit.begin()
    return fit


def finished(*arguments, **options):
    fit = make(*arguments, **options)
    fit.advance(1, fit.n_steps)
    return fit


@pytest.mark.parametrize("n_steps", [None, 1, 2, 3, 4, 7, 80, 1000])
@pytest.mark.parametrize("max_weights", [None, 1, 10, 99, 100, 5000])
@pytest.mark.parametrize("n_features", [1, 100, 100_000])
def test_stages_divide_the_steps_the_budget_and_the_columns(n_steps, max_weights, n_features):
    stages = plan_stages(n_steps, max_weights, n_features)
    assert sum(stage.share for stage in stages) == pytest.approx(1.0, rel=1e-12)
    assert all(stage.n_steps >= 1 for stage in stages)
    if n_steps is not None:
        assert sum(stage.n_steps for stage in stages) == n_steps
    sizes = [stage.n_columns for stage in stages]
    assert sizes[0] == n_features
    assert all(fewer < more for more, fewer in pairwise(sizes))
    if len(stages) > 1:
        assert sizes[-1] == max_weights
    elif max_weights is not None and n_steps != 1:
        assert max_weights >= n_features


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("max_weights", [None, 3, "significant"])
@pytest.mark.parametrize("n_records", [None, 40])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_what_is_drawn_costs_no_more_than_the_budget(relation, rows, max_weights, n_records, share):
    """Added up from the standard deviations that were really drawn with."""
    mechanism = budget(neighbors=relation, rows_per_person=rows)
    X, y = records()
    kept = max_weights if isinstance(max_weights, int) else None
    a_plan = plan(20, kept, significant=max_weights == "significant", n_records=n_records)
    a_plan = replace(a_plan, calibration=share)
    with recording() as recorder:
        fit = finished(a_plan, X, y, mechanism=mechanism)
    gradient = 0.5 * rows * (1 if relation == "add-remove" else 2) * gradient_unit(0.5, 0.0)
    spent, counts = [], 0
    for one in recorder.releases:
        if one.statistic.size == 1:
            # A record is 2^32 units of the count, and public where one replaces another.
            moved = (rows - (relation == "replace-one")) * 2.0**32
            assert (one.sensitivity, bool(one.scale)) == (moved, moved > 0.0)
            counts += 1
        else:
            moved = gradient
            assert one.sensitivity == gradient
        spent.append((moved / one.scale) ** 2 if moved else 0.0)
    if n_records is not None or rows - (relation == "replace-one") == 0:
        assert fit.release(1).numbers[0] == 40
    assert counts == (n_records is None)
    assert len(spent) == a_plan.ends[-1] + counts + CALIBRATION_STEPS * (share > 0.0)
    assert sum(spent) <= mechanism.mu**2 * (1 + 1e-12)
    assert sum(spent) >= mechanism.mu**2 * (1 - 1e-9)


def classes_of(y):
    loss = Logistic(0.5)
    return Classes(lambda: count_classes(loss, targets_of(y)), loss.starting_offset)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("max_weights", [None, 3])
def test_classes_are_counted_for_the_same_budget(relation, rows, max_weights):
    mechanism = budget(neighbors=relation, rows_per_person=rows, by_class=True)
    X, y = records()
    a_plan = replace(plan(20, max_weights), calibration=0.05)
    with recording() as recorder:
        finished(a_plan, X, y, mechanism=mechanism, classes=classes_of(y))
    first, *others = recorder.releases
    moved = rows * (1.0 if relation == "add-remove" else math.sqrt(2.0))
    assert (first.sensitivity, first.statistic.size) == (moved * 2.0**32, 2)
    assert (first.statistic / 2.0**32).tolist() == [40 - y.sum(), y.sum()]
    spent = [(first.sensitivity / first.scale) ** 2]
    gradient = 0.5 * rows * (1 if relation == "add-remove" else 2) * gradient_unit(0.5, 0.0)
    spent += [(gradient / one.scale) ** 2 for one in others]
    assert len(others) == 20 + CALIBRATION_STEPS
    assert sum(spent) == pytest.approx(mechanism.mu**2, rel=1e-9)
    assert sum(spent) <= mechanism.mu**2 * (1 + 1e-12)


def rare(n_rows=4000):
    X, _ = records(n_rows, 12)
    y = (np.arange(n_rows) % 25 == 0).astype(np.float64)
    return X, y, {"mechanism": budget(by_class=True), "classes": classes_of(y)}


def test_margins_start_from_the_noisy_counts_of_the_classes():
    """And from nothing else: not from the exact ones."""
    X, y, given = rare()
    found = set()
    for seed in range(3):
        with recording() as recorder:
            fit = make(plan(20), X, y, seed=seed, **given)
        counts = recorder.releases[0].answer / 2.0**32
        deviation = 1.0 / (given["mechanism"].mu * 0.1)
        offset = Logistic(0.5).starting_offset(counts, deviation)
        total, _, _, started = fit.release(0).numbers
        assert total == pytest.approx(counts.sum(), rel=1e-12)
        # As far as it is beyond twice what noise may move it.
        assert started == pytest.approx(offset + 1.0, rel=1e-9)
        assert -4.0 < started < -1.0
        # The constant entry of a row makes that margin.
        assert fit._solver.weights[-1] * 0.1 == pytest.approx(started, rel=1e-6)
        assert not fit._solver.weights[:-1].any()
        found.add(started)
    assert len(found) == 3


def test_a_balance_within_the_noise_is_none():
    X, y = records()
    given = {"mechanism": budget(by_class=True), "classes": classes_of(y)}
    fit = make(plan(20), X, y, **given)
    assert fit.release(0).numbers[3:].tolist() == [0.0]
    assert not fit._solver.weights.any()


@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_fit_that_goes_on_starts_from_the_same_margins(at):
    X, y, given = rare()
    fit = make(plan(12, 2), X, y, **given)
    fit.advance(1, at)
    state = through_a_file(fit.release(at), 12)
    given["classes"] = Classes(lambda: pytest.fail("counted once more"), given["classes"].offset)
    again = make(plan(12, 2), X, y, seed=1, prefix=state, **given)
    np.testing.assert_array_equal(again._numbers, fit._numbers)
    np.testing.assert_array_equal(again._solver.weights, fit._solver.weights)
    # A cut halves what was learnt, not where margins start.
    again.advance(at + 1, 6)
    assert again._solver.weights[-1] * 0.1 < 0.5 * fit._numbers[3]


def test_a_rare_class_is_told_apart_from_the_first_gradient_on():
    """Gradients of columns that say nothing are noise, not the pull of the commoner class."""
    X, y, given = rare(20_000)
    X = np.abs(X)
    given["mechanism"] = budget(epsilon=20.0, by_class=True)
    pulls = []
    for classes in (None, given["classes"]):
        fit = make(plan(20), X, y, **(given | {"classes": classes}))
        fit.advance(1, 1)
        pulls.append(np.abs(fit._solver.velocity[:-1]).max())
    assert pulls[1] < 0.2 * pulls[0]


def test_the_count_is_normal_around_the_number_of_records():
    """Kolmogorov-Smirnov on 500 counts; with a false alarm once in a million."""
    counts = [counted(10**6, 3, 0.2, stream(seed)) for seed in range(500)]
    p = kstest((np.array(counts) - 10**6) / 15.0, "norm").pvalue
    assert p > ALARM
    # Noise of half, or of none.
    assert kstest((np.array(counts) - 10**6) / 30.0, "norm").pvalue < ALARM
    assert counted(17, 0, 0.2, stream()) == 17.0
    assert counted(17, 3, math.inf, stream()) == 17.0


@pytest.mark.parametrize("sensitivity", [1, 10**6, 10**9])
@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3])
def test_a_count_under_huge_noise_moves_by_no_more_than_is_paid_for(sensitivity, mu):
    """The value that noise is added to, in units of its standard deviation."""
    with recording() as recorder:
        for count in (1000, 1000 + sensitivity):
            counted(count, sensitivity, mu, stream())
    one, other = recorder.releases
    assert (other.statistic[0] - one.statistic[0]) / one.scale <= mu * (1 + 1e-12)


def test_a_count_is_at_least_one():
    assert min(counted(1, 1, 0.01, stream(seed)) for seed in range(20)) == 1.0


def test_the_columns_that_stay_are_a_function_of_what_was_released():
    X, y = records(60, 30)
    a_plan = plan(12, 2, n_features=30)
    assert [stage.n_columns for stage in a_plan.stages] == [30, 10, 2]
    fit, kept, done = make(a_plan, X, y), np.arange(30), 0
    for end, following in zip(a_plan.ends, a_plan.stages[1:], strict=False):
        fit.advance(done + 1, end)
        released, done = fit.release(end), end + 1
        order = np.argsort(-np.abs(released.averaged[:-1]), kind="stable")
        kept = np.sort(kept[order[: following.n_columns]])
        fit.advance(done, done)
        np.testing.assert_array_equal(fit.release(done).columns, kept)
    fit.advance(done + 1, fit.n_steps)
    model = fit.release()
    np.testing.assert_array_equal(model.columns, kept)
    assert model.coefficients()[0].toarray().nonzero()[1].tolist() == kept.tolist()


def test_the_largest_are_by_magnitude_and_the_first_of_equals():
    assert largest(np.array([1.0, -3.0, 2.0, 3.0, -2.0]), 3).tolist() == [1, 2, 3]
    assert largest(np.zeros(5), 2).tolist() == [0, 1]


def test_significant_weights_are_beyond_three_standard_errors():
    X, y = records(400, 12)
    y = (X[:, 0] > 0).astype(np.float64)
    mechanism = budget(epsilon=5.0)
    dense = finished(plan(20), X, y, mechanism=mechanism).release()
    cut = finished(plan(20, significant=True), X, y, mechanism=mechanism).release()
    beyond = np.abs(dense.weights[0]) > 3 * dense.standard_error
    assert 0 < beyond.sum() < 12
    np.testing.assert_array_equal(cut.columns, np.flatnonzero(beyond))
    np.testing.assert_array_equal(cut.weights[0], dense.weights[0, beyond])
    nothing = finished(plan(20, significant=True), 0 * X, y, mechanism=budget()).release()
    assert nothing.coefficients()[0].shape == (1, 12)


def test_the_standard_error_of_a_short_list_is_that_of_noise_alone():
    """Almost no column is left out, so that the choice is none."""
    nothing, y = np.zeros((3, 4000)), np.ones(3)
    nothing[0, 0] = 1.0
    fit = finished(plan(40, 3990, n_features=4000, n_records=3), nothing, y).release()
    squares = (fit.weights**2).sum() / fit.standard_error**2
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], 3990)
    # The ten smallest are missing: in sum, far less than one.
    assert low < squares < high
    assert not low < squares * 1.15**2 < high


def interrupted(at):
    """Return records, a plan, and a fit of it and its release after `at` of 12 gradients."""
    X, y = records(60, 30)
    a_plan = plan(12, 2, n_features=30)
    fit = make(a_plan, X, y)
    fit.advance(1, at)
    return X, y, a_plan, fit, fit.release(at)


def through_a_file(state, n_features):
    arrays = {name: np.array(array) for name, array in state.arrays().items()}
    return GradientState.from_arrays(arrays, {"n_features": n_features})


@pytest.mark.parametrize("at", range(12))
def test_a_fit_that_goes_on_keeps_what_was_released(monkeypatch, at):
    X, y, a_plan, fit, state = interrupted(at)
    monkeypatch.setattr(measures, "noisy_counts", lambda *_: pytest.fail("counted once more"))
    again = make(a_plan, X, y, seed=1, prefix=through_a_file(state, 30))
    for step in range(1, at + 1):
        again.advance(step, step)
    assert state.agrees_with(again.release(at))
    assert again.release(at).agrees_with(state)
    again.advance(at + 1, 12)
    fit.advance(at + 1, 12)
    one, other = fit.release(), again.release()
    assert one.standard_error == other.standard_error
    # The rest is drawn afresh.
    assert not np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize("at", [1, 4, 5, 9, 11])
def test_only_the_remaining_gradients_are_taken(monkeypatch, at):
    X, y, a_plan, _, state = interrupted(at)
    taken = []
    solver = NoisyGradientDescent
    step = solver._step
    monkeypatch.setattr(solver, "_step", lambda self, t: taken.append(t) or step(self, t))
    again = make(a_plan, X, y, seed=1, prefix=state)
    again.advance(1, 12)
    assert len(taken) == 12 - at


def test_a_state_of_another_plan_is_refused():
    X, y, a_plan, _, late = interrupted(9)
    for wrong in (
        replace(late, done=3),
        replace(late, columns=late.columns[:1]),
        replace(late, **dict.fromkeys(("weights", "velocity", "averaged"), np.zeros(7))),
    ):
        with pytest.raises(ValueError, match="not one of this fit"):
            make(a_plan, X, y, prefix=wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": np.array([3, 3])},
        {"columns": np.array([-1, 3])},
        {"columns": np.array([3, 30])},
        {"velocity": np.zeros(2)},
        {"weights": np.array([1.0, np.nan, 0.0])},
        {"numbers": np.zeros(2)},
        {"numbers": np.array([np.inf, 0.0, 0.0])},
        {"energies": np.ones(1, dtype=np.float32)},
        {"energies": np.array([1.0, np.nan], dtype=np.float32)},
        {"done": -1},
    ],
)
def test_a_damaged_state_is_refused(changes):
    *_, state = interrupted(11)
    with pytest.raises(ValueError, match=r"its columns|do not fit|not finite"):
        replace(state, **changes)


def test_states_and_models_agree_where_both_have_come():
    X, y = records()
    fit = finished(plan(8), X, y)
    model, other = fit.release(), finished(plan(8), X, y, seed=1).release()
    assert model.agrees_with(fit.release())
    assert not model.agrees_with(other)
    # One of them is not as far: nothing contradicts.
    empty = GradientState.empty({"n_features": 12})
    assert model.agrees_with(empty)
    assert empty.agrees_with(model)
    # Unless they counted otherwise.
    begun, others = make(plan(8), X, y), make(plan(8), X, y, seed=1)
    begun.advance(1, 3)
    assert begun.release(0).agrees_with(begun.release(3))
    assert not begun.release(3).agrees_with(others.release(0))
    with pytest.raises(ValueError, match="not complete"):
        empty.coefficients()


def test_parts_of_records_are_counted_like_records():
    for mu in (math.inf, 0.5, 1e-7):
        whole = counted(1000, 1.0, mu, stream())
        assert counted(1000 << 20, 1.0, mu, stream(), 20) == whole
    half = counted((1000 << 20) + (1 << 19), 1.0, 0.5, stream(), 20)
    assert half - counted(1000, 1.0, 0.5, stream()) == pytest.approx(0.5)


@pytest.mark.parametrize("max_weights", [None, 3])
def test_a_release_comes_back_from_its_arrays(max_weights):
    X, y = records()
    model = finished(plan(9, max_weights), X, y).release()
    again = NoisyWeights.from_arrays(model.arrays(), {"n_features": 12})
    assert again.agrees_with(model)
    assert len(again) == 9
    assert again.standard_error == model.standard_error > 0
    assert again.intercept == model.intercept


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": np.array([2, 1])},
        {"columns": np.array([1, 12])},
        {"columns": np.array([1])},
        {"weights": np.zeros((1, 3))},
        {"weights": np.zeros((2, 2))},
        {"weights": np.array([[1.0, np.inf]])},
        {"intercept": np.array([math.nan])},
        {"standard_error": math.inf},
        {"energies": np.ones(3, dtype=np.float32)},
        {"energies": np.array([1.0, np.inf], dtype=np.float32)},
    ],
)
def test_a_damaged_release_is_refused(changes):
    good = NoisyWeights(5, 12, np.array([1, 4]), np.ones((1, 2)), np.zeros(1), 0.1, 0.01)
    with pytest.raises(ValueError, match=r"its columns|do not fit|not a finite"):
        replace(good, **changes)
