"""Which tolerance a fit takes: more than the least where N is known and noise hides it."""

import pytest

from cluster.cases import records, released
from dplasso import DPLassoClassifier
from dplasso.fit.vertices import drift_tolerance
from dplasso.frank_wolfe.drift import PRIVATE_TOLERANCE
from dplasso.privacy.mechanisms import build_mechanism
from parts import TWO, method_of

STEP = build_mechanism(epsilon=2.0, delta=1e-6, n_iter=60, residual_bound=0.5)


def fit(**given):
    plain = {"n_iter": 60, "l1_radius": 8.0, "random_state": 3}
    return released(DPLassoClassifier(2.0, **plain | given).fit(*records()))[0]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_fit_that_is_told_n_takes_what_its_noise_hides(neighbors):
    known = {"neighbors": neighbors, "n_records": 400}
    settings = method_of(DPLassoClassifier(2.0, n_iter=60, l1_radius=8.0, **known))
    step = build_mechanism(
        **{name: getattr(settings, name) for name in ("epsilon", "delta", "n_iter", "neighbors")},
        residual_bound=settings.residual_bound(TWO),
    )
    hidden = drift_tolerance(settings, step, 400, 60)
    assert 2 * PRIVATE_TOLERANCE < hidden < 0.1
    assert fit(**known) == fit(**known, drift_tol=hidden)
    assert fit(**known) != fit(**known, drift_tol=PRIVATE_TOLERANCE)


def test_a_fit_that_is_not_told_n_takes_the_least():
    assert fit() == fit(drift_tol=PRIVATE_TOLERANCE)


def test_columns_drawn_at_most_once_take_the_least():
    default = DPLassoClassifier(2.0, n_iter=40, random_state=3)
    least = DPLassoClassifier(2.0, n_iter=40, random_state=3, drift_tol=PRIVATE_TOLERANCE)
    data = records(n_columns=450)
    assert len(default.fit(*data).transcript_) == 40
    assert released(default)[0] == released(least.fit(*data))[0]


def test_the_tolerance_follows_the_number_of_records():
    settings = method_of(DPLassoClassifier(2.0, n_iter=60, l1_radius=8.0))
    few, many = (drift_tolerance(settings, STEP, n, 60) for n in (100.0, 1_000.0))
    assert few > many > PRIVATE_TOLERANCE
    # A count with noise may come out below 0.
    assert drift_tolerance(settings, STEP, -3.0, 60) == 0.1
    assert drift_tolerance(settings, STEP, None, 60) == PRIVATE_TOLERANCE
