"""Fits from a public model: what they spend, where they go on, and that they lose nothing by it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from dplasso import DPLasso, DPLassoClassifier, DPLogisticRegression
from dplasso.cluster import worker
from dplasso.fit import records as fit_records
from dplasso.fit import stages
from dplasso.frank_wolfe import problem
from dplasso.gradient_descent import run as module
from dplasso.gradient_descent.measures import Measures
from dplasso.gradient_descent.plan import CONSTANT, RunPlan, plan_stages
from dplasso.gradient_descent.records import records_of
from dplasso.gradient_descent.run import GradientRun
from dplasso.gradient_descent.slopes import LinearModel
from dplasso.gradient_descent.state import GradientState
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import targets_of
from dplasso.matrix.starting import StartingModel
from dplasso.matrix.unit_rows import Scaling
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.mechanisms.gaussian import build_gaussian, calibration_draws
from dplasso.privacy.mechanisms.staged import build_staged
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent.cases import records, stream
from recorder import recording

PRIOR = np.linspace(-2.0, 2.0, 30)


def make(max_weights=None, *, seed=0, prefix=None):
    """Return a fit of 12 gradients from a prior, after step 0."""
    X, y = records(60, 30)
    prior = StartingModel(PRIOR[:, np.newaxis], np.zeros(1))
    fit = GradientRun(
        RunPlan(plan_stages(12, max_weights, 30), False, True, None, None, 0.05, 0.05),
        build_gaussian(epsilon=5.0, delta=1e-6, n_iter=12, from_prior=True),
        records_of(X, Logistic(0.5), targets_of(y), ONE_THREAD, prior=prior),
        stream(seed),
        threads=ONE_THREAD,
        prefix=prefix,
    )
    fit.begin()
    return fit


@pytest.mark.parametrize("max_weights", [None, 3])
@pytest.mark.parametrize("at", [0, 5, 11])
def test_a_fit_that_goes_on_keeps_its_start(monkeypatch, max_weights, at):
    fit = make(max_weights)
    if at:
        fit.advance(1, at)
    state = fit.release(at)
    assert state.start.size == 3
    arrays = {name: np.array(array) for name, array in state.arrays().items()}
    again = GradientState.from_arrays(arrays, {"n_features": 30})
    assert again.arrays().keys() == arrays.keys()
    monkeypatch.setattr(module, "find_start", lambda *_, **__: pytest.fail("found once more"))
    other = make(max_weights, seed=1, prefix=again)
    for step in range(1, at + 1):
        other.advance(step, step)
    assert other.release(at).agrees_with(state)
    other.advance(at + 1, 12)
    assert other.release().prior_slope > 0.0


def spent(recorder):
    """Return the mu^2 of everything that passed the door."""
    return sum((one.sensitivity / one.scale) ** 2 for one in recorder.releases if one.scale)


@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (DPLogisticRegression(prior=PRIOR), 2),
        (DPLogisticRegression(prior=PRIOR, max_weights=3), 2),
        (DPLogisticRegression(prior=np.stack([PRIOR, -PRIOR, PRIOR])), 3),
        (DPLassoClassifier(prior=PRIOR), 2),
        (DPLasso(prior=PRIOR, target_bounds=(0, 2)), 0),
    ],
)
def test_start_gradients_and_slopes_spend_the_budget_and_no_more(model, n_classes):
    X, _ = records(500, 30)
    y = np.arange(500) % max(2, n_classes)
    if n_classes:
        model.set_params(classes=list(range(n_classes)))
    with recording() as recorder:
        model.fit(X, y)
    rho = spent(recorder) / 2.0
    statement = model.privacy_
    allowed = statement.rho or statement.mu**2 / 2.0
    # Few records: no energies are released, whose share nobody else gets.
    assert 0.9 * allowed < rho <= allowed * (1.0 + 1e-9)


@pytest.mark.parametrize(
    "given",
    [{}, {"refit": 0.0}, {"refit": 0.97}, {"l1_radius": 3.0, "refit": 0.3, "fit_intercept": False}],
)
def test_parts_of_a_staged_fit_share_the_budget(monkeypatch, given):
    shares = []

    def noted(name):
        own = getattr(StagedSteps, name)
        monkeypatch.setattr(
            StagedSteps, name, lambda self, *asked: shares.append(asked[-1]) or own(self, *asked)
        )

    noted("vertices")
    noted("gradients")
    X, y = records(400, 30)
    DPLassoClassifier(20.0, n_iter=5, prior=PRIOR, classes=[0, 1], random_state=0, **given).fit(
        X, y
    )
    assert len(shares) == 3
    assert min(shares) > 0.0
    assert sum(shares) == pytest.approx(1.0)


def short_rows(reach):
    """Return records in 3 of 30 columns, in which some rows are empty, and how they are scaled."""
    X, y = records(60, 30)
    X = np.array(X)
    X[:5, :3] = 0.0
    X[5, 0] = 1e9
    X[6, 0], X[6, 3:] = 1e-300, 0.0
    kept = np.arange(3)
    prior = StartingModel(PRIOR[:, np.newaxis], np.zeros(1))
    known = targets_of(y), ONE_THREAD
    rows = records_of(sp.csr_array(X), Logistic(0.5), *known, kept, prior=prior)
    return rows, Scaling(np.zeros(0, dtype=np.int64), 0.1, None, reach=reach), prior


@pytest.mark.parametrize("reach", [0.05, 0.3, 1.0])
def test_rows_that_are_divided_pull_no_further_than_unit_rows(reach):
    rows, scaling, prior = short_rows(reach)
    whole, unit = rows.part(scaling, 2.0**33, prior), 2.0**33
    weights = np.array([0.0, 0.0, 0.0, 0.0])
    for i in range(60):
        alone = replace(rows, targets=targets_of(rows.targets.labels, np.eye(60)[i]))
        pulled = alone.part(scaling, unit, prior).whole(weights)
        assert np.linalg.norm(pulled / unit) <= 0.5
    assert whole.whole(weights).any()


def test_margins_start_at_the_same_place_whatever_rows_are_divided_by():
    margins = []
    for reach in (1.0, 0.3):
        rows, scaling, prior = short_rows(reach)
        model = LinearModel(np.full((3, 1), 2.0 * reach), np.array([0.1]), scaling)
        margins.append(rows.margins(model, prior).parts)
    assert margins[0] == pytest.approx(margins[1], rel=1e-12)


def test_rows_are_divided_by_their_length_in_few_columns():
    """Without noise: by the root of their mean square; released once for all rows."""
    rows, scaling, _ = short_rows(1.0)
    plan = RunPlan(plan_stages(12, None, 3), False, True, None, 60, 0.05, 0.05)
    exact = build_gaussian(epsilon=math.inf, delta=1e-6, n_iter=12, from_prior=True)
    measures = Measures(plan, exact, rows, stream(0), None)
    unit_rows = rows._unit_rows(scaling)
    entries = unit_rows.rows.values * np.repeat(unit_rows.factor, np.diff(unit_rows.rows.indptr))
    expected = np.sqrt(np.sum(entries**2) / 60)
    assert measures.reach(scaling, 0.01, 60.0) == pytest.approx(expected, rel=1e-6)
    assert measures.reach(scaling._replace(reach=0.3), 0.01, 60.0) == pytest.approx(expected)
    # Of more records than there are, rows would be shorter still.
    assert measures.reach(scaling, 0.01, 1e9) == 0.05


@pytest.mark.parametrize("kind", ["short list", "drawn"])
def test_weights_of_few_columns_are_those_of_unit_rows(monkeypatch, kind):
    """Without noise it is the same model, however rows are divided on the way."""
    X, y = records(400, 30)
    found = []
    for reach in (None, 1.0):
        if reach:
            monkeypatch.setattr(Measures, "reach", lambda *_: 1.0)
        given = {"classes": (0, 1), "prior": PRIOR, "random_state": 0, "epsilon": math.inf}
        if kind == "drawn":
            model = DPLassoClassifier(n_iter=4, refit=0.5, **given)
        else:
            model = DPLogisticRegression(max_weights=4, n_iter=200, **given)
        found.append(model.fit(X, y).decision_function(X))
    assert np.corrcoef(*found)[0, 1] > 0.98
    assert found[0] != pytest.approx(found[1], rel=1e-9)


def test_every_variate_is_charged_for():
    # 60 gradients of one slope and K constants first, and of two slopes in the end.
    once, twice = calibration_draws(3, False), calibration_draws(3, True)
    assert (once, twice) == (60 * 4, 60 * (4 + 5))
    tails = [build_gaussian(epsilon=1.0, delta=1e-6, n_iter=9, from_prior=p) for p in (0, 1)]
    assert tails[0].sampling_delta < tails[1].sampling_delta
    given = {"epsilon": 1.0, "delta": 1e-6, "n_vertices": 5, "n_gradients": 9}
    drawn = [build_staged(**given, from_prior=p)._gaussian_draws for p in (False, True)]
    assert drawn[1] - drawn[0] == calibration_draws(1, True) - calibration_draws(1, False)


@pytest.mark.parametrize("given", [{"n_iter": 4}, {"l1_radius": 3.0, "refit": 0.3, "n_iter": 4}])
def test_vertices_and_refit_have_one_start_of_unit_rows(monkeypatch, given):
    X, y = records(400, 30)
    found, steps = [], []
    own, begin = stages.find_start, problem.starting

    def noted(*asked, **known):
        found.append(own(*asked, **known))
        return found[-1]

    def started(targets, design, model, *more):
        steps.append((model, begin(targets, design, model, *more).offsets))
        return targets._replace(offsets=steps[-1][1])

    monkeypatch.setattr(stages, "find_start", noted)
    monkeypatch.setattr(module, "find_start", lambda *_, **__: pytest.fail("found once more"))
    monkeypatch.setattr(fit_records, "starting", started)
    monkeypatch.setattr(worker, "starting", started)
    model = DPLassoClassifier(20.0, prior=PRIOR, classes=[0, 1], random_state=0, **given).fit(X, y)
    assert len(found) == len(steps) == 1
    (public, offsets), slope = steps[0], model.model_.release.start[0]
    unit = np.sqrt(1.0 - CONSTANT**2) / np.maximum(np.linalg.norm(X, axis=1), 1e-9)
    expected = slope * (X @ PRIOR) * unit + public.intercept[0]
    assert offsets[:, 0] == pytest.approx(expected, rel=1e-6)


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
    for seed in range(4):
        model = DPLassoClassifier(epsilon, 1e-6, classes=[0, 1], random_state=seed, prior=prior)
        margins = model.fit(X[seen], y[seen]).decision_function(X[kept])
        both.append(roc_auc_score(y[kept], margins))
    # Single draws lose .002, with a standard deviation of .002.
    assert np.mean(both) > public - 0.005


def test_the_papers_step_starts_from_nothing():
    X, y = records(40, 30)
    with pytest.raises(ValueError, match="mechanism='paper' starts from nothing; leave prior out"):
        DPLassoClassifier(mechanism="paper", prior=PRIOR).fit(X, y)


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


@pytest.mark.parametrize("quality", ["good", "shrunk", "noise", "loud"])
def test_a_start_does_no_harm(quality):
    rng = np.random.default_rng(0)
    X, truth = zipf(30_000, 300, 1), rng.normal(size=300)
    margins = X @ truth
    y = (rng.random(len(margins)) < 1.0 / (1.0 + np.exp(-margins))).astype(int)
    noise = rng.normal(size=300)
    prior = {
        "good": truth + noise,
        "shrunk": (truth + noise) / 5.0,
        "noise": 2.0 * noise,
        "loud": 1e5 * noise,
    }[quality]
    seen, kept = slice(0, 20_000), slice(20_000, None)

    def auc(**given):
        model = DPLogisticRegression(0.1, 1e-6, classes=[0, 1], random_state=2, **given)
        return roc_auc_score(y[kept], model.fit(X[seen], y[seen]).decision_function(X[kept]))

    alone, public = auc(), roc_auc_score(y[kept], X[kept] @ prior)
    assert auc(prior=prior) > max(alone, public) - 0.01
