"""Both algorithms: exact sums, textbook steps, the same choices; drift within what noise hides."""

import numpy as np
import pytest
from evidence.reference.draws import fill
from evidence.reference.gradients import EXPONENT
from evidence.solving import solve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dplasso import DPFrankWolfeClassifier
from dplasso.estimators.fitting import method_of
from dplasso.fit.records import LocalRecords
from dplasso.frank_wolfe.drift import (
    PLAIN_TOLERANCE,
    PRIVATE_TOLERANCE,
    due_step,
    tolerance_within_noise,
)
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.standard import mean_loss, refresh_all
from dplasso.frank_wolfe.transcript import Transcript, weights
from dplasso.losses.logistic import Logistic
from dplasso.losses.loss import value
from dplasso.losses.multinomial import ClippedMultinomial
from dplasso.losses.targets import NO_OFFSETS
from dplasso.phases import count
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
from dplasso.selection.bucket import bucket_state
from dplasso.selection.noisy_max import GumbelState
from dplasso.selection.selector import new_counters
from fit.cases import records
from frank_wolfe.cases import (
    WAYS,
    argmax,
    build,
    dense_rows,
    forced,
    random_transcript,
    small_problem,
    some_labels,
    taking,
    true_residuals,
    watch,
)
from frank_wolfe.reference import column_gradients, integer_margins
from selection.invariants import check

