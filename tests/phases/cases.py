"""Plans of every method, small enough to be walked phase by phase, and doors that can be repeated.

A contract of phases is tested over `PLANS`: a method whose plan is new is covered by a line there.
"""

from collections import namedtuple
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from evidence.audit.replay import replay_state
from scipy.sparse import csr_array

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Geometry,
)
from dplasso.encoding.levels import Levels
from dplasso.encoding.origin import Origin, with_origin
from dplasso.encoding.parts import Categories, Number, Pairs
from dplasso.encoding.schema import Schema
from dplasso.estimators.fitting import method_of
from dplasso.fit import lasso
from dplasso.fit.records import local_records
from dplasso.fit.run import Begun, Hooks, _prepared
from dplasso.gradient_descent import energies, magnitudes
from dplasso.phases import pairs
from dplasso.phases.phase import NO_SNAPSHOT, Fit
from dplasso.phases.released import Released
from dplasso.privacy import release as door_module
from dplasso.privacy.randomness import random_stream
from dplasso.privacy.release import Door
from dplasso.runtime.threads import ONE_THREAD
from small_fits import short_runs

N_ROWS, N_COLUMNS = 90, 30
PRIOR = np.linspace(-2.0, 2.0, N_COLUMNS)
DIRECTIONS = Geometry.learn(
    np.random.default_rng(1).normal(size=(80, 3))
    @ np.random.default_rng(2).normal(size=(3, N_COLUMNS))
)
BOUNDS = {"target_bounds": (0.0, 3.0)}
INTERVALS = {"infer": "all", "row_norm": 4.0}
NAMED = INTERVALS | {
    "infer": [0, 3],
    "public_rows": np.random.default_rng(4).normal(size=(200, N_COLUMNS)),
}
# Columns are drawn, since rows are long, or kept by gradients, of as few as there are here.
DRAWN = {"MOST_COLUMNS": 10, "_LONGER_ROWS": 1e-3, "TABLE_COLUMNS": 0}
KEPT = {"MOST_COLUMNS": 4, "_STRENGTH": 2.0}
MEASURED = {"MOST_COLUMNS": 4, "_LONGER_ROWS": 3.0, "TABLE_COLUMNS": 0}
# Where none may be kept: at a small budget the noise would decide.
ALWAYS_DRAWN = {"MOST_COLUMNS": 10, "_MOST_COORDINATES": 0}
NARROW = {"MOST_COLUMNS": 20}


@dataclass(frozen=True)
class Case:
    """An estimator, its kind of targets, and what of the plans is made small.

    `targets`: 2 or 3 classes, "labels" or "numbers".
    `scaled`: whether so few records are worth column scales.
    `schema`: what made the columns. `units`: what each column is multiplied by. `centres`: what is
    then added to it.
    """

    estimator: Any
    targets: Any = 2
    columns: dict[str, Any] = field(default_factory=dict)
    scaled: bool = False
    schema: Schema | None = None
    units: Any = 1.0
    centres: Any = 0.0


def _logistic(**options):
    return DPLogisticRegression(**({"epsilon": 2.0, "classes": (0, 1)} | options))


def _lasso(**options):
    return DPLassoClassifier(**({"epsilon": 20.0, "classes": (0, 1)} | options))


def _loop(**options):
    given = {"epsilon": 2.0, "n_iter": 12, "l1_radius": 5.0, "classes": (0, 1)}
    return DPFrankWolfeClassifier(**(given | options))


