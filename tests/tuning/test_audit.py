"""A black-box audit of a whole search: its claim stands; a score without noise is found out.

All rows but one have the label that every candidate predicts, so a score without noise tells at
once whether the other one was held out.
"""

import numpy as np
from tests.tuning.models import NoisyShare

from dplasso import PrivateSearch
from dplasso.audit import Claim
from dplasso.audit.black_box import compare
from dplasso.tuning import estimates

# Chance that a claim which holds is called violated.
ALARM = 1e-6
RUNS = 160
ROWS = 60
EPSILON, DELTA = 1.0, 1e-6


def releases(with_canary):
    """Return what many searches released: the score, and what the model knows."""
    X = np.arange(ROWS + with_canary, dtype=float)[:, None]
    y = np.zeros(ROWS + with_canary, dtype=int)
    y[ROWS:] = 1
    found = []
    for _ in range(RUNS):
        search = PrivateSearch(
            # The classes are public: both, whatever the rows hold.
            NoisyShare(classes=(0, 1)),
            {"bias": [-1.0, -2.0]},
            EPSILON,
            DELTA,
            tries=3,
            metric="accuracy",
            held_out=0.75,
        )
        search.fit(X, y)
        found.append((search.best_score_.value, search.best_estimator_.share_))
    return np.array(found)


def audit():
    one, other = releases(1), releases(0)
    quarter = RUNS // 4
    # An event is a high value on the one data set, or a low one on the other.
    scored = [(sign * one[:, k], sign * other[:, k]) for k in range(2) for sign in (1.0, -1.0)]
    claim = Claim(EPSILON, DELTA, "add-remove", 1, 1.0, 1.0)
    return compare(
        claim, scored, ("score", "-score", "model", "-model"), ALARM, (RUNS, quarter), "search"
    )


def test_the_claim_stands():
    assert not audit().violated


def test_a_score_without_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(estimates, "release", lambda exact, *_: exact)
    assert audit().violated
