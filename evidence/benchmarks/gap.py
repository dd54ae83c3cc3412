"""What the drift tolerance costs: objective, true gap and AUC, without and with privacy."""

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from dplasso import DPFrankWolfeClassifier
from evidence.datasets import Spec, describe, load_spec, sizes
from evidence.items import Settings, Table
from evidence.report import plain, seconds_text
from evidence.timing import time_fit
from evidence.true_gap import true_gap, true_gaps

TITLE = "Drift tolerance"
# Steps whose true gap is averaged.
_MARKS = 11
# Every fifth row is for testing.
_TEST_EVERY = 5


def mean_gap(X: Any, y: Any, model: DPFrankWolfeClassifier, radius: float) -> float:
    """Average the true gap over marks in the last fifth of a run: single ones jump up and down."""
    taken = model.transcript_
    marks = np.unique(np.linspace(0.8 * len(taken), len(taken), _MARKS).astype(int))
    # True gaps are those before a step; these are after it.
    return float(np.mean(true_gaps(X, y, taken, radius, marks + 1)))


def measure(spec: Spec, config: Any, settings: Settings) -> dict[str, Any]:
    """Run each tolerance on one data set."""
    data = load_spec(spec, settings.data, settings.n_jobs)
    test = np.arange(data.X.shape[0]) % _TEST_EVERY == 0
    X, y = data.X[~test], data.y[~test].astype(np.int64)
    X_test, y_test = data.X[test], data.y[test]
    default = DPFrankWolfeClassifier().drift_tol
    given = (None if value == "none" else value for value in config.tolerances)
    common = {"n_jobs": settings.n_jobs}
    tolerances = {_name(t, default): {"drift_tol": t, **common} for t in (default, *given)}
    plain = {
        "epsilon": np.inf,
        "l1_radius": config.radius,
        "n_iter": config.n_iter,
        "fit_intercept": False,
    }
    variants: dict[str, Any] = dict(tolerances)
    if config.algorithm_1:
        variants["algorithm-1"] = {"solver": "standard", "selector": "argmax", **common}
    runs = {}
    reference = None
    for name, parameters in variants.items():
        times, model = time_fit(X, y, np.inf, **plain, **parameters)
        assert model is not None
        weights = model.coef_.toarray().ravel()
        objective, last_gap = true_gap(X, y, weights, config.radius)
        runs[name] = {
            "objective": objective,
            "gap": mean_gap(X, y, model, config.radius),
            "gap_last": last_gap,
            "gap_reported": float(model.history_.gap[-1]),
            "auc": float(roc_auc_score(y_test, X_test @ weights)),
            "seconds": times.setup + times.loop,
        }
        if name == "0":
            reference = model.transcript_.vertex
        runs[name]["vertices"] = model.transcript_.vertex
    for run in runs.values():
        vertices = run.pop("vertices")
        run["same_choices"] = None
        if reference is not None:
            same = vertices == reference
            run["same_choices"] = int(same.size if same.all() else same.argmin())
    private = {
        f"{epsilon:g}": {
            name: [
                _private_auc(config, epsilon, seed, (X, y, X_test, y_test), **parameters)
                for seed in range(config.seeds)
            ]
            for name, parameters in tolerances.items()
        }
        for epsilon in config.epsilons
    }
    return {
        "data": describe(data),
        "radius": config.radius,
        "n_iter": config.n_iter,
        "private_iter": config.private_iter,
        "private_radius": config.private_radius,
        "runs": runs,
        "private": private,
    }


def _name(tolerance: float | str | None, default: float | str | None) -> str:
    name = "none" if tolerance is None else tolerance
    name = name if isinstance(name, str) else f"{name:g}"
    return f"{name} (default)" if tolerance == default else name


def _private_auc(config: Any, epsilon: float, seed: int, data: Any, **parameters: Any) -> float:
    """Return the test AUC of a fit."""
    X, y, X_test, y_test = data
    model = DPFrankWolfeClassifier(
        epsilon,
        config.delta,
        l1_radius=config.private_radius,
        n_iter=config.private_iter,
        fit_intercept=False,
        random_state=seed,
        **parameters,
    ).fit(X, y)
    return float(roc_auc_score(y_test, X_test @ model.coef_.toarray().ravel()))


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the results."""
    rows, private = [], []
    for case, found in results.items():
        for name, run in found["runs"].items():
            rows.append(
                [
                    case,
                    name,
                    f"{run['objective']:.8f}",
                    f"{run['gap']:.3e}",
                    f"{run['gap'] / found['runs']['algorithm-1']['gap']:.3f}"
                    if "algorithm-1" in found["runs"]
                    else "-",
                    f"{run['gap_last']:.3e}",
                    f"{run['gap_reported']:.3e}",
                    f"{run['auc']:.5f}",
                    "-" if run["same_choices"] is None else f"{run['same_choices']:,}",
                    seconds_text(run["seconds"]),
                ]
            )
        for epsilon, tolerances in found["private"].items():
            for name, scores in tolerances.items():
                spread = np.std(scores, ddof=1) if len(scores) > 1 else 0.0
                error = spread / np.sqrt(len(scores))
                mean = np.mean(scores)
                private.append(
                    [case, epsilon, name, f"{mean:.4f}", f"{error:.4f}", str(len(scores))]
                )
    shapes = [
        [
            case,
            found["data"]["source"],
            sizes(found["data"]),
            f"{found['radius']:g}, {found['n_iter']:,}",
            f"{found['private_radius']:g}, {found['private_iter']:,}",
        ]
        for case, found in results.items()
    ]
    return [
        "Trained on four rows of five; AUC is that of the fifth. Objective and gap are "
        "recomputed from the weights; the gap is the mean of 11 steps in the last fifth of the "
        "run, beside it that of the last step and what the run itself reported there. "
        "Tolerance 0 makes Algorithm 1's steps, `none` the paper's; `auto` is 0.0001 without "
        "privacy and 0.0025 with it.",
        Table(
            [
                "data set",
                "what",
                "rows x columns, non-zeros",
                "radius, steps",
                "private radius, steps",
            ],
            shapes,
        ),
        "Without privacy:",
        Table(
            [
                "data set",
                "tolerance",
                "objective",
                "true gap",
                "over Algorithm 1's",
                "last",
                "reported last",
                "test AUC",
                "first choices like 0's",
                "time",
            ],
            rows,
        ),
        "With privacy, mean over seeds (the same ones for every tolerance):",
        Table(["data set", "epsilon", "tolerance", "test AUC", "standard error", "seeds"], private),
    ]


def draw(results: dict[str, dict[str, Any]], figure: Any) -> None:
    """Draw the true gap by tolerance."""
    axis = figure.subplots()
    for case, found in results.items():
        names = list(found["runs"])
        axis.semilogy(names, [found["runs"][name]["gap"] for name in names], "o-", label=case)
    axis.set_xlabel("drift tolerance")
    axis.set_ylabel("true gap, mean of the last fifth")
    plain(axis, grid=True, legend={})
