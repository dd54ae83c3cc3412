"""Models made by hand, and what the tests of model files share."""

import json
import math

import numpy as np

from dplasso.model import Model
from dplasso.phases.released import Entry, Released
from dplasso.phases.releases import Drawn
from dplasso.privacy.budget import Draws, build_budget
from dplasso.privacy.statement import StatedRelease, make_statement

STEPS = 6
N_FEATURES = 4


def vertices(vertex, sign, **changes):
    """Return the release of these vertices."""
    public = {"n_features": N_FEATURES, "radius": 10.0, "late_start": 0, "constant": 1.0}
    public |= {"offset": np.zeros(1)} | changes
    drawn = Drawn(np.asarray(vertex, np.int64), np.asarray(sign, np.int8), **public)
    return Released((Entry(1.0, drawn),))


def fitted(*, private=True, seeded=False, classes=(0, 1), params=None, names=None, n_iter=STEPS):
    epsilon = 1.0 if private else math.inf
    known = {"epsilon": epsilon, "delta": 1e-6, "n_iter": n_iter}
    stated = [StatedRelease("vertices", "steps", {"feature_bound": 1.0, "residual_bound": 0.5})]
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
        released=vertices(
            rng.integers(0, N_FEATURES + 1, n_iter), rng.choice(np.array([-1, 1]), n_iter)
        ),
        statement=make_statement(
            build_budget(Draws(vertices=n_iter), **known),
            stated,
            seeded=seeded,
            classes_declared=True,
        ),
        classes=np.asarray(classes),
        n_features=N_FEATURES,
        feature_names=None if names is None else np.array(names, dtype=object),
    )


def same(one: Model, other: Model) -> bool:
    """Compare everything a file holds, types included."""

    def told(model):
        arrays = [model.classes, model.feature_names]
        arrays += model.released.arrays().values()
        plain = repr(model.params), model.statement, model.n_features, model.origin
        return [plain, *(None if a is None else (a.dtype, a.tolist()) for a in arrays)]

    return told(one) == told(other)


def header_of(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["header"].tobytes())
