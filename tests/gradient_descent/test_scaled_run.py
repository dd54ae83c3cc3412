"""Whole fits of so many records that energies of the columns pay: paid for, drawn once, stable."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from dplasso.gradient_descent import run as module
from dplasso.gradient_descent.energies import N_SIZES, halvings_of, shrinking
from dplasso.gradient_descent.records import records_of
from dplasso.gradient_descent.release import NoisyWeights, scales_of
from dplasso.gradient_descent.run import GradientRun
from dplasso.gradient_descent.schedule import FEWEST_STEPS, KAPPA, MOST_STEPS, further, schedule_for
from dplasso.gradient_descent.state import GradientState
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import targets_of
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_STEPS
from dplasso.runtime.threads import thread_pool
from gradient_descent.cases import stream
from gradient_descent.reference import factor
from gradient_descent.test_run import budget, finished, make, plan, through_a_file
from recorder import recording

ALARM = 1e-6
D = 30


def strong(n_rows=1900, seed=0):
    """Return rows with some columns that nearly everybody has, and labels that follow from them."""
    rng = np.random.default_rng(seed)
    density = np.where(np.arange(D) < 4, 0.95, 0.08)
    X = rng.normal(0.0, 1.0, (n_rows, D)) * (rng.random((n_rows, D)) < density)
    X[3], X[:, 5] = 0.0, 0.0
    return X, (X[:, 0] + X[:, 8] + 0.3 * rng.normal(size=n_rows) > 0).astype(np.float64)


def rich(**options):
    """Return as much budget as there can be."""
    return budget(epsilon=100.0, **options)


def energy_releases(recorder, a_plan):
    """Return the releases of energies, by their sizes: no other is as long."""
    sizes = {stage.n_columns + N_SIZES for stage in a_plan.stages}
    return [one for one in recorder.releases if one.statistic.size in sizes]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("max_weights", [None, 3, "significant"])
@pytest.mark.parametrize("n_records", [None, 5200])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_what_is_drawn_costs_no_more_than_the_budget(relation, rows, max_weights, n_records, share):
    """Added up from the standard deviations that were really drawn with."""
    mechanism = rich(neighbors=relation, rows_per_person=rows)
    X, y = strong(5200)
    kept = max_weights if isinstance(max_weights, int) else None
    a_plan = plan(8, kept, D, significant=max_weights == "significant", n_records=n_records)
    a_plan = replace(a_plan, calibration=share)
    with recording() as recorder:
        finished(a_plan, X, y, mechanism=mechanism)
    moved = rows * (1 if relation == "add-remove" else 2)
    found = energy_releases(recorder, a_plan)
    # Scales once, and what bounds the steps of each stage.
    assert len(found) == 1 + len(a_plan.stages)
    for one in found:
        unit = one.sensitivity / moved
        assert unit <= 2.0**32
        assert math.log2(unit) % 1 == 0
        assert one.scale > 0.0
    spent = [(one.sensitivity / one.scale) ** 2 for one in recorder.releases if one.sensitivity]
    counts = n_records is None and (rows, relation) != (1, "replace-one")
    assert len(spent) == 8 + counts + len(found) + CALIBRATION_STEPS * (share > 0.0)
    assert sum(spent) == pytest.approx(mechanism.mu**2, rel=1e-9)
    assert sum(spent) <= mechanism.mu**2 * (1 + 1e-12)


def test_of_few_records_nothing_is_spent_on_energies():
    X, y = strong(300)
    a_plan = plan(8, None, D)
    with recording() as recorder:
        fit = finished(a_plan, X, y, mechanism=rich())
    assert not energy_releases(recorder, a_plan)
    assert not fit.release().energies.size
    gradients = [one for one in recorder.releases if one.statistic.size > 1]
    spent = sum((one.sensitivity / one.scale) ** 2 for one in gradients)
    assert spent == pytest.approx(0.99 * rich().mu ** 2)


def interrupted(at, max_weights, n_steps=12):
    """Return records, a plan, and the state of a fit of it after `at` gradients."""
    X, y = strong()
    a_plan = plan(n_steps, max_weights, D)
    with recording() as recorder:
        fit = make(a_plan, X, y, mechanism=rich(n_iter=12))
        fit.advance(1, at)
    return X, y, a_plan, fit, fit.release(at), recorder


@pytest.mark.parametrize("max_weights", [None, 3])
@pytest.mark.parametrize("at", [0, 1, 4, 5, 8, 11])
def test_energies_are_not_drawn_again(max_weights, at):
    X, y, a_plan, fit, state, before = interrupted(at, max_weights)
    assert isinstance(state, GradientState)
    assert halvings_of(state.energies).any()
    with recording() as after:
        again = make(
            a_plan, X, y, mechanism=rich(n_iter=12), seed=1, prefix=through_a_file(state, D)
        )
        np.testing.assert_array_equal(again.release(at).energies, state.energies)
        again.advance(1, 12)
    drawn = energy_releases(before, a_plan) + energy_releases(after, a_plan)
    assert len(drawn) == 1 + len(a_plan.stages)
    # And no other statistic is: gradients, and one count.
    gradients = len(before.releases) + len(after.releases) - len(drawn)
    assert gradients == 12 + 1
    # They go on with the same steps.
    fit.advance(at + 1, 12)
    one, other = fit.release(), again.release()
    if max_weights is None:
        assert one.standard_error == other.standard_error
        np.testing.assert_array_equal(one.standard_errors, other.standard_errors)
        assert not np.array_equal(one.weights, other.weights)


def test_a_fit_that_chooses_its_number_of_gradients_goes_on_with_it():
    X, y = strong()
    a_plan = plan(None, None, D)
    fit = make(a_plan, X, y, mechanism=rich(n_iter=MOST_STEPS))
    assert FEWEST_STEPS <= fit.n_steps < MOST_STEPS
    fit.advance(1, 10)
    state = through_a_file(fit.release(10), D)
    again = make(a_plan, X, y, mechanism=rich(n_iter=MOST_STEPS), seed=1, prefix=state)
    assert again.n_steps == fit.n_steps
    again.advance(11, again.n_steps)
    model = again.release()
    assert len(model) == fit.n_steps
    assert model.complete(MOST_STEPS)
    assert not model.complete(fit.n_steps - 1)
    assert not state.complete(10)


def test_the_steps_follow_from_what_was_released():
    """From the noisy energies, in the state, not from the exact ones."""
    X, y = strong()
    X = np.eye(D)[np.abs(X).argmax(axis=1)]
    mechanism = rich(n_iter=MOST_STEPS)
    found = set()
    for seed in range(3):
        fit = make(plan(None, None, D), X, y, mechanism=mechanism, seed=seed)
        count, _, eigenvalue = fit.release(0).numbers
        assert eigenvalue < count
        left = mechanism.mu * math.sqrt(0.99 * 0.97)
        kappa = KAPPA * further(count * left, D)
        expected = schedule_for(eigenvalue, left, mechanism.sensitivity, None, kappa)
        assert fit._solver.schedule == expected
        found.add(eigenvalue)
    assert len(found) == 3


@pytest.mark.parametrize("max_weights", [None, 3])
@pytest.mark.parametrize("norm_bound", [None, 1.5])
def test_rows_are_scaled_by_the_energies_that_were_released(max_weights, norm_bound):
    """Margins of the model are those of rows whose columns are halved, as many times as is said."""
    X, y = strong()
    a_plan = plan(8, max_weights, D, norm_bound=norm_bound)
    fit = finished(a_plan, X, y, mechanism=rich())
    model, scaling = fit.release(), fit._scaling
    kept = model.columns if max_weights else np.arange(D)
    np.testing.assert_array_equal(scaling.halvings, halvings_of(model.energies))
    assert scaling.halvings.any()
    bound = norm_bound
    if norm_bound is not None:
        bound *= shrinking(model.energies)
        assert 0.0 < bound < norm_bound
    assert scaling.norm_bound == bound
    data = fit._records._unit_rows(scaling)
    rows = X[:, kept].tolist()
    expected = [factor(row, 0.1, bound, scaling.halvings) for row in rows]
    assert data.factor.tolist() == expected


def test_the_same_bits_for_any_number_of_threads_and_layout():
    X, y = strong()
    found = []
    for n_threads in (1, 3):
        with thread_pool(n_threads) as threads:
            for matrix in (X, np.asfortranarray(X)):
                fit = GradientRun(
                    plan(8, 3, D),
                    rich(),
                    records_of(matrix, Logistic(0.5), targets_of(y), threads),
                    stream(0),
                    threads=threads,
                )
                fit.begin()
                fit.advance(1, fit.n_steps)
                found.append(fit.release())
    assert found[0].energies.size == 3
    for other in found[1:]:
        assert found[0].agrees_with(other)
        np.testing.assert_array_equal(found[0].energies, other.energies)


@pytest.mark.parametrize("kind", ["dense", "short list", "significant"])
def test_noise_alone_spreads_by_the_standard_error_of_each_column(monkeypatch, kind):
    """4,000 columns that nobody has, as if some were strong: false alarm once in a million."""
    size = 4000
    given = np.where(np.arange(size) % 3 == 0, 50.0, -1.0).astype(np.float32)
    monkeypatch.setattr(module, "pays", lambda *_: True)
    monkeypatch.setattr(module, "relative_energies", lambda *_: given)
    nothing, y = np.zeros((3, size)), np.ones(3)
    kept = {"short list": 3990}.get(kind)
    a_plan = plan(40, kept, size, n_records=3, significant=kind == "significant")
    fit = finished(a_plan, nothing, y)
    model = fit.release()
    weights, errors = model.weights[0], model.standard_errors
    assert weights.shape == errors.shape
    assert model.energies.size == (3990 if kept else size)
    if kind == "significant":
        # Of each column by its own error: about 0.27 % of them, whatever their scale.
        strong_ones = given[model.columns] > 1
        assert (np.abs(weights) > 3 * errors).all()
        assert 0 < strong_ones.sum() < errors.size < 40
        return
    # The ten smallest of a short list are missing: in sum, far less than one.
    for part in (errors == errors.max(), errors == errors.min()):
        assert part.sum() > 1000
        squares = ((weights[part] / errors[part]) ** 2).sum()
        low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], part.sum())
        assert low < squares < high
        # 15 % would show, and a scale is a power of two.
        assert not low < squares * 1.15**2 < high
    assert errors.max() == 4.0 * 2.0 ** (halvings_of(given).max() - 2) * errors.min()


def test_standard_errors_fall_with_the_scale():
    energies = np.array([0.0, 100.0, 1.0, 30.0, 4.0], dtype=np.float32)
    scales = scales_of(energies)
    assert scales.tolist() == [1.0, 0.25, 1.0, 0.25, 0.5]
    none = np.zeros(0, dtype=np.int64)
    numbers = np.zeros(1), 0.2, 0.01
    dense = NoisyWeights(5, 5, none, np.ones((1, 5)), *numbers, energies)
    assert dense.standard_errors.tolist() == (0.2 * scales).tolist()
    listed = NoisyWeights(5, 9, np.arange(2, 7), np.ones((1, 5)), *numbers, energies)
    assert listed.standard_errors.tolist() == (0.2 * scales).tolist()
    few = NoisyWeights(5, 5, np.array([1, 4]), np.ones((1, 2)), *numbers, energies)
    assert few.standard_errors.tolist() == [0.05, 0.1]
    nothing = NoisyWeights(5, 5, none, np.ones((1, 0)), *numbers, energies)
    assert nothing.standard_errors.size == 0
    plain = NoisyWeights(5, 5, none, np.ones((1, 5)), *numbers)
    assert plain.standard_errors.tolist() == [0.2] * 5


def adversarial():
    rng = np.random.default_rng(3)
    n_rows = 2300
    sparse = (rng.random((n_rows, 40)) < 0.05).astype(np.float64)
    few = np.eye(12)[rng.integers(0, 12, n_rows)]
    return {
        "all columns equal": np.repeat(rng.choice([1.0, -1.0], (n_rows, 1)), 20, axis=1),
        "one dense column": np.hstack([rng.choice([1.0, -1.0], (n_rows, 1)), sparse]),
        "blocks of copies": np.repeat(few, 6, axis=1),
        "two values": np.where(rng.random((n_rows, 9)) < 0.5, 1e-3, 1e3),
        "two kinds of rows": np.where(rng.random((n_rows, 1)) < 0.5, 1.0, 2.0) * np.ones(10),
        "one entry a row": few,
        "long and short rows": np.vstack([np.ones((n_rows // 2, 40)), sparse[: n_rows // 2]]),
    }


def bounded_loss(margins, y):
    """Return the mean loss whose residual is that of `Logistic(0.5)`."""
    u = np.where(y > 0, margins, -margins)
    return float(np.mean(np.where(u > 0, np.logaddexp(0.0, -np.abs(u)), math.log(2.0) - u / 2)))


@pytest.mark.parametrize("name", adversarial())
@pytest.mark.parametrize("epsilon", [3.0, 100.0, math.inf])
@pytest.mark.parametrize("n_steps", [None, 20])
def test_no_design_makes_the_steps_diverge(name, epsilon, n_steps):
    """The weights that are released are no worse than none, nor is any iterate far from them."""
    X = adversarial()[name]
    rng = np.random.default_rng(4)
    y = (X @ rng.normal(size=X.shape[1]) + 0.1 * rng.normal(size=len(X)) > 0).astype(np.float64)
    mechanism = budget(epsilon=epsilon, n_iter=n_steps or MOST_STEPS)
    fit = finished(plan(n_steps, None, X.shape[1]), X, y, mechanism=mechanism)
    model, scaling = fit.release(), fit._scaling
    assert bool(scaling.halvings.size) == (epsilon > 3.0)
    data = fit._records._unit_rows(scaling)
    margins = X @ model.weights[0] * data.factor + model.intercept
    assert bounded_loss(margins, y) <= math.log(2.0)
    last = X @ fit._solver.weights[:-1] * data.factor + 0.1 * fit._solver.weights[-1]
    assert bounded_loss(last, y) <= math.log(2.0)