THREE = (0, 1, 2)
UNITS = 10.0 ** np.linspace(-2.0, 4.0, N_COLUMNS)
FAR = {"scaled": True, "units": UNITS, "centres": UNITS * np.resize([-50.0, 9.0], N_COLUMNS)}
# 30 columns: of each of two numbers 2, 4 and 8 bins, and one for missing values.
LEVELS = Schema([Levels(name, 0, 1, (2, 4, 8)) for name in "ab"])
# 30 columns, 16 of them of pairs.
PAIRS = Schema(
    [
        *(Levels("a", 0, 1, (2,), missing="ignore"), Levels("b", 0, 1, (2, 4), missing="ignore")),
        *(
            Categories("c", tuple("xyz"), "ignore", "ignore"),
            Number("d", 1.0),
            Number("e", 1.0, 0.0, "ignore"),
        ),
        Pairs(),
    ]
)
PLANS = {
    "logistic": Case(_logistic()),
    "logistic, replace-one": Case(_logistic(neighbors="replace-one", rows_per_person=3)),
    "logistic, one count": Case(_logistic(fit_intercept=False)),
    "logistic, scaled": Case(_logistic(), scaled=True),
    "logistic, units": Case(_logistic(epsilon=60.0), scaled=True, units=UNITS),
    "logistic, far from 0": Case(_logistic(epsilon=60.0), **FAR),
    "short list, far from 0": Case(_logistic(epsilon=60.0, max_weights=2), **FAR),
    "lasso, far from 0": Case(_lasso(epsilon=60.0), **FAR),
    "lasso, kept, far from 0": Case(_lasso(epsilon=60.0), columns=KEPT, **FAR),
    "lasso, drawn, far from 0": Case(_lasso(epsilon=60.0), columns=DRAWN, **FAR),
    "linear, far from 0": Case(DPLinearRegression(60.0, **BOUNDS), "numbers", **FAR),
    "short list": Case(_logistic(max_weights=2)),
    "short list, units": Case(_logistic(epsilon=60.0, max_weights=2), scaled=True, units=UNITS),
    "short list, scaled": Case(_logistic(max_weights=2), scaled=True),
    "balanced": Case(_logistic(class_weight="balanced")),
    "levels": Case(_logistic(epsilon=0.5), schema=LEVELS),
    "levels, all": Case(_logistic(), schema=LEVELS),
    "levels, scaled": Case(_logistic(epsilon=0.5), scaled=True, schema=LEVELS),
    "levels, three classes": Case(_logistic(epsilon=0.5, classes=THREE), 3, schema=LEVELS),
    "pairs": Case(_logistic(epsilon=20.0), schema=PAIRS),
    "pairs, scaled": Case(_logistic(epsilon=20.0), scaled=True, schema=PAIRS),
    "pairs, three classes": Case(_logistic(epsilon=20.0, classes=THREE), 3, schema=PAIRS),
    "pairs of numbers": Case(DPLinearRegression(20.0, **BOUNDS), "numbers", schema=PAIRS),
    "prior": Case(_logistic(prior=PRIOR)),
    "prior of a short list": Case(_logistic(prior=PRIOR, max_weights=2), scaled=True),
    "public rows": Case(_logistic(public_rows=DIRECTIONS)),
    "public rows, short list": Case(_logistic(public_rows=DIRECTIONS, max_weights=2)),
    "public rows, prior": Case(_logistic(public_rows=DIRECTIONS, prior=PRIOR)),
    "public rows, three classes": Case(_logistic(public_rows=DIRECTIONS, classes=THREE), 3),
    "public rows, lasso": Case(_lasso(public_rows=DIRECTIONS), columns=DRAWN),
    "public rows, lasso that keeps more": Case(_lasso(public_rows=DIRECTIONS), columns=KEPT),
    "public rows, lasso of numbers": Case(
        DPLasso(20.0, public_rows=DIRECTIONS, **BOUNDS), "numbers", DRAWN
    ),
    "three classes": Case(_logistic(classes=THREE), 3),
    "labels": Case(DPLogisticRegression(2.0), "labels"),
    "linear": Case(DPLinearRegression(2.0, **BOUNDS), "numbers"),
    "intervals": Case(_logistic(**INTERVALS)),
    "intervals, replace-one": Case(
        _logistic(neighbors="replace-one", rows_per_person=3, fit_intercept=False, **INTERVALS)
    ),
    "intervals, scaled": Case(_logistic(**INTERVALS), scaled=True),
    "intervals of numbers": Case(DPLinearRegression(2.0, **BOUNDS | INTERVALS), "numbers"),
    "named columns": Case(DPLinearRegression(2.0, **BOUNDS | NAMED), "numbers"),
    "named columns, people": Case(
        DPLinearRegression(2.0, **BOUNDS | NAMED, neighbors="replace-one", rows_per_person=3),
        "numbers",
    ),
    "lasso": Case(_lasso(), columns=DRAWN),
    "lasso, always drawn": Case(_lasso(epsilon=0.1), columns=ALWAYS_DRAWN),
    "lasso, kept": Case(_lasso(), columns=KEPT),
    "lasso, kept of rows measured": Case(_lasso(), columns=MEASURED),
    "lasso, half": Case(_lasso(), columns=NARROW),
    "lasso, all": Case(_lasso()),
    "lasso, some": Case(_lasso(max_weights=5, neighbors="replace-one")),
    "lasso, prior": Case(_lasso(prior=PRIOR), columns=DRAWN, scaled=True),
    "lasso, prior of three classes": Case(
        _lasso(classes=THREE, prior=np.stack([PRIOR, -PRIOR, PRIOR])), 3, DRAWN
    ),
    "lasso, three classes": Case(_lasso(classes=THREE), 3, DRAWN),
    "lasso of numbers": Case(DPLasso(20.0, **BOUNDS), "numbers", DRAWN),
    "frank-wolfe": Case(_loop()),
    "frank-wolfe, one process": Case(_loop(solver="standard", selector="noisy-max")),
    "frank-wolfe, N public": Case(_loop(n_records=N_ROWS, fit_intercept=False)),
    "frank-wolfe, three classes": Case(_loop(classes=THREE), 3),
}


