"""``dplasso demo``: train with and without privacy on real data, and compare."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from dplasso.errors import missing
from dplasso.estimators.base import PrivateLinearModel
from dplasso.model.weights import beyond_by_chance, weights_of
from dplasso.report.bars import BLUE, GREY, ORANGE, draw_bars, png_of, tidy
from dplasso.report.displays import weight_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (ORANGE, BLUE, GREY)
# The AUC of guessing, where the bars begin.
GUESSING = 0.5
DELTA = 1e-6
HEAVIEST_PRINTED, HEAVIEST_DRAWN = 5, 15
METHODS = {"lasso": "LASSO", "logistic": "logistic"}
# L2 penalties for the model without privacy; a fifth of the training rows chooses one.
INVERSE_PENALTIES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
HELD_OUT = 5
FILES = {
    **{method: f"{method}.npz" for method in METHODS},
    **{f"{method}_statement": f"{method}.json" for method in METHODS},
    "picture": "demo.png",
}


@dataclass(frozen=True)
class Trained:
    """A model, its test scores, its weights to be shown; the seconds are without the compiler's."""

    name: str
    model: PrivateLinearModel | LogisticRegression
    scores: dict[str, Any]
    n_nonzero: int
    seconds: float
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
        Folder for the models, statements and the picture.

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
    undrawn = missing("matplotlib", "The picture")
    output.check_directory(out, FILES.values())
    started = time.perf_counter()
    given: dict[str, Any] = {"classes": (-1, 1), "n_jobs": -1, "random_state": random_state}
    models: dict[str, PrivateLinearModel] = {
        "lasso": DPLassoClassifier(epsilon, DELTA, **given),
        "logistic": DPLogisticRegression(epsilon, DELTA, **given),
    }
    with output.progress_bars() as bars:
        with bars.task("crossing columns"):
            train, test = _crossed(load_adult("train")), _crossed(load_adult("test"))
        results = {key: _train(key, model, train, test, bars) for key, model in models.items()}
        results["plain"] = _train_plain(train, test, bars)
        # Everything is held in memory until all of it is known, then put in place at once.
        picture = None
        if not undrawn:
            title = f"UCI Adult, all 1- to 3-way crosses ({test.X.shape[1]:,} columns)"
            with bars.task("drawing"):
                picture = _picture(list(results.values()), title)
    if undrawn:
        output.note(undrawn)
    with output.uninterrupted():
        files = _write(out, results, picture)
    seconds = {"seconds": time.perf_counter() - started, "compile_seconds": bars.compiled.seconds}
    report = _report(results, train, test) | seconds | {"files": files}
    return output.Result(report, partial(_print, report, results, explain=explain))


def _crossed(data: Dataset) -> Dataset:
    """Cross the columns over the whole public domain."""
    return Dataset(crosses(data.X), data.y, data.source)


def _train(
    key: str, model: PrivateLinearModel, train: Dataset, test: Dataset, bars: output.Bars
) -> Trained:
    name = f"{METHODS[key]}, epsilon {model.epsilon:g}"
    seconds = train_with_bar(model, train.X, train.y, bars, f"training: {name}")
    scores = score(model, test.X, test.y, test.source)
    heaviest = [
        one | {"name": cross_name(one["column"])}
        for one in model.top_features(HEAVIEST_DRAWN).rows()
    ]
    spent = seconds["prepare"] + seconds["train"] - seconds["compile"]
    return Trained(name, model, scores, len(weights_of(model.model_)), spent, heaviest)


def _train_plain(train: Dataset, test: Dataset, bars: output.Bars) -> Trained:
    """Train without privacy, with the penalty that ranks the rows held out best."""
    name, started = "best logistic, no privacy", time.perf_counter()
    held = np.arange(train.y.size) % HELD_OUT == 0
    X, y = train.X[~held], train.y[~held]
    # Each fit begins where the one before ended.
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
    seconds = time.perf_counter() - started
    scores = {"auc": area(model, test.X, test.y), "accuracy": model.score(test.X, test.y)}
    return Trained(name, model, scores, int(np.count_nonzero(model.coef_)), seconds)


