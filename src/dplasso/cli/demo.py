"""``dplasso demo``: train with and without privacy on real data, and compare."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dplasso import DPLassoClassifier, DPLogisticRegression, privacy_cost
from dplasso.cli import output
from dplasso.cli.scoring import score
from dplasso.cli.training import train_with_bar
from dplasso.data.formats import Dataset
from dplasso.datasets import cross_name, crosses, load_adult
from dplasso.estimators.base import PrivateLinearModel
from dplasso.files.disk import check_writable
from dplasso.model.weights import beyond_by_chance, weights_of

DELTA = 1e-6
HEAVIEST = 5
METHODS = {"lasso": "LASSO", "logistic": "logistic"}
# L2 penalties for the model without privacy; a fifth of the training rows chooses one.
INVERSE_PENALTIES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
HELD_OUT = 5
FILES = {method: f"{method}.npz" for method in METHODS}


@dataclass(frozen=True)
class Trained:
    """A model, its numbers and largest weights; the seconds to train exclude compiling."""

    name: str
    model: PrivateLinearModel | LogisticRegression
    numbers: dict[str, float]
    heaviest: list[dict[str, Any]] = field(default_factory=list)


def demo(
    out: Path = Path("dplasso-demo"),
    epsilon: float = 1.0,
    random_state: int | None = None,
    explain: bool = False,
) -> output.Result:
    """Train on UCI Adult with and without privacy, and compare the models.

    Output
    ------
    out : DIR
        Folder for the models.

    Examples
    --------
    dplasso demo
    dplasso demo --epsilon 0.1 --out tighter

    The data is UCI Adult (Becker and Kohavi, 1996; CC BY 4.0), 32,560 people to train on and 16,281
    to test on. It is packaged, so nothing is downloaded. The model without privacy is
    scikit-learn's logistic regression. Its L2 penalty is tuned on a fifth of the training rows.
    """
    for method in METHODS:
        privacy_cost(epsilon, DELTA, method=method)
    out.mkdir(parents=True, exist_ok=True)
    for name in FILES.values():
        check_writable(out / name)
    started = time.perf_counter()
    settings: dict[str, Any] = {"classes": (-1, 1), "n_jobs": -1, "random_state": random_state}
    models: dict[str, PrivateLinearModel] = {
        "lasso": DPLassoClassifier(epsilon, DELTA, **settings),
        "logistic": DPLogisticRegression(epsilon, DELTA, **settings),
    }
    with output.progress_bars() as bars:
        with bars.task("crossing columns"):
            parts = load_adult("train"), load_adult("test")
            train, test = (replace(part, X=crosses(part.X)) for part in parts)
        results = {key: _train(key, model, train, test, bars) for key, model in models.items()}
        results["plain"] = _train_plain(train, test, bars)
    files = {method: out / name for method, name in FILES.items()}
    with output.uninterrupted():
        for method, path in files.items():
            results[method].model.save(path)
    seconds = {"seconds": time.perf_counter() - started, "compile_seconds": bars.compiled.seconds}
    report = _report(results, train, test) | seconds | {"files": files}
    return output.Result(report, partial(_print, report, results, explain=explain))


def _train(
    key: str, model: PrivateLinearModel, train: Dataset, test: Dataset, bars: output.Bars
) -> Trained:
    name = f"{METHODS[key]}, epsilon {model.epsilon:g}"
    seconds = train_with_bar(model, train.X, train.y, bars, f"training: {name}")
    scores = score(model, test.X, test.y, test.source)
    heaviest = [
        row | {"name": cross_name(row["column"])} for row in model.top_features(HEAVIEST).rows()
    ]
    numbers = {key: scores[key] for key in ("auc", "accuracy")}
    numbers |= {"n_nonzero": len(weights_of(model.model_))}
    numbers |= {"seconds": seconds["train"] - seconds["compile"]}
    return Trained(name, model, numbers, heaviest)


def _train_plain(train: Dataset, test: Dataset, bars: output.Bars) -> Trained:
    """Train without privacy; held-out rows choose the penalty by AUC."""
    name, started = "best logistic, no privacy", time.perf_counter()
    held = np.arange(train.y.size) % HELD_OUT == 0
    X, y = train.X[~held], train.y[~held]
    # Each fit starts from the previous one.
    model = LogisticRegression(warm_start=True, max_iter=200, tol=1e-3)

    def area(model: LogisticRegression, X: Any, y: Any) -> float:
        return float(roc_auc_score(y, model.decision_function(X)))

    with bars.task(f"training: {name}") as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        areas = []
        for C in INVERSE_PENALTIES:
            areas.append(area(model.set_params(C=C).fit(X, y), train.X[held], train.y[held]))
            progress(len(areas), len(INVERSE_PENALTIES) + 1)
        best = INVERSE_PENALTIES[int(np.argmax(areas))]
        model.set_params(C=best).fit(train.X, train.y)
    numbers = {"seconds": time.perf_counter() - started, "auc": area(model, test.X, test.y)}
    numbers |= {"accuracy": model.score(test.X, test.y)}
    return Trained(name, model, numbers | {"n_nonzero": int(np.count_nonzero(model.coef_))})


def _report(results: Mapping[str, Trained], train: Dataset, test: Dataset) -> dict[str, Any]:
    positive = float(np.mean(test.y > 0))
    return {
        "n_samples": train.X.shape[0],
        "n_test": test.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        **{key: trained.numbers for key, trained in results.items()},
        "majority_accuracy": max(positive, 1.0 - positive),
        "heaviest": {key: results[key].heaviest for key in METHODS},
        "privacy": {key: results[key].model.privacy_.to_dict() for key in METHODS},
    }


def _print(report: Mapping[str, Any], results: Mapping[str, Trained], *, explain: bool) -> None:
    columns = report["n_features"]
    output.text(
        f"UCI Adult: is a person's income above 50,000 dollars? {report['n_samples']:,} people to "
        f"train on, {report['n_test']:,} to test on, {columns:,} columns: all crosses "
        "of up to three attributes.\n"
    )
    quantities = {
        "AUC": ("auc", ".3f", "0.500"),
        "accuracy": ("accuracy", ".3f", f"{report['majority_accuracy']:.3f}"),
        "non-zero weights": ("n_nonzero", ",", "0"),
        "seconds to train": ("seconds", ".1f", ""),
    }
    rows = [
        [name, *(format(report[model][key], form) for model in results), majority]
        for name, (key, form, majority) in quantities.items()
    ]
    names = [">" + trained.name.replace(", ", "\n") for trained in results.values()]
    output.table(["", *names, ">majority\nclass"], rows, title="On the test rows")
    for key, weights in report["heaviest"].items():
        output.weights(weights, f"{METHODS[key]}: the largest weights")
    chance = f"noise alone puts about {beyond_by_chance(columns):,} beyond a z of 3."
    output.text(f"Of {columns:,} columns, {chance}\n", "dim")
    output.text(
        "logistic: the most accurate private model, with a standard error for every weight."
    )
    output.text("LASSO: a model with few weights.")
    output.text(
        "best logistic: trained by scikit-learn without privacy. "
        "Its L2 penalty was tuned on a fifth of the training rows.\n"
    )
    output.promise(results["logistic"].model.privacy_, explain=explain)
    seconds, compiling = report["seconds"], report["compile_seconds"]
    note = f" ({compiling:.0f} of it compiling, once on this machine)" if compiling > 1 else ""
    files = ", ".join(map(str, report["files"].values()))
    output.text(f"\nDone in {seconds:.0f} s{note}. Written: {files}")
