import numpy as np
import pytest

from dplasso import DPLassoClassifier
from dplasso.audit import canary_pair, many_canaries
from dplasso.audit.targets import AuditSettings, builder, solver_target
from dplasso.privacy.randomness import random_stream


@pytest.mark.parametrize("mechanism", ["exponential", "paper"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.filterwarnings("ignore::dplasso.errors.PrivacyLeakWarning")
def test_the_fast_way_gives_the_estimators_release(mechanism, neighbors):
    """What is audited thousands of times is what users call."""
    settings = AuditSettings(mechanism=mechanism, neighbors=neighbors, n_iter=30, epsilon=20.0)
    target = solver_target(settings, new_stream=lambda: random_stream(5))
    estimator = DPLassoClassifier(
        epsilon=20.0,
        n_iter=30,
        neighbors=neighbors,
        mechanism=mechanism,
        l1_radius=settings.l1_radius,
        fit_intercept=False,
        random_state=5,
    )
    bits = np.arange(12) % 3 > 0
    for data in (*canary_pair(target.claim), many_canaries(target.claim, bits)):
        assert target.fit(data) == estimator.fit(data.X, data.y).transcript_


def test_the_claim_is_the_statements():
    build = builder(AuditSettings(epsilon=0.7, delta=1e-5, neighbors="replace-one"))
    for public in (False, True):
        target = build(20, public=public)
        data = canary_pair(target.claim)[0]
        model = DPLassoClassifier(0.7, 1e-5, n_iter=20, neighbors="replace-one").fit(data.X, data.y)
        assert target.claim.eps0 == model.privacy_.eps0
        assert target.claim.epsilon == model.privacy_.epsilon_requested
        assert target.claim.delta == model.privacy_.delta
        assert target.claim.n_iter == len(target.fit(data))


def test_settings_that_no_estimator_takes_are_refused():
    for changes in ({"epsilon": -1.0}, {"selector": "heap"}, {"solver": "best"}):
        with pytest.raises(ValueError, match=next(iter(changes))):
            builder(AuditSettings(**changes))(5)