def _write(
    directory: Path, results: Mapping[str, Trained], picture: bytes | None
) -> dict[str, Path]:
    directory.mkdir(parents=True, exist_ok=True)
    files = {kind: directory / name for kind, name in FILES.items()}
    for key in METHODS:
        model = results[key].model
        model.save(files[key])
        output.write_file(files[f"{key}_statement"], model.privacy_.to_json(indent=2) + "\n")
    if picture is not None:
        output.write_file(files["picture"], picture)
    return {kind: path for kind, path in files.items() if picture or kind != "picture"}


def _report(results: Mapping[str, Trained], train: Dataset, test: Dataset) -> dict[str, Any]:
    models = {
        key: {
            "auc": one.scores["auc"],
            "accuracy": one.scores["accuracy"],
            "n_nonzero": one.n_nonzero,
            "seconds": one.seconds,
        }
        for key, one in results.items()
    }
    return {
        "n_samples": train.X.shape[0],
        "n_test": test.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        **models,
        "majority_accuracy": results["logistic"].scores["majority_accuracy"],
        "heaviest": {key: results[key].heaviest[:HEAVIEST_PRINTED] for key in METHODS},
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
    names = [">" + one.name.replace(", ", "\n") for one in results.values()]
    output.table(["", *names, ">majority\nclass"], rows, title="On the test rows")
    for key, ones in report["heaviest"].items():
        output.weights(ones, f"{METHODS[key]}: the largest weights")
    chance = f"noise alone puts about {beyond_by_chance(columns):,} beyond a z of 3."
    output.text(f"Of {columns:,} columns, {chance}\n", "dim")
    output.text(
        "logistic: the most accurate private model, with a standard error for every weight."
    )
    output.text("LASSO: few weights, and no others to show or store.")
    output.text(
        "best logistic: trained by scikit-learn without privacy. "
        "Its L2 penalty was tuned on a fifth of the training rows.\n"
    )
    output.promise(results["logistic"].model.privacy_, explain=explain)
    seconds, compiling = report["seconds"], report["compile_seconds"]
    note = f" ({compiling:.0f} of it compiling, once on this machine)" if compiling > 1 else ""
    files = ", ".join(map(str, report["files"].values()))
    output.text(f"\nDone in {seconds:.0f} s{note}. Written: {files}")


def _picture(trained: Sequence[Trained], title: str) -> bytes:
    """Draw AUC bars (left) and the heaviest weights of each private model, as a PNG image."""
    from matplotlib.figure import Figure

    private = [one for one in trained if one.heaviest]
    statement = private[-1].model.privacy_
    title += f": epsilon {private[-1].model.epsilon:g}, delta {statement.delta:g}"
    figure = Figure(figsize=(17, 8.4), layout="constrained")
    title += "" if statement.is_private else " (not private: see the statement)"
    figure.suptitle(title, fontsize=15, fontweight="bold")
    left, *panels = figure.subplots(
        1, 1 + len(private), width_ratios=(0.62, *(1.0,) * len(private))
    )
    _draw_areas(left, trained)
    for axes, one, color in zip(panels, private, COLORS, strict=False):
        _draw_weights(axes, one, color)
    return png_of(figure)


def _draw_areas(axes: "Axes", trained: Sequence[Trained]) -> None:
    names = [one.name.replace(", ", ",\n") for one in trained]
    values = np.array([one.scores["auc"] or 0.0 for one in trained])
    look: dict[str, Any] = {"bottom": GUESSING, "width": 0.6, "color": COLORS[: len(trained)]}
    bars = axes.bar(range(len(names)), values - GUESSING, **look)
    axes.bar_label(bars, [f"{value:.3f}" for value in values], padding=3, fontsize=12)
    axes.set_xticks(range(len(names)), names, fontsize=10)
    axes.set_ylim(min(GUESSING, float(values.min())), 1.0)
    axes.set_title("AUC on the test rows (0.5: guessing)", fontsize=12, loc="left")
    tidy(axes, grid="y")


def _draw_weights(axes: "Axes", trained: Trained, color: str) -> None:
    bars = weight_bars(trained.heaviest)
    draw_bars(axes, bars, color)
    axes.set_xlabel("weight (positive: towards income above 50,000 dollars)")
    error = any(bar.low < bar.high for bar in bars)
    remark = "the largest, \u00b1 3 standard errors" if error else "the largest weights"
    axes.set_title(f"{trained.name}: {remark}", fontsize=12, loc="left")
