"""The fits whose results are kept: every way to train, on data that need no file.

Data come from the raw words of a bit generator, whose stream numpy promises never to change, and
from whole multiples of 1/64, which every summation adds up exactly.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso import DPLassoClassifier, PrivacyLeakWarning
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import make_statement

SMALL = {"n_iter": 50, "l1_radius": 7.5, "feature_bound": 1.25, "random_state": 20240}
SELECTORS = {
    "exponential": ("bucket", "noisy-max", "big-little"),
    "paper": ("bucket", "noisy-max", "big-little"),
    "none": ("bucket", "noisy-max", "argmax", "heap"),
}
NEIGHBORS = ("add-remove", "replace-one")
SOLVERS = ("sparse", "standard")
TOLERANCES = ("auto", 0.0, None, 0.01)
LAYOUTS = ("csr", "binary", "csc", "dense", "store")
# Each pair of selector and solver costs the compiler seconds, on a store once more. Every selector
# runs Algorithm 2 on one layout; the one that serves every mechanism runs the rest.
BUCKET = tuple(("bucket", solver) for solver in SOLVERS)


@dataclass(frozen=True)
class Data:
    """Rows and their labels."""

    X: Any
    y: Any


@dataclass(frozen=True)
class Fitted:
    """What is kept of a fit, as flat arrays whose bits are compared."""

    steps: np.ndarray
    weights: np.ndarray
    history: np.ndarray


def make_data(seed: int, n_rows: int, n_columns: int, per_row: int) -> Data:
    """Make rows of at most `per_row` entries, most of them in the first columns."""
    words = np.random.PCG64(seed).random_raw((4, n_rows * per_row))
    columns = (words[0] % n_columns) * (words[1] % n_columns) // n_columns
    values = (2.0 * (words[2] % 128) - 127.0) / 64.0
    rows = np.repeat(np.arange(n_rows), per_row)
    X = sp.coo_array(
        (values.astype(np.float32), (rows, columns.astype(np.int32))), shape=(n_rows, n_columns)
    ).tocsr()
    X.eliminate_zeros()
    noise = (words[3, :n_rows] % 256 - 128.0) / 64.0
    return Data(X, np.where(X @ (np.arange(n_columns) % 3 - 1.0) + noise > 0, 1, -1))


def narrow(data: Data) -> Data:
    """Index with 32 bits, the types that most layouts share: the bits of a fit do not change."""
    X = data.X.copy()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return Data(X, data.y)


def binary(data: Data) -> Data:
    """Put 1 in the place of every value."""
    X = data.X.copy()
    X.data[:] = 1.0
    return Data(X, data.y)


def small() -> Data:
    """Make the data of most fits."""
    return make_data(1, 120, 40, 8)


def layout(name: str, open_small_store: Callable[[], Any]) -> Data:
    """Lay the small data out in one of the ways `fit` takes."""
    data = narrow(small())
    match name:
        case "csr":
            return data
        case "binary":
            return binary(data)
        case "csc":
            return Data(data.X.tocsc(), data.y)
        case "dense":
            return Data(data.X.toarray(), data.y)
    return Data(open_small_store(), None)


def mechanism_options(mechanism: str) -> dict[str, Any]:
    """Return the parameters that choose a mechanism; "none" is a fit without privacy."""
    if mechanism == "none":
        return {"epsilon": inf}
    return {"epsilon": 20.0, "mechanism": mechanism}


def small_cases(mechanism: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and parameters of every fit on a layout of the small data."""
    pairs = BUCKET[:1] if name == "store" else BUCKET
    if name == "csr":
        pairs += tuple((selector, "sparse") for selector in SELECTORS[mechanism][1:])
    for (selector, solver), neighbors, tolerance, intercept in product(
        pairs, NEIGHBORS, TOLERANCES, (True, False)
    ):
        name = f"{selector} {solver} {neighbors} drift_tol={tolerance} intercept={intercept}"
        yield (
            name,
            SMALL
            | mechanism_options(mechanism)
            | {
                "selector": selector,
                "solver": solver,
                "neighbors": neighbors,
                "drift_tol": tolerance,
                "fit_intercept": intercept,
            },
        )


