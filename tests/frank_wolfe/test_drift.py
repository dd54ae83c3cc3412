"""Which tolerance a fit takes, as its noise hides; and when a row is looked at again."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso import DPFrankWolfeClassifier
from dplasso.estimators.fitting import method_of
from dplasso.fit.records import LocalRecords
from dplasso.frank_wolfe.drift import (
    PRIVATE_TOLERANCE,
    due_step,
    tolerance_within_noise,
)
from dplasso.phases import count
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from dplasso.runtime.threads import ONE_THREAD
from fit.cases import records

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


def fit(**given):
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
    assert fit(**known) == fit(**known, drift_tol=hidden)
    assert fit(**known) != fit(**known, drift_tol=PRIVATE_TOLERANCE)


@pytest.mark.parametrize("given", [{}, ALONE])
def test_a_fit_that_counts_follows_its_counts_alone(given, monkeypatch):
    """And not the number of rows, which is 400."""
    found = {total: tolerance(total, **given) for total in (100.0, 1_000.0)}
    assert found[100.0] > found[1_000.0] > PRIVATE_TOLERANCE
    for total, took in found.items():
        answer = np.array([total / 2.0] * 2)
        monkeypatch.setattr(count, "noisy_counts", lambda *_, own=answer: own.copy())
        assert fit(**given) == fit(**given, drift_tol=took)
    # A count with noise may come out low.
    assert tolerance(1.0) == tolerance_within_noise(1e-9, 1.0, 120) == 0.1
    assert tolerance(400.0, drift_tol=0.01) == 0.01
    assert tolerance(400.0, drift_tol=None) is None