ROWS, COLUMNS, STEPS = 15, 8, 20
# How far rounding may carry a residual beyond the tolerance.
ROUNDING = 1e-12
LOSSES = {
    "two classes": Logistic(),
    "clipped": Logistic(0.8),
    "unequal classes": Logistic(0.5, 0.3, 0.5, 1.0),
    "four classes": ClippedMultinomial(0.5, np.array([0.1, -0.4, 0.3, 1.0])),
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
each_of_one_margin = pytest.mark.parametrize(
    "loss", [one for one in LOSSES.values() if one.n_outputs == 1]
)
seeds = st.integers(0, 10**6)
tolerances = st.sampled_from([None, 0.0, 1e-3, 0.03, 0.2])
ways = st.sampled_from(list(WAYS))
publics = st.fixed_dictionaries(
    {"bound": st.sampled_from([0.3, 1.0, 1.7]), "intercept": st.booleans()}
)


def case(loss, seed, *, started=False, n_columns=COLUMNS, **public):
    """Return rows and a problem; `started`: margins start elsewhere than at zero."""
    rng = np.random.default_rng([seed, 2])
    X, offsets = dense_rows(ROWS, n_columns, seed), NO_OFFSETS
    labels = rng.integers(0, max(2, loss.n_outputs), ROWS).astype(np.float64)
    if started:
        offsets = rng.choice([0.0, 0.4, -2.0, 30.0, -(2.0**20)], (ROWS, loss.n_outputs))
    options = {"radius": 30.0, "loss": loss, "offsets": offsets} | public
    return X, build(X, labels, STEPS, **options)


def by_output(values):
    return values.reshape(ROWS, -1).T


@each_loss
@settings(max_examples=15)
@given(seeds, tolerances, publics, st.booleans())
def test_sums_are_exact_and_residuals_within_the_tolerance(loss, seed, drift_tol, public, started):
    X, problem = case(loss, seed, started=started, **public)
    runs, size = [], problem.design.n_coordinates
    weights = np.zeros((loss.n_outputs, size), dtype=np.int64)
    # Draws vertices that have nothing to do with the data.
    uniform = GumbelState(0.0, new_counters())
    for step, state in watch(problem, uniform, drift_tol, seed=seed, runs=runs):
        taken = runs[0].transcript(step)
        output, j = divmod(int(taken.vertex[step - 1]), size)
        weights[output, j] += int(taken.sign[step - 1]) * (step + 1)
        assert np.abs(state.gradient).max() <= loss.residual_bound
        if loss.n_outputs > 1:
            # Algorithm 1, which recomputes everything when the next step begins.
            refresh_all(problem, state, step)
        if drift_tol is not None or loss.n_outputs > 1:
            exact = true_residuals(problem, state.margin, step)
            drift = np.abs(exact - by_output(state.gradient).T)
            assert drift.max() <= (drift_tol or 0.0) + ROUNDING
        alpha = []
        for k in range(loss.n_outputs):
            margin = integer_margins(
                X, weights[k].tolist(), margin_unit=problem.margin_unit, **public
            )
            assert by_output(state.margin)[k].tolist() == margin
            residuals = by_output(state.gradient)[k]
            alpha += column_gradients(X, residuals, residual_bound=loss.residual_bound, **public)
        assert state.alpha.tolist() == alpha


@each_of_one_margin
@settings(max_examples=15)
@given(seeds, publics, ways, st.booleans())
def test_without_drift_both_algorithms_make_the_same_choices(loss, seed, public, way, started):
    _, problem = case(loss, seed, started=started, **public)
    runs = []
    for solver in ("sparse", "standard"):
        selector = GumbelState(3e-10, new_counters())
        options = {"solver": solver, "record_history": True}
        runs.append(FrankWolfe(problem, selector, random_stream(seed), **options))
    sparse, standard = runs
    with taking(way):
        for step in range(1, STEPS + 1):
            before = sparse.state.alpha.copy()
            standard.advance(step, step)
            # Those that the step draws by.
            assert np.array_equal(before, standard.state.alpha)
            sparse.advance(step, step)
    assert sparse.transcript() == standard.transcript()
    for name in ("objective", "gap"):
        found, expected = (getattr(run.history, name) for run in runs)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    refresh_all(problem, standard.state, STEPS)
    for name in ("margin", "gradient", "alpha"):
        found = getattr(standard.state, name).ravel()
        np.testing.assert_array_equal(getattr(sparse.state, name), found)


@each_of_one_margin
@settings(max_examples=10)
@given(seeds, tolerances, ways)
def test_the_selector_hears_of_every_change(loss, seed, drift_tol, way):
    _, problem = case(loss, seed, n_columns=30)
    # Narrow levels, so that most changes cross one.
    selector = bucket_state(problem.n_coordinates, 1e4 * EXPONENT, True)
    with taking(way):
        for _, state in watch(problem, selector, drift_tol, seed=seed):
            if state.untold[0]:
                # As before the next draw.
                fill(selector, state.alpha)
                state.untold[0] = False
            check(selector, state.alpha)
    assert selector.counters.any()


def test_a_tolerance_below_rounding_on_saturated_rows():
    # sigma(margin) is 1 to the last bit here; its logit is infinite.
    problem = build(np.ones((3, 2)), [0, 1, 0], 8, radius=1e6)
    chosen = random_transcript(problem, 0)
    chosen.sign[:] = 1
    for step, state in watch(problem, forced(chosen), 1e-18):
        exact = true_residuals(problem, state.margin, step)
        assert np.abs(exact[:, 0] - state.gradient).max() <= ROUNDING


@settings(max_examples=20)
@given(seeds, st.sampled_from([0.3, 1.0]), st.sampled_from([None, 1e-3, 0.05]))
def test_with_drift_the_objective_never_exceeds_the_loss(seed, bound, drift_tol):
    public = {"bound": bound, "residual_bound": 0.8, "intercept": False}
    X, _, problem = small_problem(seed, n_steps=30, radius=15.0, **public)
    options = {"drift_tol": drift_tol, "record_history": True}
    run = solve(problem, argmax(), random_stream(0), **options)
    objective, _ = from_scratch(X, problem, run.transcript())
    # Every contribution is rounded to 2^-32 of the bound.
    assert (run.history.objective <= objective + 15.0 * bound * 2.0**-32).all()


def from_scratch(X, problem, taken, steps=None):
    """Return the mean loss and the gap in doubles, after some steps, by default before each."""
    bound, radius, loss = problem.design.bound, problem.radius, problem.loss
    labels = problem.targets.labels
    rows = np.column_stack([X, np.full(len(X), bound)]) if problem.design.intercept else X
    rows, found = np.clip(rows, -bound, bound), []
    for step in range(problem.n_steps) if steps is None else steps:
        w, first = np.zeros(rows.shape[1]), Transcript(taken.vertex[:step], taken.sign[:step])
        coordinates, values = weights(first, radius)
        w[coordinates] = values
        margins = rows @ w
        losses = [value(loss, *one) for one in zip(margins.tolist(), labels, strict=True)]
        residuals = np.clip(expit(margins) - labels, -loss.residual_bound, loss.residual_bound)
        alpha = rows.T @ residuals / len(labels)
        found.append((np.mean(losses), alpha @ w + radius * np.abs(alpha).max()))
    return np.array(found).T


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.3, 1.0, 1.7]),
    st.booleans(),
    st.sampled_from([1.0, 0.5, 0.8]),
)
def test_objective_and_gap_are_those_of_the_steepest_vertices(
    seed, bound, intercept, residual_bound
):
    public = {"bound": bound, "intercept": intercept, "residual_bound": residual_bound}
    X, _, problem = small_problem(seed, n_steps=30, **public)
    options = {"solver": "standard", "record_history": True}
    run = solve(problem, argmax(), random_stream(0), **options)
    objective, gap = from_scratch(X, problem, run.transcript())
    np.testing.assert_allclose(run.history.objective, objective, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.history.gap, gap, rtol=0, atol=1e-8)


