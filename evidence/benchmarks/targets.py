"""Several classes and numbers, on columns of UCI Adult: joint fits, others' and one-versus-rest.

``python -m evidence.benchmarks.targets`` prints the tables of docs/multiclass.md. Every figure is
the mean over `SEEDS` seeds on the packaged test part; nothing was tuned on it. `diffprivlib` is
compared where it is installed; it gets what its authors ask for: the bound on the rows' norm, and
the ranges of columns and targets.
"""

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
)
from dplasso.datasets import ATTRIBUTES, FEATURE_NAMES, load_adult
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.run import Hooks
from evidence.timing import StepClock

SEEDS = range(3)
EPSILONS = (0.3, 1.0, 3.0)
# Bands of numbers, by their middles; and the public intervals.
MIDDLES = {"age": (21.0, 29.0, 36.5, 45.0, 58.0), "hours-per-week": (25.0, 36.0, 40.0, 44.0, 52.0)}
BOUNDS = {"age": (17.0, 90.0), "hours-per-week": (1.0, 99.0)}
# What tells the same as another attribute.
TWINS = {"education": ("education-num",)}

Split = tuple[Any, NDArray[Any], Any, NDArray[Any]]


def without(attribute: str) -> Split:
    """Return train and test parts whose target is the number of an attribute's value.

    Records that do not tell it are left out; income, the label of Adult, becomes a column.
    """
    parts: list[Any] = []
    for part in ("train", "test"):
        data = load_adult(part)  # type: ignore[arg-type]
        hidden = (attribute, *TWINS.get(attribute, ()))
        kept = [not _belongs(name, hidden) for name in FEATURE_NAMES]
        own = [_belongs(name, (attribute,)) for name in FEATURE_NAMES]
        values = data.X[:, np.flatnonzero(own)].toarray()
        told = values.any(axis=1)
        income = sp.csr_array((data.y > 0).astype(np.float32)[:, np.newaxis])
        X = sp.csr_array(sp.hstack([data.X[:, np.flatnonzero(kept)], income]))
        parts += [X[told], values[told].argmax(axis=1)]
    return tuple(parts)  # type: ignore[return-value]


def with_pairs(split: Split) -> Split:
    """Return the same rows of values with all pairs of their values that occur."""
    X, y, X_test, y_test = split
    rows = sp.csr_array(sp.vstack([X, X_test]))
    held = [np.sort(part) for part in np.split(rows.indices, rows.indptr[1:-1])]
    keys = [
        np.concatenate(
            [part, (rows.shape[1] * (1 + part[:, None]) + part)[np.triu_indices(part.size, 1)]]
        )
        for part in held
    ]
    found, places = np.unique(np.concatenate(keys), return_inverse=True)
    ends = np.cumsum([0, *(part.size for part in keys)])
    ones = np.ones(places.size, dtype=np.float32)
    both = sp.csr_array((ones, places, ends), shape=(rows.shape[0], found.size))
    return both[: y.size], y, both[y.size :], y_test


def _belongs(name: str, attributes: tuple[str, ...]) -> bool:
    return any(
        name
        in {f"{one}{value}" if value[0] in "=> " else f"{one}={value}" for value in ATTRIBUTES[one]}
        for one in attributes
    )


def auc(fit: Any, split: Split) -> float:
    """Return the mean over the classes of the area under the curve of each against all others."""
    y, probabilities = split[3], fit.predict_proba(_rows(fit, split[2]))
    present = [k for k in range(probabilities.shape[1]) if 0 < (y == k).sum() < y.size]
    return float(np.mean([roc_auc_score(y == k, probabilities[:, k]) for k in present]))


def r2(fit: Any, split: Split) -> float:
    return float(fit.score(_rows(fit, split[2]), split[3]))


def _rows(model: Any, X: Any) -> Any:
    """Return rows as a model takes them: diffprivlib's are dense."""
    return X.toarray() if type(model).__module__.startswith("diffprivlib") else X


def _theirs(name: str) -> Any:
    """Return a class of diffprivlib, or None where it is not installed."""
    with contextlib.suppress(ImportError):
        return getattr(import_module("diffprivlib.models"), name)
    return None


def classifiers(epsilon: float, n_classes: int) -> dict[str, Callable[[int], Any]]:
    """Name what is compared on several classes, with what makes it from a seed."""
    joint = {"epsilon": epsilon, "classes": range(n_classes)}
    divided = {"epsilon": epsilon / n_classes, "delta": 1e-6 / n_classes}
    logistic, lasso = DPLogisticRegression, DPLassoClassifier
    makers: dict[str, Callable[[int], Any]] = {
        "joint multinomial": lambda seed: logistic(**joint, random_state=seed),
        "one-versus-rest, budget divided": lambda seed: OneVsRestClassifier(
            logistic(**divided, random_state=seed)
        ),
        "joint multinomial LASSO": lambda seed: lasso(**joint, random_state=seed),
        "one-versus-rest LASSO, budget divided": lambda seed: OneVsRestClassifier(
            lasso(**divided, random_state=seed)
        ),
    }
    if theirs := _theirs("LogisticRegression"):
        norm = math.sqrt(14.0)
        makers["diffprivlib LogisticRegression"] = lambda seed: theirs(
            epsilon=epsilon, data_norm=norm, random_state=seed, max_iter=500
        )
    return makers


