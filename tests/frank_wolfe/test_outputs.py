"""Frank-Wolfe with several margins: exact sums, Algorithm 1's choices, a drift within its bound."""

import numpy as np
import pytest
from evidence.audit.replay import replay_state
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.gradient import margin_scale
from dplasso.frank_wolfe.solve import FrankWolfe
from dplasso.frank_wolfe.standard import refresh_all
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.contract import residual_vector
from dplasso.losses.multinomial import ClippedMultinomial
from dplasso.privacy.randomness import random_stream
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import new_counters
from dplasso.selection.noisy_max import GumbelState
from frank_wolfe.cases import (
    build,
    dense_rows,
    without_columns,
)
from frank_wolfe.reference import column_gradients
from selection.invariants import check

K, COLUMNS, ROWS, STEPS = 4, 7, 15, 14
# How far rounding may carry a residual beyond the tolerance.
ROUNDING = 1e-12
seeds = st.integers(0, 10**6)
tolerances = st.sampled_from([None, 0.0, 1e-3, 0.03, 0.2])
layouts = st.sampled_from([lambda problem: problem, without_columns])
publics = st.fixed_dictionaries(
    {"residual_bound": st.sampled_from([0.5, 0.8, 1.0]), "intercept": st.booleans()}
)


def several(seed, residual_bound=0.5, layout=lambda problem: problem, **options):
    """Return rows, labels and a problem of K classes."""
    X, rng = dense_rows(ROWS, COLUMNS, seed), np.random.default_rng([seed, 2])
    labels = rng.integers(0, K, ROWS).astype(np.float64)
    loss = ClippedMultinomial(residual_bound, rng.normal(size=K))
    laid = layout(build(X, np.zeros(ROWS), STEPS, **options))
    unit = laid.unit / residual_bound
    return X, labels, laid._replace(labels=labels, loss=loss, unit=unit)


def vertices(problem, seed):
    rng = np.random.default_rng([seed, 3])
    chosen = rng.integers(0, problem.n_coordinates, STEPS)
    return Transcript(chosen, rng.choice(np.array([-1, 1], dtype=np.int8), STEPS))


def replayed(problem, taken, **options):
    return FrankWolfe(problem, replay_state(taken.vertex, taken.sign), random_stream(0), **options)


def true_residuals(problem, margin, step):
    """Return the residuals at the margins, shape (N, K), from the loss row by row."""
    residuals, one = np.empty(margin.shape), np.empty(margin.shape[1])
    for i, row in enumerate(margin * margin_scale(problem, step)):
        residual_vector(problem.loss, row, problem.labels[i], one)
        residuals[i] = one
    return residuals


@settings(max_examples=25, deadline=None)
@given(seeds, tolerances, publics, layouts)
def test_alpha_is_the_sum_of_contributions_and_residuals_are_near(seed, drift_tol, public, layout):
    X, _, problem = several(seed, layout=layout, **public)
    taken = vertices(problem, seed)
    run = replayed(problem, taken, drift_tol=drift_tol)
    size = problem.design.n_coordinates
    weights = np.zeros((K, size), dtype=np.int64)
    for step in range(1, STEPS + 1):
        run.advance(step, step)
        state = run.state
        output, j = divmod(int(taken.vertex[step - 1]), size)
        weights[output, j] += int(taken.sign[step - 1]) * (step + 1)
        entries = np.column_stack([X, np.ones(ROWS)])[:, :size]
        terms = np.rint(np.clip(entries, -1, 1).astype(np.float64) * problem.margin_unit)
        assert (state.margin == terms.astype(np.int64) @ weights.T).all()
        assert np.abs(state.gradient).max() <= public["residual_bound"]
        if drift_tol is not None:
            off = np.abs(true_residuals(problem, state.margin, step) - state.gradient)
            assert off.max() <= drift_tol + ROUNDING
        alpha = state.alpha.copy()
        for k in range(K):
            expected = np.array(
                column_gradients(
                    X,
                    state.gradient[:, k],
                    1.0,
                    intercept=public["intercept"],
                    residual_bound=public["residual_bound"],
                )
            )
            assert (alpha[k * size : (k + 1) * size] == expected).all()


@settings(max_examples=25, deadline=None)
@given(seeds, publics, layouts)
def test_without_drift_both_algorithms_make_the_same_choices(seed, public, layout):
    _, _, problem = several(seed, layout=layout, **public)
    runs = []
    for solver in ("sparse", "standard"):
        selector = GumbelState(3e-10, new_counters())
        run = FrankWolfe(problem, selector, random_stream(seed), solver=solver, drift_tol=0.0)
        run.advance(1, 5)
        run.advance(6, STEPS)
        runs.append(run)
    one, other = runs
    assert one.transcript() == other.transcript()
    refresh_all(problem, other.state, STEPS)
    for name in ("margin", "gradient", "alpha"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name))


@settings(max_examples=15, deadline=None)
@given(seeds, tolerances, layouts)
def test_the_selector_hears_of_every_change(seed, drift_tol, layout):
    _, _, problem = several(seed, layout=layout)
    selector = bucket_state(problem.n_coordinates, 3e-7, True)
    run = FrankWolfe(problem, selector, random_stream(seed), drift_tol=drift_tol)
    for step in range(1, STEPS + 1):
        run.advance(step, step)
        check(selector, run.state.alpha)


@pytest.mark.parametrize("tolerance", [1e-3, 0.03])
def test_rows_are_left_alone_within_the_tolerance(tolerance):
    """Otherwise nothing would be won by it."""
    _, _, problem = several(0)
    taken = vertices(problem, 0)
    stale, exact = replayed(problem, taken, drift_tol=tolerance), replayed(problem, taken)
    for run in (stale, exact):
        run.advance(1, STEPS)
    assert (stale.state.gradient != exact.state.gradient).mean() > 0.05
