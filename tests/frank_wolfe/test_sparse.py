"""Algorithm 2: exact sums, Algorithm 1's choices, and a drift within its bound."""

import numpy as np
from evidence.reference.draws import fill
from evidence.reference.gradients import EXPONENT
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.gradient import margin_scale
from dplasso.frank_wolfe.solve import solve
from dplasso.frank_wolfe.standard import refresh_all
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.orientations import transpose
from dplasso.privacy.randomness import random_stream
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import new_counters
from dplasso.selection.noisy_max import GumbelState
from frank_wolfe.cases import (
    WAYS,
    argmax,
    build,
    forced,
    last,
    random_transcript,
    small_problem,
    taking,
    true_gradient,
    watch,
    watch_standard,
    with_design,
)
from frank_wolfe.reference import (
    column_gradients,
    frank_wolfe,
    integer_margins,
    refreshed,
    weights_of,
)
from selection.invariants import check

ROUNDING = 1e-14
# By how much rounding the ends of an interval may narrow it.
NARROWER = 1e-6
seeds = st.integers(0, 10**6)
bounds = st.sampled_from([0.3, 1.0, 1.7])
tolerances = st.sampled_from([None, 0.0, 1e-3, 0.03, 0.2])
limits = st.sampled_from([1.0, 0.5, 0.8])


def gumbel():
    return GumbelState(3e-10, new_counters())


class TestFixedPoint:
    @settings(max_examples=20)
    @given(seeds, bounds, st.booleans(), tolerances, limits)
    def test_alpha_is_the_sum_of_the_current_contributions(
        self, seed, bound, intercept, drift_tol, limit
    ):
        public = {"bound": bound, "intercept": intercept, "residual_bound": limit}
        X, _, problem = small_problem(seed, **public)
        runs = []
        for step, state in watch(problem, argmax(), drift_tol, runs=runs):
            assert np.abs(state.gradient).max() <= limit
            expected = column_gradients(
                X, state.gradient, bound, intercept=intercept, residual_bound=limit
            )
            assert state.alpha.tolist() == expected
            taken = runs[0].transcript(step)
            weights = weights_of(taken.vertex, taken.sign, X.shape[1] + intercept)
            margins = integer_margins(X, weights, bound, problem.margin_unit, intercept=intercept)
            assert state.margin.tolist() == margins


class TestSelector:
    """The structure hears of every change it needs, one by one or by a fresh start."""

    @settings(max_examples=20)
    @given(seeds, st.booleans(), tolerances, st.sampled_from(list(WAYS)))
    def test_it_fits_the_gradients_after_every_step(self, seed, intercept, drift_tol, way):
        _, _, problem = small_problem(seed, intercept=intercept, n_steps=20, n_columns=30)
        # Narrow levels, so that most changes cross one.
        selector = bucket_state(30 + intercept, 1e4 * EXPONENT, True)
        with taking(way):
            for _, state in watch(problem, selector, drift_tol, seed=seed):
                if state.untold[0]:
                    # As before the next draw.
                    fill(selector, state.alpha)
                    state.untold[0] = False
                check(selector, state.alpha)
        assert selector.counters.any()


class TestAgainstAlgorithm1:
    @settings(max_examples=40)
    @given(seeds, bounds, st.booleans(), st.sampled_from([argmax, gumbel]), limits)
    def test_without_drift_it_makes_the_same_choices(self, seed, bound, intercept, selector, limit):
        public = {"bound": bound, "intercept": intercept, "residual_bound": limit}
        _, _, problem = small_problem(seed, **public)
        runs = []
        one = last(watch(problem, selector(), 0.0, runs=runs, seed=seed))
        other = last(watch_standard(problem, selector(), runs=runs, seed=seed))
        assert runs[0].transcript() == runs[1].transcript()
        # Algorithm 1 stops with the gradients before its last step.
        refresh_all(problem, other, problem.n_steps)
        np.testing.assert_array_equal(one.alpha, other.alpha)
        np.testing.assert_array_equal(one.margin, other.margin)
        np.testing.assert_array_equal(one.gradient, other.gradient)


def drift_of(problem, state, step):
    """Return how far each row's gradient in use is from the true one."""
    return np.abs(true_gradient(problem, state.margin, step) - state.gradient)


