"""Which tolerance a fit takes: more than the least where N is known and noise hides it."""

from types import SimpleNamespace

import numpy as np
import pytest

from dplasso import DPFrankWolfeClassifier
from dplasso.estimators.fitting import method_of
from dplasso.frank_wolfe.drift import PRIVATE_TOLERANCE, tolerance_within_noise
from dplasso.phases import count
from dplasso.phases.released import Released
from dplasso.phases.releases import Counted
from fit.cases import records

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
    laid_out = SimpleNamespace(shape=(400, 60), problem=lambda *_: None)
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


def test_the_tolerance_follows_the_number_of_records():
    assert tolerance(100.0) > tolerance(1_000.0) > PRIVATE_TOLERANCE
    # A count with noise may come out low.
    assert tolerance(1.0) == tolerance_within_noise(1e-9, 1.0, 120) == 0.1
    assert tolerance(400.0, drift_tol=0.01) == 0.01
    assert tolerance(400.0, drift_tol=None) is None
