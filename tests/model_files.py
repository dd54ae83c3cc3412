"""Fitted stand-ins for the estimator, and what the tests of model files share."""

import json
import math
from types import SimpleNamespace

import numpy as np

from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.model import ModelParts
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import make_statement

STEPS = 6
N_FEATURES = 4


class FittedStandIn(SimpleNamespace):
    """What saving asks of a fitted estimator, and no more."""

    def get_params(self, deep=True):
        assert deep is False
        return self.params


def fitted(*, private=True, seeded=False, classes=(0, 1), params=None, names=None, n_iter=STEPS):
    epsilon = 1.0 if private else math.inf
    mechanism = build_mechanism(epsilon=epsilon, delta=1e-6, n_iter=n_iter)
    rng = np.random.default_rng(7)
    estimator = FittedStandIn(
        params={
            "epsilon": epsilon,
            "delta": 1e-6,
            "l1_radius": 10.0,
            "n_iter": n_iter,
            "fit_intercept": True,
            "classes": None,
            "mechanism": "exponential",
            "drift_tol": 1e-3,
            "random_state": 12345 if seeded else None,
        }
        | (params or {}),
        transcript_=Transcript(
            rng.integers(0, N_FEATURES + 1, n_iter), rng.choice(np.array([-1, 1], np.int8), n_iter)
        ),
        privacy_=make_statement(mechanism, seeded=seeded, classes_declared=True),
        classes_=np.asarray(classes),
        n_features_in_=N_FEATURES,
    )
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if not private:
        estimator.history_ = History(rng.random(n_iter), rng.random(n_iter))
    return estimator


def same(one: ModelParts, other: ModelParts) -> bool:
    """Compare everything a file holds, types included."""
    for name in ("feature_names", "history"):
        if (getattr(one, name) is None) != (getattr(other, name) is None):
            return False
    arrays = [
        (one.transcript.vertex, other.transcript.vertex),
        (one.transcript.sign, other.transcript.sign),
        (one.classes, other.classes),
    ]
    if one.feature_names is not None:
        arrays.append((one.feature_names, other.feature_names))
    if one.history is not None:
        arrays += [
            (one.history.objective, other.history.objective),
            (one.history.gap, other.history.gap),
        ]
    return (
        repr(one.params) == repr(other.params)
        and one.statement == other.statement
        and one.n_features == other.n_features
        and all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in arrays)
    )


def header_of(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["header"].tobytes())
