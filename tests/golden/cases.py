"""The fits whose results version 0.2.0 kept, on data that need no file.

Data come from the raw words of a bit generator, whose stream numpy promises never to change, and
from whole multiples of 1/64, which every summation adds up exactly.

Kept are the fits whose random draws are to stay as they are: the LASSO with `n_iter` and
`l1_radius`, which counted nothing and drew the constant like a column (`as_then`). Of default LASSO
fits and of noisy gradient descent only the files are.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy.sparse as sp

from dplasso import (
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivacyLeakWarning,
    PublicEncoder,
    open_store,
)
from dplasso.encoding.parts import Bins, Categories, Number, Text
from dplasso.encoding.schema import Schema
from dplasso.fit.lasso import Lasso

FILES = Path(__file__).parent / "files"
N_ROWS = 120
N_COLUMNS = 40
SCHEMA = Schema(
    (
        Categories("ward", ("bones", "eyes", "heart")),
        Bins("age", (18, 65)),
        Number("score", 8.0),
        Text("note", 4),
    ),
    "y",
)


@dataclass(frozen=True)
class Data:
    """Rows, what is known of them, and what else `fit` takes."""

    X: Any
    y: Any
    weights: Any = None
    groups: Any = None


@dataclass(frozen=True)
class Case:
    """A fit: of which estimator, with which parameters, on which data (`make_data`)."""

    estimator: type
    options: dict[str, Any]
    data: str = "csr"


def random_rows(seed: int, n_rows: int, n_columns: int, per_row: int) -> Data:
    """Make rows of at most `per_row` entries, most of them in the first columns."""
    words = np.random.PCG64(seed).random_raw((4, n_rows * per_row))
    columns = (words[0] % n_columns) * (words[1] % n_columns) // n_columns
    values = (2.0 * (words[2] % 128) - 127.0) / 64.0
    rows = np.repeat(np.arange(n_rows), per_row)
    X = sp.coo_array(
        (values.astype(np.float32), (rows, columns.astype(np.int32))), shape=(n_rows, n_columns)
    ).tocsr()
    X.eliminate_zeros()
    # Types that most layouts share; the bits of a fit do not depend on them.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    noise = (words[3, :n_rows] % 256 - 128.0) / 64.0
    return Data(X, X @ (np.arange(n_columns) % 3 - 1.0) + noise)


def small() -> Data:
    """Make the rows of most fits; their targets are numbers."""
    return random_rows(1, N_ROWS, N_COLUMNS, 8)


def signs(scores: Any) -> Any:
    """Return two labels."""
    return np.where(scores > 0, 1, -1)


def words(scores: Any) -> Any:
    """Return four labels."""
    return np.array(["north", "east", "south", "west"])[np.digitize(scores, [-2.0, 0.0, 2.0])]


def make_data(name: str) -> Data:
    """Make the data of a case."""
    if name == "store":
        return Data(open_store(FILES / "rows.store"), None)
    if name == "wide":
        # More columns than the solver leaves in the order given.
        data = random_rows(2, 50, 140_000, 10_000)
        return Data(data.X, signs(data.y))
    if name == "large":
        # A step along the intercept looks at rows of more than 2^20 entries: all threads take it.
        data = random_rows(3, 20_000, 300, 70)
        data.X.data[:] = 1.0
        return Data(data.X, signs(data.y))
    data = small()
    X, y = data.X, signs(data.y)
    match name:
        case "binary":
            X.data[:] = 1.0
        case "csc":
            X = X.tocsc()
        case "dense":
            X = X.toarray()
        case "numbers":
            y = data.y
        case "four classes":
            y = words(data.y)
        case "weights":
            return Data(X, y, weights=1.0 + np.arange(N_ROWS) % 3)
        case "people":
            return Data(X, y, groups=np.arange(N_ROWS) // 3)
        case "labels":
            y = np.where(y > 0, "yes", "no")
        case "table":
            X = PublicEncoder(SCHEMA).fit_transform(table())
    return Data(X, y)


def table() -> pd.DataFrame:
    """Return the small rows as a table of people."""
    y = small().y
    i = np.arange(y.size)
    notes = np.array(["", "chest pain", "fine"])
    wards = np.array(["bones", "eyes", "heart", "kitchen"])
    return pd.DataFrame(
        {"ward": wards[i % 4], "age": 5.0 + i % 90, "score": y, "note": notes[i % 3]}
    )


LASSO = {
    "n_iter": 50,
    "l1_radius": 7.5,
    "feature_bound": 1.25,
    "residual_bound": 1.0,
    "epsilon": 20.0,
    "random_state": 20240,
}
WIDE = {"n_iter": 200, "random_state": 20241}
LARGE = {"l1_radius": 1.0, "random_state": 20242}
DESCENT = {"epsilon": 2.0, "random_state": 20244}
BOUNDS = {"target_bounds": (-4.0, 4.0)}


def lasso(data: str = "csr", /, *, estimator: type = DPLassoClassifier, **options: Any) -> Case:
    """Return a LASSO fit with a radius."""
    return Case(estimator, LASSO | options, data)


CASES: dict[str, dict[str, Case]] = {
    # The selector that serves every mechanism runs all the rest; any other costs a compilation.
    "LASSO": {
        f"{neighbors} drift_tol={tolerance} intercept={intercept}": lasso(
            neighbors=neighbors, drift_tol=tolerance, fit_intercept=intercept
        )
        for neighbors, tolerance, intercept in product(
            ("add-remove", "replace-one"), ("auto", 0.0, None, 0.01), (True, False)
        )
    }
    | {
        "half residuals": lasso(residual_bound=0.5),
        "class weights": lasso(class_weight={-1: 1.0, 1: 2.0}),
        "weights": lasso("weights", weight_bound=2.0),
        "people": lasso("people", rows_per_person=2),
        "two threads": lasso(n_jobs=2),
        "binary": lasso("binary"),
        "csc": lasso("csc"),
        "dense": lasso("dense"),
        "store": lasso("store"),
        "standard": lasso(solver="standard"),
        "paper": lasso(mechanism="paper"),
        "not private": lasso(epsilon=inf),
        "not private, exact": lasso(epsilon=inf, drift_tol=0.0),
        "wide": lasso("wide", epsilon=500.0, **WIDE),
        "wide, paper": lasso("wide", epsilon=4e3, mechanism="paper", **WIDE),
        "wide, exact": lasso("wide", epsilon=inf, drift_tol=0.0, **WIDE),
        "large": lasso("large", epsilon=0.2, drift_tol=0.02, n_jobs=2, **LARGE),
        "large, paper": lasso("large", epsilon=0.5, mechanism="paper", **LARGE),
    },
    "LASSO, other selectors": {
        "noisy-max": lasso(selector="noisy-max"),
        "big-little": lasso(selector="big-little"),
        "argmax": lasso(selector="argmax", epsilon=inf),
        "heap": lasso(selector="heap", epsilon=inf),
    },
    "LASSO, other targets": {
        "four classes": lasso("four classes", residual_bound=0.5),
        "four classes, not private": lasso("four classes", epsilon=inf),
        "regression": lasso("numbers", estimator=DPLasso, **BOUNDS),
        "regression, not private": lasso("numbers", estimator=DPLasso, epsilon=inf, **BOUNDS),
    },
}
SHORT = LASSO | {"n_iter": 20}
UNSEEDED = {"random_state": None}
DRAWN = {"epsilon": 8.0, "n_iter": 12}
# Model files; of default LASSO fits too.
MODELS = {
    "lasso": Case(DPLassoClassifier, SHORT | UNSEEDED, "labels"),
    "lasso-seeded": Case(DPLassoClassifier, SHORT | {"classes": ["no", "yes"]}, "labels"),
    "lasso-not-private": Case(DPLassoClassifier, SHORT | {"epsilon": inf}, "labels"),
    "lasso-classes": Case(DPLassoClassifier, SHORT | {"residual_bound": 0.5}, "four classes"),
    "lasso-default": Case(DPLassoClassifier, DRAWN, "labels"),
    "lasso-default-classes": Case(DPLassoClassifier, {"epsilon": 8.0}, "four classes"),
    "lasso-regression": Case(DPLasso, DRAWN | BOUNDS, "numbers"),
    "logistic": Case(DPLogisticRegression, {"epsilon": 2.0}, "labels"),
    "logistic-classes": Case(DPLogisticRegression, DESCENT | {"max_weights": 8}, "four classes"),
    "linear": Case(DPLinearRegression, DESCENT | {"row_norm": 2.0, **BOUNDS}, "numbers"),
    "table": Case(DPLogisticRegression, {"epsilon": 2.0}, "table"),
}
# Checkpoints of fits with a seed, which repeat themselves; the last has nothing left to do. Those
# of a LASSO with a radius go on in fits that count nothing (`as_then`).
REPEATED = {
    "lasso": Case(DPLassoClassifier, LASSO, "labels"),
    "complete": Case(DPLassoClassifier, LASSO, "labels"),
}
# And of fits without one, that were killed.
INTERRUPTED = {
    "lasso-unseeded": Case(DPLassoClassifier, LASSO | UNSEEDED, "labels"),
}
# Of fits that begin otherwise now: begun by version 0.2.0, they cannot be gone on with.
ENDED = {
    **REPEATED,
    **INTERRUPTED,
    "lasso-drawing": Case(DPLassoClassifier, DRAWN, "labels"),
    "lasso-refitting": Case(DPLassoClassifier, DRAWN, "labels"),
    "logistic": Case(DPLogisticRegression, DESCENT | {"n_iter": 30}, "labels"),
    "logistic-unseeded": Case(DPLogisticRegression, {"n_iter": 30}, "labels"),
    "short-list": Case(DPLogisticRegression, {"max_weights": 8}, "four classes"),
}
CHARGED = Case(
    DPLassoClassifier, SHORT | UNSEEDED | {"epsilon": 1.0, "dataset": "visits"}, "labels"
)


@contextmanager
def as_then() -> Iterator[None]:
    """Have a LASSO with a radius count nothing, and draw the constant as a column."""
    known = {
        "is_staged": lambda one: one.n_iter is None or one.l1_radius is None or bool(one.refit),
        "draws_constant": lambda one: one.fit_intercept and one.l1_radius is not None,
    }
    with patch.multiple(Lasso, **{name: property(one) for name, one in known.items()}):
        yield


def fit(case: Case) -> Any:
    """Fit, where it does not matter that the paper's mechanism leaks."""
    model, data = case.estimator(**case.options), make_data(case.data)
    besides = {} if data.weights is None else {"sample_weight": data.weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(data.X, data.y, groups=data.groups, **besides)


def kept_of(model: Any) -> dict[str, np.ndarray]:
    """Take what is compared, as flat arrays: the vertices (from 1, with their sign), the numbers.

    `numbers` are the places and values of the weights that are not 0, and the intercepts; a fit by
    gradient descent also tells the standard error. Without privacy the LASSO has a history.
    """
    coefficients = model.coef_
    if isinstance(coefficients, np.ndarray):
        numbers = [coefficients.ravel()]
    else:
        numbers = [coefficients.indptr, coefficients.indices, coefficients.data]
    numbers.append(np.atleast_1d(model.intercept_))
    kept = {}
    if hasattr(model, "transcript_"):
        transcript = model.transcript_
        kept["steps"] = ((transcript.vertex + 1) * transcript.sign).astype("<i4")
    else:
        # Without scales all weights have one.
        numbers.append(np.unique(model.coef_standard_error_))
    kept["numbers"] = np.concatenate(numbers, dtype="<f8")
    if hasattr(model, "history_"):
        kept["history"] = np.concatenate([model.history_.objective, model.history_.gap])
    return kept


def report_of(model: Any, data: Data) -> dict[str, np.ndarray]:
    """Return what a model leads to: the same, and what it says of rows."""
    report = kept_of(model)
    predicts = getattr(model, "decision_function", model.predict)
    report["margins"] = predicts(data.X).ravel()[:40]
    if hasattr(model, "predict_proba"):
        report["probabilities"] = model.predict_proba(data.X).ravel()[:40]
    return report