def test_the_loss_does_not_overflow():
    X = np.ones((2, 1))
    problem = build(X, [0, 1], 1, radius=1e6, intercept=False)
    margin = np.full(2, np.int64(problem.margin_unit))
    # Margins 1e6 after 0 steps: the losses are 1e6 and 0.
    assert mean_loss(problem, margin, 0) == pytest.approx(5e5)
    assert mean_loss(problem, -margin, 0) == pytest.approx(5e5)
    assert mean_loss(problem, 0 * margin, 0) == pytest.approx(np.log(2.0))


RADIUS, N_STEPS = 20.0, 300
# The gap of the last step alone is a lottery: it is averaged over some of the last steps.
MARKS = range(200, N_STEPS + 1, 10)


@pytest.mark.parametrize("name", ["adult", "dense"])
def test_the_default_is_algorithm_1_and_the_stale_version_is_not(name, adult):
    X, y = adult[0].toarray().astype(np.float64), adult[1]
    if name == "dense":
        X, y = np.clip(dense_rows(400, 30, 0), -1, 1), some_labels(400, 0)
    problem = build(X, y, N_STEPS, radius=RADIUS, intercept=False)

    def taken(**options):
        """Return the vertices of a run, its losses and its gaps."""
        run = solve(problem, argmax(), random_stream(0), **options).transcript()
        return run, *from_scratch(X, problem, run, MARKS)

    exact, losses, gaps = taken(solver="standard")
    assert taken(drift_tol=1e-7)[1][-1] == pytest.approx(losses[-1], rel=1e-6)
    default, _, default_gaps = taken(drift_tol=PLAIN_TOLERANCE)
    np.testing.assert_array_equal(default.vertex[:50], exact.vertex[:50])
    np.testing.assert_array_equal(default.sign[:50], exact.sign[:50])
    assert default_gaps.mean() == pytest.approx(gaps.mean(), rel=0.1)
    assert not np.array_equal(taken(drift_tol=None)[0].vertex, exact.vertex)


# --- which tolerance a fit takes, and when a row is looked at again ------------------------------

ends = st.tuples(st.floats(-40, 40, width=32), st.floats(-40, 40, width=32)).map(sorted)


