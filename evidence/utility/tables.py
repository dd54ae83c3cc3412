"""Tables: drafts on several resolutions, without and with pairs of columns, and boosted trees.

``python -m evidence.utility.tables trees FOLDER`` fits tables as they come: UCI Adult, from
adult_raw_train.csv.gz and adult_raw_test.csv.gz in FOLDER, and two surveys that statsmodels ships,
the RAND health insurance experiment and Fair's on affairs. It fits our draft with public ranges,
without and with all pairs of columns, and scikit-learn's boosted trees without privacy. Where they
are installed, it fits interpret-core's DP-EBM with the same ranges, and diffprivlib on our encoded
rows. ``pairs`` compares fits without and with pairs on records that a formula draws, with
interactions and without. Both print rows of a table.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dplasso import DPLogisticRegression, PublicEncoder
from dplasso.encoding.origin import Origin, with_origin
from evidence.machine import installed
from evidence.utility.competitors import diffprivlib, with_constant

EPSILONS, DRAWS, DELTA = (0.1, 0.3, 1.0, 3.0), 5, 1e-6
PAIRS = {"kind": "pairs"}
# Ranges of numbers that need no look at the records.
PUBLIC = {
    "lncoins": (0, 5),
    "lpi": (0, 10),
    "fmde": (0, 10),
    "disea": (0, 60),
    "yrs_married": (0, 40),
    "children": (0, 10),
    "age": (0, 100),
    "fnlwgt": (0, 2_000_000),
    "education-num": (0, 16),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 10_000),
    "hours-per-week": (0, 100),
}
Labelled = tuple[pd.DataFrame, NDArray[np.int64]]


def adult(folder: Path, part: str) -> Labelled:
    """Return UCI Adult's columns and labels as they come."""
    table = pd.read_csv(folder / f"adult_raw_{part}.csv.gz", skipinitialspace=True)
    y = table.pop("income").str.contains(">50K").to_numpy().astype(np.int64)
    return table, y


def surveys() -> Iterator[tuple[str, Labelled]]:
    """Yield surveys of statsmodels, with whether the first column is above 0 as the label."""
    from statsmodels.datasets import fair, randhie

    rand = randhie.load_pandas().data
    yield "RAND: any visit to a doctor in the year", (rand, _positive(rand, "mdvis"))
    affairs = fair.load_pandas().data
    yield "Fair: any affair", (affairs, _positive(affairs, "affairs"))


def _positive(table: pd.DataFrame, column: str) -> NDArray[np.int64]:
    return (table.pop(column) > 0).to_numpy().astype(np.int64)


def drawn(n_rows: int, *, interact: bool) -> Labelled:
    """Draw 12 numbers, 4 columns of words, and labels with or without interactions."""
    rng = np.random.default_rng(int(not interact))
    Z, C = rng.normal(size=(n_rows, 12)), rng.integers(0, 6, (n_rows, 4))
    margin = 0.6 * Z[:, 0] + 0.5 * np.sin(2 * Z[:, 1]) + 0.4 * (Z[:, 2] > 1) - 0.3
    margin += 0.5 * (C[:, 0] == 2) - 0.4 * (C[:, 1] > 3)
    if interact:
        margin += 1.2 * (Z[:, 3] > 0) * (Z[:, 4] > 0) + 0.6 * Z[:, 6] * Z[:, 7]
        margin -= 0.8 * (Z[:, 5] > 0) * (C[:, 2] < 3)
    else:
        margin += 0.4 * Z[:, 3] ** 2 - 0.5 * np.abs(Z[:, 5])
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-margin))).astype(np.int64)
    words = {f"c{j}": [f"v{code}" for code in C[:, j]] for j in range(4)}
    return pd.DataFrame({f"z{j}": Z[:, j] for j in range(12)} | words), y


