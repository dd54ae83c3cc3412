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

    def told(model):
        history = [] if model.history is None else [model.history.objective, model.history.gap]
        arrays = [model.classes, model.feature_names, *history]
        arrays += model.release.arrays().values()
        plain = repr(model.params), model.statement, model.n_features, model.origin, model.release
        return [plain, *(None if a is None else (a.dtype, a.tolist()) for a in arrays)]

    return told(one) == told(other)


def header_of(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["header"].tobytes())
