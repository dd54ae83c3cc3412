"""What every phase of every plan keeps to: its share, and its place; counts; public starts."""

import math
import re
from functools import cache
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

from dplasso import DPLassoClassifier, DPLogisticRegression
from dplasso.estimators.fitting import method_of
from dplasso.phases import descend
from dplasso.phases.count import entering, levels, noisy_counts
from dplasso.phases.phase import NO_SNAPSHOT, Fit, check_share
from dplasso.phases.released import Released
from dplasso.phases.releases import KINDS, Counted, Spread, Started
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent.cases import stream
from phases.cases import (
    PLANS,
    PRIOR,
    Answers,
    Notes,
    at_the_door,
    begin,
    prepared,
    rows,
    small,
    walked,
)
from recorder import recording

each_plan = pytest.mark.parametrize("name", PLANS)
# Of the exponent of a draw, withheld for its rounding.
SLACK = 2.0**-19


@cache
def walked_plan(name):
    """Return the phases of a plan and what they released, which no test changes."""
    return walked(PLANS[name])


def spent(taken):
    """Return the squared mu of what passed the door."""
    gaussian = math.fsum((moved / scale) ** 2 for moved, scale, _ in taken.noisy)
    if taken.drawing is None:
        return gaussian
    exponent, moved = taken.drawing
    return gaussian + taken.steps.n_steps * (2.0 * exponent * moved) ** 2 / 4.0


def test_every_kind_of_release_is_on_the_page_of_model_files():
    page = (Path(__file__).parents[2] / "docs" / "model-file.md").read_text()
    table = page.partition("## Releases")[2].partition("## Weights")[0]
    assert {*KINDS} == set(re.findall(r"^\| `(\w+)` \|", table, re.M))


@each_plan
def test_each_phase_spends_its_share_and_all_together_the_budget(name):
    taken, released, begun = walked_plan(name)
    whole = begun.budget.mu**2
    for one in taken:
        assert spent(one) <= one.share * whole * (1.0 + 1e-9), one.phase.name
        assert spent(one) >= one.share * whole * (1.0 - SLACK), one.phase.name
        # No more is drawn than the budget was made for.
        gaussian, vertices = one.phase.draws
        assert sum(size for *_, size in one.noisy) <= gaussian, one.phase.name
        assert one.steps.n_steps <= one.phase.most_steps
        assert one.drawing is None or one.steps.n_steps <= vertices
        left = 1.0 - one.before.spent
        for share in (left + 1e-9, -1e-9, math.nan):
            with pytest.raises(RuntimeError, match=repr(one.phase.name)):
                check_share(one.phase, share, one.before)
    assert released.spent == pytest.approx(1.0, abs=1e-9)
    assert begun.budget.draws == begun.plan.draws


@pytest.mark.parametrize(("name", "loud"), [*zip(PLANS, cycle([0.0, 30.0, 1e6]))])
def test_shares_add_up_to_at_most_one_whatever_is_released(name, loud):
    _, released, _ = walked(PLANS[name], Notes(loud=loud))
    assert released.spent <= 1.0 + 1e-12
    assert all(entry.share >= 0.0 for entry in released.entries)