# More columns than the solver leaves in the order given, and steps enough for renumbering to pay.
WIDE = {"n_iter": 200, "l1_radius": 7.5, "feature_bound": 1.25, "random_state": 20241}
WIDE_CASES = {
    "private": {"epsilon": 500.0},
    "private, without intercept": {"epsilon": 500.0, "fit_intercept": False, "drift_tol": None},
    "private, big-little": {"epsilon": 500.0, "selector": "big-little"},
    "paper": {"epsilon": 4e3, "mechanism": "paper"},
    "exact": {"epsilon": inf, "drift_tol": 0.0},
    "noisy-max": {"epsilon": inf, "selector": "noisy-max"},
}
# A step along the intercept looks at rows of more than 2^20 entries: it is taken by all threads.
LARGE = {"n_iter": 50, "l1_radius": 1.0, "random_state": 20242}
LARGE_CASES = {
    "private": {"epsilon": 0.2},
    "private, exact": {"epsilon": 0.2, "drift_tol": 0.0},
    "private, tolerant": {"epsilon": 0.2, "drift_tol": 0.02, "n_jobs": 2},
    "private, stale": {"epsilon": 0.2, "drift_tol": None},
    "paper": {"epsilon": 0.5, "mechanism": "paper", "drift_tol": 0.01},
    "not private": {"epsilon": inf, "n_jobs": 2},
    "tolerant": {"epsilon": inf, "drift_tol": 0.05},
    "exact": {"epsilon": inf, "drift_tol": 0.0, "selector": "heap"},
}


def wide() -> Data:
    """Make 140,000 columns."""
    return narrow(make_data(2, 50, 140_000, 10_000))


def large() -> Data:
    """Make rows of 1.1 million entries."""
    return binary(narrow(make_data(3, 20_000, 300, 70)))


def fit(options: dict[str, Any], data: Data) -> DPLassoClassifier:
    """Fit, where it does not matter that the paper's mechanism leaks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return DPLassoClassifier(**{"residual_bound": 1.0, "l1_radius": 10.0, **options}).fit(
            data.X, data.y
        )


def kept_of(model: DPLassoClassifier) -> Fitted:
    """Take what is compared: signed coordinates (from 1), the model's weights, the history."""
    transcript, coefficients = model.transcript_, model.coef_
    room = np.zeros(len(transcript) - coefficients.nnz)
    history = np.zeros(0)
    if hasattr(model, "history_"):
        history = np.concatenate([model.history_.objective, model.history_.gap])
    return Fitted(
        ((transcript.vertex + 1) * transcript.sign).astype("<i4"),
        np.concatenate(
            [coefficients.indices, room, coefficients.data, room, model.intercept_], dtype="<f8"
        ),
        history,
    )


def groups(open_small_store: Callable[[], Any]) -> dict[str, Callable[[], dict[str, Fitted]]]:
    """Return functions by name; each makes some of the fits and returns what is kept of them."""

    def on_small(mechanism: str, name: str) -> dict[str, Fitted]:
        data = layout(name, open_small_store)
        cases = small_cases(mechanism, name)
        return {case: kept_of(fit(options, data)) for case, options in cases}

    def on(data: Data, common: dict[str, Any], cases: dict[str, Any]) -> dict[str, Fitted]:
        return {case: kept_of(fit(common | options, data)) for case, options in cases.items()}

    made: dict[str, Callable[[], dict[str, Fitted]]] = {
        f"{mechanism} {name}": lambda mechanism=mechanism, name=name: on_small(mechanism, name)
        for mechanism, name in product(SELECTORS, LAYOUTS)
    }
    made["wide"] = lambda: on(wide(), WIDE, WIDE_CASES)
    made["large"] = lambda: on(large(), LARGE, LARGE_CASES)
    return made


# Entries of a statement of version 0.1.0, but for its accountant, which names the version of
# dp-accounting.
NUMBERS = (
    "is_private",
    "epsilon",
    "epsilon_requested",
    "delta",
    "neighbors",
    "mechanism",
    "steps",
    "eps0",
    "sensitivity",
    "feature_bound",
    "draw_error",
    "randomness",
    "classes",
    "reasons",
)


def statements() -> dict[str, dict[str, Any]]:
    """Return privacy statements as JSON holds them, without the accountant's version."""
    data, found = narrow(small()), {}
    for mechanism, neighbors, seed, classes in product(
        SELECTORS, NEIGHBORS, (None, 3), (None, [-1, 1])
    ):
        options = mechanism_options(mechanism) | {"random_state": seed, "classes": classes}
        model = fit(SMALL | options | {"neighbors": neighbors}, data)
        found[f"{mechanism} {neighbors} seed={seed} classes={classes}"] = model.privacy_
    for epsilon, delta, n_iter in product((0.1, 1.0, 8.0, 200.0), (1e-6, 1e-8), (1, 100, 4000)):
        for neighbors in NEIGHBORS:
            cost = make_statement(
                build_mechanism(
                    epsilon=epsilon,
                    delta=delta,
                    n_iter=n_iter,
                    neighbors=neighbors,
                    feature_bound=0.5,
                    plain_sum=False,
                ),
                seeded=False,
                classes_declared=True,
            )
            found[f"{epsilon} {delta} {n_iter} {neighbors}"] = cost
    return {name: numbers_of(statement) for name, statement in found.items()}


def numbers_of(statement: Any) -> dict[str, Any]:
    """Return the entries that version 0.1.0 had, by its names."""
    values: dict[str, Any] = statement.to_dict()
    values["draw_error"] = values.pop("sampling_delta")  # its name since 0.2
    return {name: value for name, value in values.items() if name in NUMBERS}