def rows(case, seed=3, n_rows=N_ROWS):
    """Return records: dense rows of which a few columns tell the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS)) * (rng.random((n_rows, N_COLUMNS)) < 0.4)
    score = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n_rows)
    X = X * case.units + case.centres
    if case.targets == "numbers":
        return X, np.clip(score + 1.5, 0.0, 3.0)
    if case.targets == "labels":
        return X, np.stack([score > 0, X[:, 2] > 0, score > 1], axis=1).astype(int)
    return X, np.digitize(score, np.linspace(-0.5, 0.5, case.targets - 1))


@contextmanager
def small(case):
    """Make runs short, and what they choose by the number of records fit so few."""
    with ExitStack() as stack:
        stack.enter_context(short_runs())
        for name, value in case.columns.items():
            stack.enter_context(patch.object(lasso, name, value))
        if case.scaled:
            for phase in (energies, magnitudes):
                stack.enter_context(patch.object(phase, "_RECORDS", 1e-3))
        stack.enter_context(patch.object(pairs, "_SIGNAL", 1e-3))
        yield


@dataclass
class Notes(Door):
    """A door that adds noise which follows from the place of a phase and the number of its release.

    So a run that goes on from a snapshot can be given the noise that it would have had. Vertices
    are those of a table.

    `loud`: what the noise is multiplied by.
    `noisy`: sensitivity, scale and size of what was released of the phase under way.
    """

    loud: float = 1.0
    place: int = 0
    number: int = 0
    noisy: list[tuple[float, float, int]] = field(default_factory=list)
    drawing: Any = None

    def enter(self, place, number=0):
        """Begin a phase, after so many of its releases."""
        self.place, self.number, self.noisy, self.drawing = place, number, [], None

    def release(self, statistic, sensitivity, noise):
        if noise is not None:
            rng = np.random.default_rng([self.place, self.number])
            scale = min(self.loud * noise.scale, 2.0**58)
            statistic += np.rint(rng.normal(0.0, scale, statistic.shape)).astype(np.int64)
            self.noisy.append((sensitivity, noise.scale, statistic.size))
        self.number += 1
        return statistic

    def drawing_from(self, selector, sensitivity):
        rng = np.random.default_rng(self.place)
        vertex = rng.permutation(N_COLUMNS)
        sign = np.where(rng.random(N_COLUMNS) < 0.5, -1, 1).astype(np.int8)
        self.drawing = getattr(selector, "exponent", 0.0), sensitivity
        return replay_state(vertex, sign)


class Answers(Notes):
    """A door whose answers have nothing to do with the statistic."""

    def release(self, statistic, sensitivity, noise):
        table = 8.0 * np.sin(1.0 + self.number + np.arange(statistic.size))
        counts = self.place == 0 and self.number == 0
        if noise is not None:
            self.noisy.append((sensitivity, noise.scale, statistic.size))
            answer = sensitivity * (table + 45.0 * counts)
            statistic[:] = np.rint(answer).astype(np.int64).reshape(statistic.shape)
        self.number += 1
        return statistic


@contextmanager
def at_the_door(door):
    """Put a door in the place of the one."""
    with patch.object(door_module, "_door", door), np.errstate(all="ignore"):
        yield door


def prepared(case, data=None, **options) -> Begun:
    """Return what is known of a fit before anything private is computed."""
    X, y = rows(case) if data is None else data
    estimator = case.estimator
    if options:
        estimator = type(estimator)(**(estimator.get_params() | options))
    if case.schema is not None:
        X = with_origin(csr_array(X), Origin(case.schema))
    records = local_records(estimator, X, y, takes_matrix=case.targets == "labels")
    return _prepared(method_of(estimator), records, Hooks(cautioned=lambda _: None))


def begin(begun, seed=0):
    """Return a fit whose records are laid out."""
    method = begun.method
    stream = random_stream(seed)
    fit = Fit(begun.budget, begun.records, stream, ONE_THREAD, method.starting_model)
    begun.plan.lay_out(fit)
    return fit


# A phase that was walked through; what had been released before it; and what passed the door, as
# of `Notes`.
Taken = namedtuple("Taken", "phase share steps release before noisy drawing")


def walk(begun, fit, door):
    """Go through a plan slowly, whatever it spends; yield each phase when it is over."""
    released = Released()
    for place, phase in enumerate(begun.plan.phases):
        door.enter(place)
        share = phase.share(begun.budget, released)
        steps = phase.begin(fit, released, begun.budget.mu_of(share), NO_SNAPSHOT)
        for step in range(1, steps.n_steps + 1):
            steps.advance(step, step)
        release = steps.release()
        yield Taken(phase, share, steps, release, released, door.noisy, door.drawing)
        released = released.then(share, release)


def walked(case, door=None, data=None):
    """Return the phases of a fit, what it released, and what is known of it."""
    door = door or Notes()
    with small(case), at_the_door(door):
        begun = prepared(case, data)
        taken = list(walk(begun, begin(begun), door))
    last = taken[-1]
    return taken, last.before.then(last.share, last.release), begun