@each_plan
def test_what_is_released_is_what_is_stated_and_comes_back_from_its_arrays(name):
    taken, released, begun = walked_plan(name)
    stated = {one.name: one for one in begun.plan.stated(begun.budget)}
    assert stated == {one.name: one for one in begun.statement.releases}
    assert begun.statement.steps == max(1, begun.plan.n_steps)
    bounds = {own.numbers.get("residual_bound", 1.0) for own in stated.values()}
    for one in taken:
        draws = bool(one.noisy) or one.drawing is not None
        assert draws == (one.share > 0.0), one.phase.name
        assert one.release is not None or not draws
        if one.phase.name == "gradients" and one.steps.n_steps:
            bound = one.phase.numbers(begun.budget)["residual_bound"]
            own = one.steps.course.loss.residual_bound
            assert own == bound or (own < bound and released.last(Spread) is not None)
            bounds.add(own)
        if not draws:
            continue
        numbers = stated[one.phase.name].numbers
        moved = [one.drawing[1]] if one.drawing else [sensitivity for sensitivity, *_ in one.noisy]
        # In units that are a power of two for one residual, whose bound is stated.
        units = np.array(moved) * numbers.get("feature_bound", 1.0) / numbers["sensitivity"]
        exact = [np.log2(units * bound) for bound in bounds]
        assert any(np.allclose(own, np.rint(own), atol=1e-6) for own in exact)
        assert numbers.get("steps", 0.0) >= one.steps.n_steps
    again = Released.from_arrays(released.arrays())
    assert again.digest == released.digest
    kinds = ([type(entry.release) for entry in some.entries] for some in (again, released))
    assert len({*map(tuple, kinds)}) == 1
    assert again.spent == released.spent


def same(one, other):
    assert type(one) is type(other)
    for field, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[field], err_msg=field)


@each_plan
def test_a_phase_goes_on_from_a_snapshot_as_it_would_have(name):
    case = PLANS[name]
    taken, _, _ = walked_plan(name)
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
    taken, _, _ = walked_plan(name)
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


def test_vertices_and_refit_have_one_start():
    """Found once; where no vertex is drawn the gradients find it."""
    for name, place in (("lasso, prior", 2), ("prior", 2), ("prior of a short list", 2)):
        taken, released, begun = walked_plan(name)
        found = [k for k, one in enumerate(released.entries) if isinstance(one.release, Started)]
        assert found == [place]
        starts = [one.share for one in taken if one.phase.name == "start"]
        assert sum(share > 0.0 for share in starts) == 1
        assert "how much of the public model" in begun.statement.find("start").words


def test_the_start_of_draws_has_noise_for_the_residuals_of_all_classes_together():
    taken, _, begun = walked(PLANS["lasso, prior of three classes"])
    (start,) = (one for one in taken if one.phase.name == "start" and one.noisy)
    # The unit is that of a residual, which is at most 1/2.
    moved = {sensitivity / 2.0**33 for sensitivity, *_ in start.noisy}
    assert moved == {begun.statement.find("start").numbers["sensitivity"]} == {np.sqrt(2 / 3)}


@pytest.mark.parametrize("kind", ["short list", "drawn"])
def test_weights_of_few_columns_are_those_of_unit_rows(monkeypatch, kind):
    """Without noise it is the same model, however rows are divided on the way."""
    X, y = rows(PLANS["prior"], n_rows=400)
    given = {"classes": (0, 1), "prior": PRIOR, "epsilon": np.inf, "max_weights": 4}
    found = []
    for length in (None, 1.0):
        if length:
            monkeypatch.setattr(descend, "reach_of", lambda *_: 1.0)
        model = {"drawn": DPLassoClassifier, "short list": DPLogisticRegression}[kind](**given)
        found.append(model.fit(X, y).decision_function(X))
    assert np.corrcoef(*found)[0, 1] > 0.98
    assert found[0] != pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_good_start_survives_corrections_that_are_noise(epsilon):
    """The start is of unit rows, and rows have 5 to 80 entries; draws find next to nothing."""
    rng = np.random.default_rng(0)
    lengths, truth = rng.integers(5, 80, 6_000), 8.0 * rng.normal(size=3_000)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_array((np.ones(indptr[-1]), rng.integers(0, 3_000, indptr[-1]), indptr))
    X.sum_duplicates()
    X.data[:] = 1.0
    margins = X @ truth / np.sqrt(X.sum(axis=1))
    y = (rng.random(6_000) < 1.0 / (1.0 + np.exp(-margins))).astype(int)
    prior = truth + 4.0 * rng.normal(size=3_000)
    seen, kept = slice(0, 3_000), slice(3_000, None)
    public = roc_auc_score(y[kept], X[kept] @ prior / np.sqrt(X[kept].sum(axis=1)))
    both = []
    for seed in range(2):
        model = DPLassoClassifier(epsilon, 1e-6, classes=[0, 1], random_state=seed, prior=prior)
        margins = model.fit(X[seen], y[seen]).decision_function(X[kept])
        both.append(roc_auc_score(y[kept], margins))
    # Single draws lose .002, with a standard deviation of .002.
    assert np.mean(both) > public - 0.005