@given(st.floats(-1e6, 1e6), ends, st.integers(0, 50), st.integers(1, 150))
@example(1000.0, (np.inf, -np.inf), 0, 100)
@example(0.0, (np.inf, -np.inf), 3, 100)
@example(-3.0, (-2.0, -1e-3), 0, 100)
@example(1e6, (1e-38, 40.0), 3, 100)
@example(-1.0, (-1.0, -0.3333333432674408), 0, 1)
def test_due_step_is_the_first_outside(full_margin, ends, step, n_steps):
    step = min(step, n_steps)
    lowest, highest = np.float32(ends[0]), np.float32(ends[1])
    due = due_step(full_margin, lowest, highest, step, n_steps)
    here = full_margin * (2.0 / ((step + 1.0) * (step + 2.0)))
    if full_margin == 0.0:
        assert due == n_steps + 1
    elif lowest > highest:
        assert due == step + 1
    elif float(lowest) <= here <= float(highest):
        # The first later step at which the shrinking margin is outside, by looking at each.
        margins = (
            full_margin * (2.0 / ((t + 1.0) * (t + 2.0))) for t in range(step + 1, n_steps + 1)
        )
        outside = (not float(lowest) <= margin <= float(highest) for margin in margins)
        assert due == next((t for t, one in enumerate(outside, step + 1) if one), n_steps + 1)


@pytest.mark.parametrize(
    ("drift_tol", "private", "expected"),
    [("auto", True, 2.5e-3), ("auto", False, 1e-4), (0, True, 0.0), (None, False, None)],
)
def test_what_a_setting_stands_for(drift_tol, private, expected):
    epsilon = 2.0 if private else np.inf
    assert method_of(estimator(epsilon=epsilon, drift_tol=drift_tol)).drift_tol == expected


def test_a_tolerance_within_the_noise_moves_no_score_by_more_than_a_third_of_it():
    # The best of 1,000 scores of noise alone is log(1,000) / 0.01 above the typical one.
    for n_records in (10_000.0, 20_000.0):
        expected = np.log(1_000) / 0.01 / (3.0 * n_records)
        assert tolerance_within_noise(0.01, n_records, 1_000) == pytest.approx(expected)
    # Never below the default, and never a large part of a residual.
    assert tolerance_within_noise(10.0, 10_000.0, 1_000) == 2.5e-3
    assert tolerance_within_noise(1e-6, 10_000.0, 1_000) == 0.1


ASKED = {"n_iter": 60, "l1_radius": 8.0, "epsilon": 2.0, "classes": [0, 1]}
ALONE = {"fit_intercept": False}
X, Y = records(60, 400)
Y = (Y == "yes").astype(int)


def estimator(**given):
    return DPFrankWolfeClassifier(**ASKED | given)


def digest(**given):
    return estimator(random_state=3, **given).fit(X, Y).model_.digest


def tolerance(counted=None, **given):
    """Return what the vertices of a fit take, once so many records are counted."""
    method = method_of(estimator(**given))
    task = method.targets.of_size(2)
    released = Released()
    if counted is not None:
        released = released.then(0.01, Counted(np.array([counted / 2.0] * 2), 1.0))
    laid_out = LocalRecords(X, Y, None).laid_out(1.0, False, ONE_THREAD)
    return method.problem(laid_out, task, released, method.budget(task, 60))[1]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_fit_that_is_told_n_takes_what_its_noise_hides(neighbors):
    known = {"neighbors": neighbors, "n_records": 400, **ALONE}
    hidden = tolerance(**known)
    assert 2 * PRIVATE_TOLERANCE < hidden < 0.1
    assert digest(**known) == digest(**known, drift_tol=hidden)
    assert digest(**known) != digest(**known, drift_tol=PRIVATE_TOLERANCE)


@pytest.mark.parametrize("given", [{}, ALONE])
def test_a_fit_that_counts_follows_its_counts_alone(given, monkeypatch):
    """And not the number of rows, which is 400."""
    found = {total: tolerance(total, **given) for total in (100.0, 1_000.0)}
    assert found[100.0] > found[1_000.0] > PRIVATE_TOLERANCE
    for total, took in found.items():
        answer = np.array([total / 2.0] * 2)
        monkeypatch.setattr(count, "noisy_counts", lambda *_, own=answer: own.copy())
        assert digest(**given) == digest(**given, drift_tol=took)
    # A count with noise may come out low.
    assert tolerance(1.0) == tolerance_within_noise(1e-9, 1.0, 120) == 0.1
    assert tolerance(400.0, drift_tol=0.01) == 0.01
    assert tolerance(400.0, drift_tol=None) is None