class TestDrift:
    @settings(max_examples=25)
    @given(seeds, bounds, st.booleans(), st.sampled_from([0.0, 1e-6, 1e-3, 0.03, 0.2]), limits)
    def test_gradients_stay_within_the_tolerance(self, seed, bound, intercept, drift_tol, limit):
        public = {"bound": bound, "intercept": intercept, "residual_bound": limit}
        X, _, problem = small_problem(seed, n_steps=25, radius=30.0, **public)
        reach = np.abs(np.clip(X, -bound, bound)).sum(axis=0)
        if intercept:
            reach = np.append(reach, bound * X.shape[0])
        for step, state in watch(problem, forced(random_transcript(problem, seed)), drift_tol):
            assert (drift_of(problem, state, step) <= drift_tol + ROUNDING).all()
            exact = true_gradient(problem, state.margin, step)
            sums = column_gradients(X, exact, bound, intercept=intercept, residual_bound=limit)
            error = np.abs(state.alpha - np.array(sums))
            # Each of the two rounds every contribution by half a unit; a double adds a few ulps.
            allowed = (drift_tol + ROUNDING) * reach * problem.unit + X.shape[0]
            assert (error <= allowed).all()

    @settings(max_examples=25)
    @given(
        seeds, bounds, st.sampled_from([0.0, 1e-3, 0.03, 0.2]), st.sampled_from(list(WAYS)), limits
    )
    def test_rows_are_refreshed_when_they_must_be_and_only_then(
        self, seed, bound, drift_tol, way, limit
    ):
        public = {"bound": bound, "residual_bound": limit}
        _, labels, problem = small_problem(seed, n_steps=25, radius=30.0, **public)
        chosen = forced(random_transcript(problem, seed))
        expected = 0.5 - labels
        with taking(way):
            for step, state in watch(problem, chosen, drift_tol):
                margins = state.margin * margin_scale(problem, step)
                before = expected
                expected = np.array(refreshed(margins, before, labels, drift_tol, limit))
                # Where the drift is the tolerance to the last digits, either is right.
                off = np.abs(true_gradient(problem, state.margin, step) - before)
                close = np.abs(off - drift_tol) < NARROWER
                assert (np.isclose(state.gradient, expected, rtol=0, atol=ROUNDING) | close).all()
                expected = state.gradient.copy()

    def test_a_tolerance_below_rounding_on_saturated_rows(self):
        # sigma(margin) is 1 to the last bit here; its logit is infinite.
        X = np.ones((3, 2), dtype=np.float32)
        problem = build(X, [0, 1, 0], 8, radius=1e6)
        chosen = random_transcript(problem, 0)
        chosen.sign[:] = 1
        for step, state in watch(problem, forced(chosen), 1e-18):
            assert (drift_of(problem, state, step) <= ROUNDING).all()

    def test_explicit_zeros_change_nothing_when_rows_are_exact(self):
        X, _, problem = small_problem(2)
        n_rows, n_columns = X.shape
        every = Compressed(
            np.arange(0, X.size + 1, n_columns),
            np.tile(np.arange(n_columns, dtype=np.int32), n_rows),
            X.ravel(),
            0.0,
        )
        filled = with_design(problem, rows=every, columns=transpose(every, n_columns))
        assert filled.design.rows.indices.size > problem.design.rows.indices.size
        one = last(watch(problem, argmax(), 0.0))
        other = last(watch(filled, argmax(), 0.0))
        for name in ("alpha", "margin", "gradient"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def rounding_of(problem):
    """Return what rounding every contribution to 2^-32 of the bound can do to the mean loss."""
    return problem.radius * problem.design.bound * 2.0**-32


class TestHistory:
    def trajectory(self, problem, X, labels, drift_tol, n_coordinates):
        options = {"drift_tol": drift_tol, "record_history": True}
        run = solve(problem, argmax(), random_stream(0), **options)
        taken = run.transcript()
        bound = problem.design.bound
        clipped = np.clip(X.astype(float), -bound, bound)
        if problem.design.intercept:
            clipped = np.column_stack([clipped, np.full(len(X), bound)])
        assert clipped.shape[1] == n_coordinates
        true = frank_wolfe(
            clipped,
            labels,
            problem.radius,
            problem.n_steps,
            transcript=list(zip(taken.vertex.tolist(), taken.sign.tolist(), strict=True)),
            residual_bound=problem.loss.residual_bound,
        )
        return run.history, true

    @settings(max_examples=30)
    @given(seeds, bounds, st.booleans(), limits)
    def test_without_drift_it_is_the_truth(self, seed, bound, intercept, limit):
        public = {"bound": bound, "intercept": intercept, "residual_bound": limit}
        X, labels, problem = small_problem(seed, n_steps=30, **public)
        history, true = self.trajectory(problem, X, labels, 0.0, 8 + intercept)
        allowed = rounding_of(problem)
        np.testing.assert_allclose(history.objective, true["objective"], rtol=0, atol=allowed)
        np.testing.assert_allclose(history.gap, true["gap"], rtol=0, atol=2 * allowed)
        # The vertices taken were the steepest.
        np.testing.assert_allclose(np.abs(true["gradient"]), true["steepest"], atol=1e-9)
        assert (np.sign(true["gradient"]) * true["sign"] <= 0).all()

    @settings(max_examples=20)
    @given(seeds, bounds, st.sampled_from([None, 1e-3, 0.05]), limits)
    def test_otherwise_it_never_exceeds_the_loss(self, seed, bound, drift_tol, limit):
        public = {"bound": bound, "residual_bound": limit}
        X, labels, problem = small_problem(seed, n_steps=30, radius=15.0, **public)
        history, true = self.trajectory(problem, X, labels, drift_tol, 9)
        assert (history.objective <= true["objective"] + rounding_of(problem)).all()
