"""Runs of gradients and what goes before and after them: where they start, what they keep."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.base import clone

from dplasso import DPLogisticRegression
from dplasso.gradient_descent.energies import COLUMNS, scale_exponents_of, shrinking
from dplasso.gradient_descent.schedule import KAPPA, further, plan_stages, schedule_for
from dplasso.losses.logistic import Logistic
from dplasso.phases import descend
from dplasso.phases.count import COUNT_SHARE
from dplasso.phases.pairs import _chosen, stages_with
from dplasso.phases.releases import Counted, Curvature, Descended, Kept, RowLength, Scaled
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent.cases import designs
from gradient_descent.reference import factor
from phases.cases import N_COLUMNS, N_ROWS, PLANS, Answers, Case, Notes, rows, walked
from small_fits import short_runs

ALARM = 1e-6


def runs(taken):
    """Return the phases that take gradients."""
    return [one for one in taken if isinstance(one.release, Descended)]


def releases(released, kind):
    return [one.release for one in released.entries if isinstance(one.release, kind)]


class Counts(Answers):
    """Answers other counts than there are, whatever the records; all else has its noise."""

    counts = 40_000.0, 2_000.0

    def release(self, statistic, sensitivity, noise):
        if self.place:
            return Notes.release(self, statistic, sensitivity, noise)
        self.noisy.append((sensitivity, noise.scale, statistic.size))
        statistic[:] = np.rint(np.array(self.counts) * 2.0**32).astype(np.int64)
        return statistic


def test_margins_start_from_the_released_balance_of_the_classes():
    taken, released, begun = walked(PLANS["logistic"], Counts())
    first = next(one for one in taken if one.phase.name == "gradients")
    counted = released.last(Counted)
    assert counted.counts.tolist() == [40_000.0, 2_000.0]
    deviation = 1.0 / (begun.budget.mu * math.sqrt(COUNT_SHARE))
    assert counted.deviation == pytest.approx(deviation)
    offset = float(Logistic(0.5).starting_offset(counted.counts, deviation))
    started, error = descend.starting_weights(first.steps.course, first.before, N_COLUMNS)
    # As far as it is beyond twice what noise may move it, by the constant entry of a row.
    assert offset < -2.0
    assert started[-1] * 0.1 == pytest.approx(offset + 2.0 * KAPPA, rel=1e-6)
    assert error == 0.0
    assert not started[:-1].any()
    # A balance within the noise is none.
    taken, _, _ = walked(PLANS["logistic"])
    first = next(one for one in taken if one.phase.name == "gradients")
    assert descend.starting_weights(first.steps.course, first.before, N_COLUMNS) == (None, 0.0)


def test_a_cut_halves_what_was_learnt_and_not_where_margins_start():
    taken, _, _ = walked(PLANS["short list"], Counts())
    first, *later = runs(taken)
    constant = first.steps.course.constant
    for before, one in zip([first, *later], later, strict=False):
        weights, error = descend.starting_weights(one.steps.course, one.before, N_COLUMNS)
        kept = one.before.kept_columns
        own = np.isin(before.release.columns, kept) if before.release.columns.size else kept
        np.testing.assert_array_equal(weights[:-1], 0.5 * before.release.weights[own, 0])
        assert error == 0.5 * before.release.standard_error
        own = 0.5 * before.release.constant[0] + 0.5 * constant[0] / 0.1
        assert weights[-1] == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize("name", ["short list", "short list, scaled", "lasso, kept"])
def test_the_columns_that_stay_have_the_largest_released_weights(name):
    taken, _, _ = walked(PLANS[name])
    found, kept = runs(taken), np.arange(N_COLUMNS)
    assert len(found) > 1
    for before, after in itertools.pairwise(found):
        cut = after.before.last(Kept).columns
        order = np.argsort(-np.abs(before.release.weights[:, 0]), kind="stable")
        kept = np.sort(kept[order[: cut.size]])
        assert cut.tolist() == kept.tolist() == after.release.columns.tolist()
    assert kept.size < N_COLUMNS


def test_of_equal_weights_the_first_stays():
    silent = Notes(loud=0.0)
    X, y = rows(PLANS["short list"])
    _, released, _ = walked(PLANS["short list"], silent, (0.0 * X, y))
    assert releases(released, Kept)[-1].columns.tolist() == [0, 1]


def test_weights_of_several_classes_are_kept_together():
    case = Case(DPLogisticRegression(5.0, classes=(0, 1, 2), max_weights=2), 3)
    taken, released, _ = walked(case)
    before = runs(taken)[-2].release
    largest = np.argsort(-np.linalg.norm(before.weights, axis=1))[:2]
    places = before.columns if before.columns.size else np.arange(N_COLUMNS)
    assert releases(released, Kept)[-1].columns.tolist() == sorted(places[largest].tolist())


@pytest.mark.parametrize("name", ["logistic, scaled", "prior of a short list"])
def test_the_steps_follow_from_the_released_curvature(name):
    taken, _, begun = walked(PLANS[name])
    for one in runs(taken):
        bounded = one.before.last(Curvature).eigenvalue
        course, stage = one.steps.course, one.steps.stage
        mu = begun.budget.mu_of(one.share)
        told = further(course.weight * mu, stage.n_columns)
        kappa = stage.kappa * (told if stage.grows else 1.0)
        n_steps = None if stage.is_adaptive else stage.n_steps
        expected = schedule_for(bounded, mu, 0.5, n_steps, kappa)
        assert descend.schedule_of(stage, course, one.before, begun.budget, mu) == expected
        assert bounded <= course.weight


def test_rows_are_scaled_by_the_released_energies():
    case = Case(DPLogisticRegression(30.0, classes=(0, 1), row_norm=1.5), scaled=True)
    X, y = rows(case, n_rows=900)
    X[:, :3] = 4.0 * np.sign(X[:, :3] + 0.1)
    taken, released, begun = walked(case, data=(X, y))
    energies = released.last(Scaled).energies
    scale_exponents, bound = scale_exponents_of(energies), 1.5 * shrinking(energies)
    assert scale_exponents.any()
    assert 0.0 < bound < 1.5
    (run,) = runs(taken)
    scaling = run.steps.scaling
    np.testing.assert_array_equal(scaling.scale_exponents, scale_exponents)
    assert scaling.norm_bound == bound
    data = begun.records.gradients(Logistic(0.5), ONE_THREAD)._unit_rows(scaling)
    expected = [factor(row, 0.1, bound, scale_exponents) for row in X.tolist()]
    assert data.factor.tolist() == expected


def test_rows_are_as_long_as_is_released_in_few_columns(monkeypatch):
    """In root mean square, of unit rows in all columns, with two deviations of little noise."""
    # Two cuts, as of more columns than those of a table.
    monkeypatch.setattr("dplasso.gradient_descent.schedule.TABLE_COLUMNS", 0)
    silent, case = Notes(loud=0.0), PLANS["prior of a short list"]
    case = replace(case, estimator=clone(case.estimator).set_params(epsilon=1e4))
    X, _y = rows(case)
    taken, released, begun = walked(case, silent)
    shares = [one.share for one in taken if isinstance(one.release, RowLength)]
    assert len(shares) == 2
    noise = 2.0 / (begun.budget.mu_of(shares[0]) * COLUMNS * N_ROWS)
    for one in runs(taken):
        length = one.before.length
        if one is runs(taken)[0]:
            assert length == 1.0
            continue
        halves = 0.5 ** scale_exponents_of(released.energies)
        scaled = X * halves
        unit = scaled * math.sqrt(0.99) / np.linalg.norm(scaled, axis=1, keepdims=True)
        kept = one.before.kept_columns
        expected = math.sqrt((unit[:, kept] ** 2).sum() / N_ROWS + noise)
        assert length == pytest.approx(max(0.05, expected), rel=1e-3)
        assert 0.0 < length < 1.0


@pytest.mark.parametrize("kind", ["dense", "short list"])
@pytest.mark.parametrize("scaled", [False, True])
def test_noise_alone_spreads_by_the_standard_error_of_each_column(monkeypatch, kind, scaled):
    """4,000 columns that nobody has, some as if they were strong; false alarm once in a million."""
    size = 4000
    if scaled:
        given = np.where(np.arange(size) % 3 == 0, 50.0, -1.0).astype(np.float32)
        monkeypatch.setattr(descend, "pays", lambda *_: True)
        monkeypatch.setattr(descend, "relative_energies", lambda *_: given)
    # Rows without entries: the weights are noise alone.
    nothing, most = np.zeros((3, size)), 3990 if kind == "short list" else None
    nothing[0, 0] = 1.0
    model = DPLogisticRegression(classes=(0, 1), random_state=1, max_weights=most)
    with short_runs():
        model.fit(nothing, [0, 1, 1])
    slope = model.model_.released.entries[-1].release.slope
    weights = (model.coef_ if kind == "dense" else model.coef_.toarray())[0]
    columns = np.flatnonzero(weights)
    weights, errors = weights[columns], model.coef_standard_error_
    assert slope > 0.0
    assert columns.size == errors.size
    # The ten smallest of a short list are missing: in sum, far less than one.
    assert np.unique(errors).size == 1 + scaled
    for one in np.unique(errors):
        part = errors == one
        squares = ((weights[part] / one) ** 2).sum()
        low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], part.sum())
        assert low < squares < high
        # 15 % would show, and a scale is a power of two.
        assert not low < squares * 1.15**2 < high


DESIGNS = {name: X for name, X in designs(2300).items() if name not in ("empty", "one row")}


@pytest.mark.filterwarnings("ignore::dplasso.WeakPrivacyWarning")
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("epsilon", [3.0, 100.0, math.inf])
def test_no_design_makes_the_steps_diverge(name, epsilon):
    """The released weights are no worse than none, by the loss whose residual is clipped."""
    X, rng = DESIGNS[name], np.random.default_rng(4)
    y = (X @ rng.normal(size=X.shape[1]) + 0.1 * rng.normal(size=len(X)) > 0).astype(int)
    if np.unique(y).size < 2:
        y[::2] = 1 - y[::2]
    model = DPLogisticRegression(epsilon, classes=(0, 1), random_state=0).fit(X, y)
    margins = model.decision_function(X)
    u = np.where(y > 0, margins, -margins)
    losses = np.where(u > 0, np.logaddexp(0.0, -np.abs(u)), math.log(2.0) - u / 2)
    assert losses.mean() <= math.log(2.0) * 1.001
    scaled = model.model_.released.last(Scaled)
    assert (scaled is not None) == (epsilon > 3.0)
    assert model.model_.released.last(RowLength) is None


def test_a_table_of_noise_is_chosen_as_often_as_said():
    """Three of the pairs, and a tenth of few; within five standard deviations of 100 draws."""
    rng, n_draws = np.random.default_rng(0), 100
    for n_pairs, expected in ((60, 3.0), (10, 1.0)):
        blocks, counts, clear = [(12 * k, 3, 4) for k in range(n_pairs)], 0, 0
        for _ in range(n_draws):
            gradient = rng.normal(0.0, 7.0, (12 * n_pairs, 1))
            # Whatever single columns add is left out.
            gradient += np.tile(np.repeat([50.0, -20.0, 5.0], 4), n_pairs)[:, None]
            gradient += np.tile([10.0, 0.0, -30.0, 1.0], 3 * n_pairs)[:, None]
            chosen = _chosen(gradient, blocks, 7.0, 0.0)
            counts += len(chosen)
            clear += sum(exponent == 0 for exponent in chosen.values())
        assert abs(counts - expected * n_draws) < 5 * np.sqrt(expected * n_draws)
        assert abs(clear - 0.3 * n_draws) < 5 * np.sqrt(0.3 * n_draws)
    # A table whose length noise does not explain enters whole, unless sampling explains it.
    gradient[:12, 0] += np.kron([1.0, -1.0, 0.0], [1.0, -1.0, 1.0, -1.0]) * 40.0
    assert _chosen(gradient, blocks, 7.0, 0.0)[0] == 0
    assert 0 not in _chosen(gradient, blocks, 7.0, 20_000.0)
    assert _chosen(np.zeros((12, 1)), [(0, 3, 4)], 0.0, 1.0) == {}
    assert _chosen(gradient[:12], [(0, 3, 4)], 0.0, 1.0) == {0: 0}


def test_pairs_need_more_signal_if_there_are_more():
    (stage,) = plan_stages(None, 100)
    blocks = [(0, 2, 2)] * 4
    assert stages_with(blocks, stage, 999.0, 1) == (stage, None)
    assert stages_with(blocks, stage, 1999.0, 2) == (stage, None)
    first, last = stages_with(blocks, stage, 1000.0, 1)
    assert first.share + last.share == 1.0
    assert first.kappa**2 + last.kappa**2 == pytest.approx(stage.kappa**2)
