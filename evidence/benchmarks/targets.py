"""Several classes and numbers, on columns of UCI Adult: joint fits, others' and one-versus-rest.

``python -m evidence.benchmarks.targets`` prints the tables of docs/multiclass.md and
docs/regression.md. Every figure is the mean over `SEEDS` seeds on the packaged test part; nothing
was tuned on it. `diffprivlib` is compared where it is installed; it gets what its authors ask for:
the bound on the rows' norm, and the ranges of columns and targets.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from dplasso import DPLasso, DPLassoClassifier, DPLinearRegression, DPLogisticRegression
from dplasso.datasets.adult import ATTRIBUTES, FEATURE_NAMES, load_adult
from dplasso.estimators.fitting import fit_estimator
from dplasso.training.train import Hooks

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


def macro_auc(y: NDArray[Any], probabilities: NDArray[np.float64]) -> float:
    """Return the mean over the classes of the area under the curve of each against all others."""
    present = [k for k in range(probabilities.shape[1]) if 0 < (y == k).sum() < y.size]
    return float(np.mean([roc_auc_score(y == k, probabilities[:, k]) for k in present]))


def classifiers(epsilon: float, n_classes: int) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Name what is compared on several classes, with what makes it from a seed."""
    every = range(n_classes)
    yield (
        "joint multinomial",
        lambda seed: DPLogisticRegression(epsilon, classes=every, random_state=seed),
    )
    yield (
        "one-versus-rest, budget divided",
        lambda seed: OneVsRestClassifier(
            DPLogisticRegression(epsilon / n_classes, 1e-6 / n_classes, random_state=seed)
        ),
    )
    yield (
        "joint multinomial LASSO",
        lambda seed: DPLassoClassifier(epsilon, classes=every, random_state=seed),
    )
    yield (
        "one-versus-rest LASSO, budget divided",
        lambda seed: OneVsRestClassifier(
            DPLassoClassifier(epsilon / n_classes, 1e-6 / n_classes, random_state=seed)
        ),
    )
    try:
        from diffprivlib.models import LogisticRegression as Theirs
    except ImportError:
        return
    yield (
        "diffprivlib LogisticRegression",
        lambda seed: Theirs(
            epsilon=epsilon, data_norm=math.sqrt(14.0), random_state=seed, max_iter=500
        ),
    )


def regressions(epsilon: float, attribute: str) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Name what is compared on numbers, with what makes it from a seed."""
    bounds = BOUNDS[attribute]
    yield (
        "DPLinearRegression",
        lambda seed: DPLinearRegression(epsilon, target_bounds=bounds, random_state=seed),
    )
    yield "DPLasso", lambda seed: DPLasso(epsilon, target_bounds=bounds, random_state=seed)
    try:
        from diffprivlib.models import LinearRegression as Theirs
    except ImportError:
        return
    yield (
        "diffprivlib LinearRegression",
        lambda seed: Theirs(
            epsilon=epsilon, bounds_X=(0.0, 1.0), bounds_y=bounds, random_state=seed
        ),
    )


def measure(makers: Any, split: Split, score: Callable[[Any], float]) -> list[tuple[str, float]]:
    """Return the mean score of each competitor."""
    X, y, _, _ = split
    found = []
    for name, make in makers:
        dense = name.startswith("diffprivlib")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits = [make(seed).fit(X.toarray() if dense else X, y) for seed in SEEDS]
            found.append((name, float(np.mean([score(fit) for fit in fits]))))
    return found


def speed(n_classes: int = 10) -> list[str]:
    """Time a step of K classes against one of two, on the crosses of no data set: random rows."""
    rng = np.random.default_rng(0)
    X = sp.random_array((16_000, 200_000), density=400 / 200_000, format="csr", rng=rng)
    lines = []
    for classes in (2, n_classes):
        y = rng.integers(0, classes, X.shape[0])
        DPLogisticRegression(n_iter=2).fit(X, y)
        took = []
        for steps in (5, 25):
            began = time.perf_counter()
            DPLogisticRegression(n_iter=steps).fit(X, y)
            took.append(time.perf_counter() - began)
        lines.append(f"| {classes} | {1000 * (took[1] - took[0]) / 20:.0f} |")
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
        model = DPLassoClassifier(30.0, n_iter=200, refit=None, random_state=0)
        for _ in range(2):
            seconds: dict[str, float] = {}
            fit_estimator(model, X, y, Hooks(seconds=seconds))
        touched = X.sum(axis=0)[model.transcript_.vertex % n_columns].mean()
        lines.append(f"| {classes} | {1000 * seconds['train'] / 200:.0f} | {touched:,.0f} |")
    return lines


def main() -> None:
    """Print all tables."""
    print("| target | epsilon | method | macro AUC |\n|---|---|---|---|")
    for attribute in ("occupation", "education"):
        split = without(attribute)
        n_classes = len(ATTRIBUTES[attribute])
        plain = LogisticRegression(C=10.0, max_iter=2000).fit(split[0], split[1])
        best = macro_auc(split[3], plain.predict_proba(split[2]))
        print(f"| {attribute} ({n_classes}) | - | no privacy | {best:.3f} |", flush=True)
        for epsilon in EPSILONS:

            def auc(fit: Any, split: Split = split) -> float:
                rows = (
                    split[2] if not type(fit).__module__.startswith("diff") else split[2].toarray()
                )
                return macro_auc(split[3], fit.predict_proba(rows))

            for name, value in measure(classifiers(epsilon, n_classes), split, auc):
                print(f"| {attribute} | {epsilon:g} | {name} | {value:.3f} |", flush=True)
        crossed = with_pairs(split)
        wanted = ("joint multinomial", "joint multinomial LASSO", "one-versus-rest LASSO")
        makers = [one for one in classifiers(1.0, n_classes) if one[0].startswith(wanted)]
        for name, value in measure(
            makers,
            crossed,
            lambda fit, crossed=crossed: macro_auc(crossed[3], fit.predict_proba(crossed[2])),
        ):
            print(
                f"| {attribute}, {crossed[0].shape[1]:,} pairs | 1 | {name} | {value:.3f} |",
                flush=True,
            )
    print("\n| target | epsilon | method | R^2 |\n|---|---|---|---|")
    for attribute, middles in MIDDLES.items():
        X, y, X_test, y_test = without(attribute)
        split = X, np.array(middles)[y], X_test, np.array(middles)[y_test]
        best = Ridge(1.0).fit(split[0], split[1]).score(X_test, split[3])
        print(f"| {attribute} | - | no privacy | {best:.3f} |", flush=True)
        for epsilon in EPSILONS:

            def r2(fit: Any, split: Split = split) -> float:
                rows = (
                    split[2] if not type(fit).__module__.startswith("diff") else split[2].toarray()
                )
                return float(fit.score(rows, split[3]))

            for name, value in measure(regressions(epsilon, attribute), split, r2):
                print(f"| {attribute} | {epsilon:g} | {name} | {value:.3f} |", flush=True)
    print("\n| classes | ms a step |\n|---|---|")
    print("\n".join(speed()))
    print("\n| classes | ms a step of Frank-Wolfe | rows it touches |\n|---|---|---|")
    print("\n".join(lasso_speed()))


if __name__ == "__main__":
    main()