def regressions(epsilon: float, attribute: str) -> dict[str, Callable[[int], Any]]:
    """Name what is compared on numbers, with what makes it from a seed."""
    bounds = BOUNDS[attribute]
    given = {"epsilon": epsilon, "target_bounds": bounds}
    makers: dict[str, Callable[[int], Any]] = {
        "DPLinearRegression": lambda seed: DPLinearRegression(**given, random_state=seed),
        "DPLasso": lambda seed: DPLasso(**given, random_state=seed),
    }
    if theirs := _theirs("LinearRegression"):
        makers["diffprivlib LinearRegression"] = lambda seed: theirs(
            epsilon=epsilon, bounds_X=(0.0, 1.0), bounds_y=bounds, random_state=seed
        )
    return makers


def compare(
    about: str,
    makers: Mapping[str, Callable[[int], Any]],
    split: Split,
    score: Callable[[Any, Split], float],
) -> None:
    """Print the mean score of each competitor."""
    for name, make in makers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = [make(seed) for seed in SEEDS]
            fits = [model.fit(_rows(model, split[0]), split[1]) for model in models]
            found = float(np.mean([score(fit, split) for fit in fits]))
        print(f"| {about} | {name} | {found:.3f} |", flush=True)


def speed(n_classes: int = 10) -> list[str]:
    """Time a step of K classes against one of two, on the crosses of no data set: random rows."""
    rng = np.random.default_rng(0)
    X = sp.random_array((16_000, 200_000), density=400 / 200_000, format="csr", rng=rng)
    lines = []
    for classes in (2, n_classes):
        y = rng.integers(0, classes, X.shape[0])
        for _ in range(2):
            steps = StepClock(math.inf)
            model = fit_estimator(DPLogisticRegression(), X, y, Hooks(progress=steps))
        found = steps.result(model.n_iter_)
        lines.append(f"| {classes} | {1000 * found.loop / found.n_steps:.0f} |")
    return lines


def lasso_speed(n_classes: int = 10) -> list[str]:
    """Time a step of Frank-Wolfe of K classes against one of two, on News20's shape.

    Columns are as frequent as words are; the classes follow from 3,000 frequent ones, so that the
    columns drawn are frequent too.
    """
    rng = np.random.default_rng(0)
    n_rows, n_columns, drawn = 15_962, 1_350_639, 620
    frequency = np.cumsum(1.0 / np.arange(1, n_columns + 1))
    words = np.searchsorted(frequency / frequency[-1], rng.random(n_rows * drawn))
    pointers = np.arange(0, words.size + 1, drawn)
    counts = sp.csr_array((np.ones(words.size, np.float32), words, pointers), (n_rows, n_columns))
    X = (counts[:, rng.permutation(n_columns)] > 0).astype(np.float32)
    telling = X[:, np.argsort(-X.sum(axis=0))[5:3005]]
    lines = []
    for classes in (2, n_classes):
        margins = telling @ rng.normal(size=(3000, classes))
        margins = (margins - margins.mean(axis=0)) / margins.std(axis=0)
        y = (margins + 0.3 * rng.gumbel(size=margins.shape)).argmax(axis=1)
        own = {"classes": range(classes), "n_iter": 200, "l1_radius": 50.0}
        model = DPFrankWolfeClassifier(30.0, **own, random_state=0)
        for _ in range(2):
            steps = StepClock(math.inf)
            fit_estimator(model, X, y, Hooks(progress=steps))
        each = steps.result(model.n_iter).loop / model.n_iter
        touched = X.sum(axis=0)[model.transcript_.vertex % n_columns].mean()
        lines.append(f"| {classes} | {1000 * each:.0f} | {touched:,.0f} |")
    return lines


def main() -> None:
    """Print all tables."""
    print("| target | epsilon | method | macro AUC |\n|---|---|---|---|")
    for attribute in ("occupation", "education"):
        split, n_classes = without(attribute), len(ATTRIBUTES[attribute])
        plain = {"no privacy": lambda _: LogisticRegression(C=10.0, max_iter=2000)}
        compare(f"{attribute} ({n_classes}) | -", plain, split, auc)
        for epsilon in EPSILONS:
            compare(f"{attribute} | {epsilon:g}", classifiers(epsilon, n_classes), split, auc)
        crossed = with_pairs(split)
        wanted = ("joint multinomial", "joint multinomial LASSO", "one-versus-rest LASSO")
        makers = {
            name: make
            for name, make in classifiers(1.0, n_classes).items()
            if name.startswith(wanted)
        }
        compare(f"{attribute}, {crossed[0].shape[1]:,} pairs | 1", makers, crossed, auc)
    print("\n| target | epsilon | method | R^2 |\n|---|---|---|---|")
    for attribute, middles in MIDDLES.items():
        X, y, X_test, y_test = without(attribute)
        split = X, np.array(middles)[y], X_test, np.array(middles)[y_test]
        compare(f"{attribute} | -", {"no privacy": lambda _: Ridge(1.0)}, split, r2)
        for epsilon in EPSILONS:
            compare(f"{attribute} | {epsilon:g}", regressions(epsilon, attribute), split, r2)
    print("\n| classes | ms a step |\n|---|---|")
    print("\n".join(speed()))
    print("\n| classes | ms a step of Frank-Wolfe | rows it touches |\n|---|---|---|")
    print("\n".join(lasso_speed()))


if __name__ == "__main__":
    main()
