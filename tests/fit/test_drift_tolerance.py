"""Which tolerance a fit takes: more than the least where N is known and noise hides it."""

import numpy as np
import pytest

from cluster.cases import records, released
from dplasso import DPLassoClassifier
from dplasso.fit import stages
from dplasso.fit.lasso import Lasso
from dplasso.frank_wolfe.drift import PRIVATE_TOLERANCE
from dplasso.frank_wolfe.solve import FrankWolfe

ASKED = {"n_iter": 60, "l1_radius": 8.0}
ALONE = {"fit_intercept": False}


def fit(data=None, **given):
    model = DPLassoClassifier(2.0, random_state=3, **ASKED | given)
    return released(model.fit(*(data or records())))[0]


def tolerance(counted, **known):
    """Return what a fit takes that knows so many records, and has the whole budget for vertices."""
    known = ASKED | ALONE | {"n_records": 1} | known
    method = Lasso.from_params(DPLassoClassifier(2.0, **known).get_params())
    return method.tolerance(method.cost(), counted, 60)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_fit_that_is_told_n_takes_what_its_noise_hides(neighbors):
    known = {"neighbors": neighbors, "n_records": 400, **ALONE}
    hidden = tolerance(400, **known)
    assert 2 * PRIVATE_TOLERANCE < hidden < 0.1
    assert fit(**known) == fit(**known, drift_tol=hidden)
    assert fit(**known) != fit(**known, drift_tol=PRIVATE_TOLERANCE)


def counting(monkeypatch, answer, **given):
    """Fit with these counts for an answer; return the tolerance that the vertices were given."""
    taken = []
    monkeypatch.setattr(stages, "noisy_counts", lambda *_, **__: np.array(answer))
    monkeypatch.setattr(
        FrankWolfe,
        "__init__",
        lambda run, *known, original=FrankWolfe.__init__, **settings: (
            taken.append(settings["drift_tol"]),
            original(run, *known, **settings),
        )[1],
    )
    fit(**given)
    return taken[0]


@pytest.mark.parametrize("given", [{}, ALONE])
def test_a_fit_that_counts_follows_its_counts_alone(given, monkeypatch):
    """And not the number of rows, which is 400."""
    found = {}
    for total in (100.0, 1_000.0):
        with monkeypatch.context() as patched:
            found[total] = counting(patched, [total / 2.0] * 2, **given)
    assert found[100.0] > found[1_000.0] > PRIVATE_TOLERANCE
    for total, took in found.items():
        # 99 % of the budget is left for the vertices.
        assert took == pytest.approx(tolerance(total), rel=0.01)


def test_columns_drawn_at_most_once_take_the_least():
    drawn = {"n_iter": 40, "l1_radius": "auto"}
    data = records(n_columns=450)
    assert fit(data, **drawn) == fit(data, drift_tol=PRIVATE_TOLERANCE, **drawn)


def test_the_tolerance_follows_the_number_of_records():
    assert tolerance(100.0) > tolerance(1_000.0) > PRIVATE_TOLERANCE
    # A count with noise may come out below 0.
    assert tolerance(-3.0) == 0.1
    assert tolerance(None) == PRIVATE_TOLERANCE