def parts_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the parts of a draft; numbers get public ranges."""
    found = PublicEncoder.suggest(table).to_json()["parts"]
    for part in found:
        part.pop("confirm", None)
        if part["kind"] == "levels" and part["column"] in PUBLIC:
            part["low"], part["high"] = PUBLIC[part["column"]]
    return found


def mean_auc(schema: Any, X: Any, y: NDArray[Any], split: Any, epsilon: float) -> float:
    """Fit some rows, score others, and return the mean of the draws."""
    train, test, found = *split, []
    for draw in range(DRAWS):
        model = DPLogisticRegression(epsilon, DELTA, classes=[0, 1], random_state=draw)
        model.fit(with_origin(X[train], Origin(schema)), y[train])
        found.append(float(roc_auc_score(y[test], model.decision_function(X[test]))))
    return mean(found)


def pairs(n_rows: int, *, interact: bool) -> Iterator[list[str]]:
    """Yield for each epsilon the AUC without and with pairs on drawn records."""
    table, y = drawn(n_rows, interact=interact)
    split = np.split(np.arange(n_rows), [int(0.8 * n_rows)])
    parts = parts_of(table.iloc[split[0]])
    encoders = [PublicEncoder({"parts": some}) for some in (parts, [*parts, PAIRS])]
    fits = [(encoder.schema_, encoder.transform(table)) for encoder in encoders]
    for epsilon in EPSILONS:
        found = [mean_auc(schema, X, y, split, epsilon) for schema, X in fits]
        yield [f"{n_rows:,}", str(interact), f"{epsilon:g}", *(f"{auc:.4f}" for auc in found)]


def trees(folder: Path) -> Iterator[list[str]]:
    """Yield test AUCs of our draft and of DP-EBM, and of boosted trees without privacy."""
    (train, y), (test, y_test) = adult(folder, "train"), adult(folder, "test")
    whole = pd.concat([train, test], ignore_index=True), np.concatenate([y, y_test])
    yield from compared("UCI Adult", whole, len(y))
    for name, (table, labels) in surveys():
        order = np.random.default_rng(5).permutation(len(labels))
        shuffled = table.iloc[order].reset_index(drop=True), labels[order]
        yield from compared(name, shuffled, int(0.75 * len(labels)))


def compared(name: str, whole: Labelled, n_train: int) -> Iterator[list[str]]:
    """Yield the test AUCs of one table; the first rows are for training."""
    table, y = whole
    parts = parts_of(table[:n_train])
    split = np.split(np.arange(len(y)), [n_train])
    for method, some in (("DPLogisticRegression", parts), ("with pairs", [*parts, PAIRS])):
        encoder = PublicEncoder({"parts": some})
        X = encoder.transform(table)
        for epsilon in EPSILONS:
            auc = mean_auc(encoder.schema_, X, y, split, epsilon)
            yield [name, method, f"{epsilon:g}", f"{auc:.4f}"]
    if installed("interpret-core"):
        for epsilon in EPSILONS:
            auc = mean(dp_ebm_aucs(table, y, n_train, parts, epsilon))
            yield [name, "DP-EBM", f"{epsilon:g}", f"{auc:.4f}"]
    if installed("diffprivlib"):
        for epsilon in EPSILONS:
            auc = mean(diffprivlib_aucs(X, y, split, epsilon))
            yield [name, "diffprivlib", f"{epsilon:g}", f"{auc:.4f}"]
    words = {one: "category" for one in table if not pd.api.types.is_numeric_dtype(table[one])}
    rows = table.astype(words)
    boosted = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    boosted.fit(rows[:n_train], y[:n_train])
    auc = float(roc_auc_score(y[n_train:], boosted.predict_proba(rows[n_train:])[:, 1]))
    yield [name, "boosted trees, no privacy", "-", f"{auc:.4f}"]


def dp_ebm_aucs(
    table: pd.DataFrame, y: NDArray[Any], n_train: int, parts: Any, epsilon: float
) -> Iterator[float]:
    """Yield the test AUC of each draw of DP-EBM at its defaults, with our types and ranges."""
    from interpret.privacy import DPExplainableBoostingClassifier

    ranges = {part["column"]: (part["low"], part["high"]) for part in parts if "low" in part}
    bounds = {place: ranges[name] for place, name in enumerate(table) if name in ranges}
    types = ["continuous" if name in ranges else "nominal" for name in table]
    rows = table.astype({name: str for name in table if name not in ranges}).to_numpy(object)
    for draw in range(DRAWS):
        model = DPExplainableBoostingClassifier(
            epsilon=epsilon,
            delta=DELTA,
            feature_types=types,
            privacy_bounds=bounds,
            random_state=draw,
            n_jobs=1,
        ).fit(rows[:n_train], y[:n_train])
        yield float(roc_auc_score(y[n_train:], model.predict_proba(rows[n_train:])[:, 1]))


def diffprivlib_aucs(X: Any, y: NDArray[Any], split: Any, epsilon: float) -> Iterator[float]:
    """Yield the test AUC of each draw of diffprivlib's logistic regression on our encoded rows."""
    train, test = split
    rows = with_constant(X[test], unit=True)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        weights = diffprivlib(X[train], y[train], epsilon, DELTA, rng, lambda _: None)
        yield float(roc_auc_score(y[test], rows @ weights))


def main(arguments: list[str]) -> None:
    """Print the rows of one of the two tables."""
    kind, *folders = arguments
    if kind == "trees":
        found = [trees(Path(folders[0]))]
    else:
        sizes = ((31_250, True), (31_250, False), (125_000, True), (125_000, False))
        found = [pairs(size, interact=interact) for size, interact in sizes]
    for rows in found:
        for row in rows:
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(sys.argv[1:])
