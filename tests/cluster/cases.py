"""Small data, cut into partitions, and what a fit releases of them."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso import DPLassoClassifier, DPLogisticRegression
from dplasso.cluster.engines import LocalHandle, WorkerLost
from dplasso.cluster.worker import Worker

# Of 60 columns, some without a weight.
PRIOR = np.concatenate([np.linspace(1.0, -0.5, 40), np.zeros(20)])
MODELS = {
    "staged": DPLassoClassifier(1.0, random_state=3),
    "strong": DPLassoClassifier(50.0, random_state=3),
    "no privacy": DPLassoClassifier(np.inf, max_weights=20),
    "weighted": DPLogisticRegression(5.0, classes=[0, 1], class_weight=[1.0, 0.5], random_state=3),
    "scaled without privacy": DPLogisticRegression(np.inf),
    "dense": DPLogisticRegression(1.0, random_state=3),
    "balanced": DPLogisticRegression(20.0, class_weight="balanced", random_state=3, max_weights=30),
    "short list": DPLogisticRegression(2.0, max_weights=4, random_state=3),
    "intervals": DPLogisticRegression(3.0, infer="all", row_norm=2.0, random_state=3),
    "dense from a prior": DPLogisticRegression(1.0, prior=PRIOR, random_state=3),
    "short list from a prior": DPLogisticRegression(
        2.0, max_weights=4, prior=PRIOR, random_state=3
    ),
    "staged from a prior": DPLassoClassifier(30.0, max_weights=20, prior=PRIOR, random_state=3),
}


def records(n_rows=400, n_columns=60, seed=0):
    """Return sparse rows of numbers, some frequent columns among them, and labels they tell."""
    rng = np.random.default_rng(seed)
    density = rng.uniform(0.02, 0.7, n_columns)
    X = rng.normal(0.0, 0.8, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    y = (X[:, :5].sum(axis=1) + rng.normal(0.0, 0.5, n_rows) > 0).astype(int)
    return sp.csr_array(X), y


def cut(X, y, n_parts):
    """Cut rows at uneven places."""
    edges = np.rint(np.linspace(0, 1, n_parts + 1) ** 1.5 * X.shape[0]).astype(int)
    spans = [slice(first, last) for first, last in pairwise(edges)]
    return [X[span] for span in spans], [y[span] for span in spans]


def released(model):
    """Return everything that a fit lets out, as bytes and plain values."""
    arrays = {name: one.tobytes() for name, one in model.model_.released.arrays().items()}
    return arrays, model.privacy_.to_dict(), model.classes_.tolist()


@dataclass
class Watched:
    """An engine in this process that has a say in what its workers answer.

    `answer` begins a call for a handle, and returns what gives the result.
    """

    restarts: int = 3
    calls: list = field(default_factory=list)

    def gather(self, count):
        return self

    def start(self, partition):
        return Handle(self, LocalHandle(Worker(partition)))

    def shared(self, args):
        return args


@dataclass
class Handle:
    engine: Any
    inside: LocalHandle
    lost: bool = False

    def call(self, method, *args):
        self.engine.calls.append((method, *args))
        return self.engine.answer(self, method, *args)

    def end(self):
        self.inside.end()


@dataclass
class Killer(Watched):
    """Its workers are lost when told.

    `at`: numbers of the calls, over all workers, whose answer never comes.
    `before`: whether the call is not even begun.
    """

    at: tuple = ()
    before: bool = False

    def answer(self, handle, method, *args):
        handle.lost = handle.lost or len(self.calls) - 1 in self.at
        begun = not (handle.lost and self.before)
        found = handle.inside.call(method, *args) if begun else None

        def result():
            if handle.lost:
                raise WorkerLost("it was killed")
            return found()

        return result
