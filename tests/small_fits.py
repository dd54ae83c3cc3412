"""What both harnesses of neighbours fit and score: few columns, few steps, public models."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from evidence.assurance.hostile import FLOATS
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Geometry,
)
from dplasso.fit import lasso
from dplasso.gradient_descent import calibration, schedule
from dplasso.model.linear import MatchedPrior
from dplasso.tuning.estimates import MANY_LABELS, NUMBERS, SEVERAL_CLASSES, TWO_CLASSES
from isolated_records import FORMS, IN_PARTS, N_COLUMNS, Records, matrix, parts_of, store

BOUNDS = (-1.0, 3.0)
# Of each family an estimator, and how many classes or labels it learns; 0 for numbers.
FAMILIES: dict[str, tuple[Any, int]] = {
    "logistic": (DPLogisticRegression, 2),
    "three classes": (DPLogisticRegression, 3),
    "labels": (DPLogisticRegression, 4),
    "linear": (DPLinearRegression, 0),
    "lasso": (DPLassoClassifier, 2),
    "lasso, three classes": (DPLassoClassifier, 3),
    "lasso, numbers": (DPLasso, 0),
    "frank-wolfe": (DPFrankWolfeClassifier, 2),
    "frank-wolfe, three classes": (DPFrankWolfeClassifier, 3),
}
GRADIENTS = ("logistic", "three classes", "labels", "linear")
LASSOS = ("lasso", "lasso, three classes", "lasso, numbers")
# Of the paper's algorithms.
LOOPS = ("frank-wolfe", "frank-wolfe, three classes")
# Plans of LASSOs that draw or keep so few columns as there are here.
PLANS: dict[str, dict[str, Any]] = {
    "kept": {"MOST_COLUMNS": 2, "_STRENGTH": 2.0},
    "drawn": {"_LONGER_ROWS": 1e-3, "TABLE_COLUMNS": 0},
}


@contextmanager
def short_runs() -> Iterator[None]:
    """Give a context in which runs of gradients have few steps."""
    few = {"FEWEST_STEPS": 8, "MOST_STEPS": 12}
    few |= dict.fromkeys(("RANKING_STEPS", "SELECTING_STEPS", "REFIT_STEPS"), 4)
    with patch.multiple(schedule, **few), patch.object(calibration, "CALIBRATION_STEPS", 6):
        yield


def planned(name: str) -> Any:
    """Give a context in which LASSOs have one of `PLANS`."""
    return patch.multiple(lasso, **PLANS[name])


def targets_of(
    n_classes: int, rng: np.random.Generator, size: int, *, many_labels: bool = False
) -> NDArray[Any]:
    """Draw classes, labels, or numbers of which half are those of an adversary."""
    if many_labels:
        return rng.integers(0, 2, (size, n_classes))
    if n_classes:
        return rng.integers(0, n_classes, size)
    return np.where(rng.random(size) < 0.5, rng.uniform(-2.0, 4.0, size), rng.choice(FLOATS, size))


# Weights of public models.
WEIGHTS = {
    "plain": (0.5, -1.0, 2.0, 0.3, 0.0),
    "huge": (1e300, -1e308, 5e-324, 0.0, -3.0, 1e9),
}


def prior_of(sizes: str, n_classes: int, n_columns: int, seed: Any) -> MatchedPrior:
    """Draw a public model to start from, its weights from `WEIGHTS`."""
    rng, shape = np.random.default_rng(seed), (n_classes if n_classes > 2 else 1, n_columns)
    return MatchedPrior(rng.choice(WEIGHTS[sizes], shape), rng.normal(size=shape[0]), sizes)


def public_rows(n_columns: int) -> NDArray[Any]:
    """Return rows that nobody protects, some of them longer than all others."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(60, 3)) @ rng.normal(size=(3, n_columns))
    rows[rng.random(rows.shape) < 0.5] = 0.0
    return rows * 10.0 ** rng.integers(-3, 4, (60, 1))


@cache
def directions(n_columns: int) -> Geometry:
    """Learn their directions."""
    return Geometry.learn(public_rows(n_columns))


def given_to_fit(form: str, records: Records, folder: Path, engine: Any = None) -> Any:
    """Return X, y and what else a fit of these records is given, in partitions with an engine."""
    in_parts, has_people = form in IN_PARTS, form in ("stores", "store of people")
    parts, given = parts_of(records) if in_parts else [records], {}
    if records.weights is not None:
        given["sample_weight"] = [part.weights for part in parts]
    if records.people is not None and not has_people:
        given["groups"] = [list(part.people or ()) for part in parts]
    if form == "stores":
        people = records.people is not None
        made = (store(part, folder, f"{k}", people=people) for k, part in enumerate(parts))
        return [str(one.path) for one in made], None, given | {"engine": engine}
    if in_parts:
        X, y = [matrix(part) for part in parts], [part.y for part in parts]
        return X, y, given | {"engine": engine}
    X = FORMS[form](records, folder)
    return X, records.y, {name: one for name, (one,) in given.items()}


# --- Models that are scored ----------------------------------------------------------------------

# Others' models: the second has learnt less than the first.
_LOGISTIC = LogisticRegression(), LogisticRegression(C=0.01)
STRANGERS: dict[str, tuple[Any, ...]] = {
    NUMBERS: (Ridge(), Ridge(100.0), LinearRegression()),
    TWO_CLASSES: (*_LOGISTIC, LinearSVC(), SGDClassifier()),
    SEVERAL_CLASSES: (*_LOGISTIC, LinearSVC()),
    MANY_LABELS: tuple(map(OneVsRestClassifier, _LOGISTIC)),
}
# Classes or labels of every kind of target that there are scores of.
N_CLASSES = {NUMBERS: 0, TWO_CLASSES: 2, SEVERAL_CLASSES: 3, MANY_LABELS: 4}


@cache
def scored_model(kind: str, number: int) -> Any:
    """Return a public model: ours first, then others', and a LASSO last."""
    rng, n_classes = np.random.default_rng(9), N_CLASSES[kind]
    X = rng.normal(size=(60, N_COLUMNS))
    y: Any = np.arange(60) % n_classes if n_classes else rng.uniform(-1.0, 3.0, 60)
    if kind == MANY_LABELS:
        y = rng.integers(0, 2, (60, n_classes))
    own = {"epsilon": 50.0, "random_state": 1} | ({} if n_classes else {"target_bounds": BOUNDS})
    models = [DPLogisticRegression(**own) if n_classes else DPLinearRegression(**own)]
    models += map(clone, STRANGERS[kind])
    if kind != MANY_LABELS:
        models.append((DPLassoClassifier if n_classes else DPLasso)(feature_bound=0.7, **own))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return models[number].fit(X, y)