def zipf(n_rows, n_columns, seed):
    """Return rows of ten words, and a true model's labels."""
    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.5, (n_rows, 10)) - 1, n_columns - 1)
    X = sp.csr_array(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 10)),
        shape=(n_rows, n_columns),
    )
    X.sum_duplicates()
    return X


def test_a_start_does_no_harm():
    rng = np.random.default_rng(0)
    X, truth = zipf(30_000, 300, 1), rng.normal(size=300)
    # Columns of one unit, because a fit with a prior does not look for units.
    X.data[:] = 1.0
    margins, noise = X @ truth, rng.normal(size=300)
    y = (rng.random(len(margins)) < 1.0 / (1.0 + np.exp(-margins))).astype(int)
    seen, kept = slice(0, 20_000), slice(20_000, None)

    def auc(**given):
        model = DPLogisticRegression(0.1, 1e-6, classes=[0, 1], random_state=2, **given)
        return roc_auc_score(y[kept], model.fit(X[seen], y[seen]).decision_function(X[kept]))

    alone, good = auc(), truth + noise
    for prior in (good, good / 5.0, 2.0 * noise, 1e5 * noise):
        public = roc_auc_score(y[kept], X[kept] @ prior)
        assert auc(prior=prior) > max(alone, public) - 0.01


ALARM = 1e-6


def counted(count, *rest):
    """Return one noisy count."""
    return float(noisy_counts([count], *rest)[0])


def test_each_count_has_normal_noise_of_its_own():
    """Kolmogorov-Smirnov on 300 counts of each; with a false alarm once in a million."""
    found = np.array([noisy_counts([10**6] * 3, 3, 0.2, stream(k)) for k in range(300)]) - 10**6
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.3
    for own in found.T:
        assert kstest(own / 15.0, "norm").pvalue > ALARM
        # Noise of half, or of none.
        assert kstest(own / 30.0, "norm").pvalue < ALARM
    assert counted(17, 0, 0.2, stream()) == counted(17, 3, math.inf, stream()) == 17.0


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


def test_parts_of_records_are_counted_like_records():
    for mu in (math.inf, 0.5, 1e-7):
        whole = counted(1000, 1.0, mu, stream())
        assert counted(1000 << 20, 1.0, mu, stream(), 20) == whole
    half = counted((1000 << 20) + (1 << 19), 1.0, 0.5, stream(), 20)
    assert half - counted(1000, 1.0, 0.5, stream()) == pytest.approx(0.5)


def test_levels_follow_from_the_noisy_count_alone():
    budget = method_of(DPLogisticRegression(1.0, classes=[0, 1])).cost()
    phase = levels(((16, 4, 20), (64, 20, 84)), 85, 1)
    for count, size in ((10.0, 5), (1_000.0, 21), (1e6, 85)):
        released = Released().then(0.01, Counted(np.array([count / 2, count / 2]), 1.0))
        fit = Fit(budget, SimpleNamespace(shape=(500, 85)), random_stream(0), ONE_THREAD)
        entered = phase.begin(fit, released, 0.0, NO_SNAPSHOT).release()
        assert (85 if entered is None else entered.columns.size) == size
        assert phase.share(budget, released) == 0.0
    # Finer levels need more records and budget, and more of them of several outputs.
    for told, n_outputs, size in ((39.0, 1, 5), (40.0, 1, 21), (40.0, 2, 5), (2560.0, 1, 85)):
        assert entering(((16, 4, 20), (64, 20, 84)), 85, n_outputs, told).size == size
