"""Models made by hand, and what the tests of model files share."""

import json
import math

import numpy as np

from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import History, Transcript
from dplasso.model import Model
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import make_statement

STEPS = 6
N_FEATURES = 4


def vertices(vertex, sign, **changes):
    """Return the release of these vertices."""
    transcript = Transcript(np.asarray(vertex, np.int64), np.asarray(sign, np.int8))
    public = {"n_features": N_FEATURES, "l1_radius": 10.0, "feature_bound": 1.0}
    return VertexRelease(transcript, **(public | changes))


def fitted(*, private=True, seeded=False, classes=(0, 1), params=None, names=None, n_iter=STEPS):
    epsilon = 1.0 if private else math.inf
    mechanism = build_mechanism(epsilon=epsilon, delta=1e-6, n_iter=n_iter)
    rng = np.random.default_rng(7)
    return Model(
        params={
            "epsilon": epsilon,
            "delta": 1e-6,
            "l1_radius": 10.0,
            "feature_bound": 1.0,
            "n_iter": n_iter,
            "fit_intercept": True,
            "classes": None,
            "mechanism": "exponential",
            "drift_tol": 1e-3,
            "random_state": 12345 if seeded else None,
        }
        | (params or {}),
        release=vertices(
            rng.integers(0, N_FEATURES + 1, n_iter), rng.choice(np.array([-1, 1]), n_iter)
        ),
        statement=make_statement(mechanism, seeded=seeded, classes_declared=True),
        classes=np.asarray(classes),
        n_features=N_FEATURES,
        feature_names=None if names is None else np.array(names, dtype=object),
        history=None if private else History(rng.random(n_iter), rng.random(n_iter)),
    )


def same(one: Model, other: Model) -> bool:
    """Compare everything a file holds, types included."""
    for name in ("feature_names", "history"):
        if (getattr(one, name) is None) != (getattr(other, name) is None):
            return False
    arrays = [
        (one.release.transcript.vertex, other.release.transcript.vertex),
        (one.release.transcript.sign, other.release.transcript.sign),
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
        and one.release == other.release
        and all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in arrays)
    )


def header_of(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["header"].tobytes())
