"""A black-box audit of a whole search: its claim stands; a score without noise is found out.

All rows but one have the label that every candidate predicts, so a score without noise tells at
once whether the other one was held out.
"""

import math

import numpy as np
from scipy.stats import binomtest
from tests.tuning.models import NoisyShare

from dplasso import PrivateSearch
from dplasso.tuning import estimates

# Chance that a claim which holds is called violated.
ALARM = 1e-6
RUNS, CHOICE = 160, 40
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


def refuted():
    """Return whether an event that the first runs chose is likelier than the guarantee allows."""
    one, other = releases(1), releases(0)
    # An event is a high value on the one data set, or a low one on the other.
    pairs = [(sign * one[:, k], sign * other[:, k]) for k in range(2) for sign in (1.0, -1.0)]
    events = [(pair, at) for pair in pairs for at in np.concatenate(pair)]

    def gain(event):
        (high, low), at = event
        return (high[:CHOICE] >= at).mean() - (low[:CHOICE] >= at).mean()

    parts, at = max(events, key=gain)
    often, rarely = (
        binomtest(int((part[CHOICE:] >= at).sum()), RUNS - CHOICE).proportion_ci(1.0 - ALARM)
        for part in parts
    )
    return often.low > math.exp(EPSILON) * rarely.high + DELTA


def test_the_claim_stands():
    assert not refuted()


def test_a_score_without_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(estimates, "release", lambda exact, *_: exact)
    assert refuted()
