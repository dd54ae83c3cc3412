"""``dplasso demo``: the main job on real data, from reading to the picture."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dplasso.cli import output
from dplasso.cli.files import check_directory, naming, write_file
from dplasso.cli.training import train_with_bar
from dplasso.runtime.extras import missing

if TYPE_CHECKING:
    from dplasso.cli.metrics import Scores
    from dplasso.data.files import Dataset
    from dplasso.estimators.load import Estimator


DELTA = 1e-6

HEAVIEST_PRINTED = 5
HEAVIEST_DRAWN = 15
METHODS = {"lasso": "LASSO", "logistic": "logistic"}
FILES = {
    "lasso": "lasso.npz",
    "logistic": "logistic.npz",
    "lasso_statement": "lasso.json",
    "logistic_statement": "logistic.json",
    "picture": "demo.png",
}


@dataclass(frozen=True)
class Trained:
    """One of the models, what it reached on the test rows, and how long it took.

    The seconds are those of any later run: without the compiler's, which come once on a machine.
    """

    model: "Estimator"
    scores: "Scores"
    seconds: float


def demo(
    out: Path = Path("dplasso-demo"),
    epsilon: float = 1.0,
    random_state: int | None = None,
    explain: bool = False,
    n_iter: int | None = None,
    as_json: bool = False,
) -> None:
    """Train on real data by both methods, privately and plainly, and look at the difference.

    Output
    ------
    out : DIR
        Folder for the models, statements and the picture.

    Hidden
    ------
    n_iter

    Examples
    --------
    dplasso demo
    dplasso demo --epsilon 0.1 --out tighter

    The data is UCI Adult (Becker and Kohavi, 1996; CC BY 4.0), 32,560 people to train on and 16,281
    to test on; it is packaged, nothing is downloaded.
    """
    from dplasso import DPLassoClassifier, DPLogisticRegression, privacy_cost

    for method in METHODS:
        privacy_cost(epsilon, DELTA, n_iter, method=method)
    undrawn = missing("matplotlib", "The picture")
    check_directory(out, FILES.values())
    started = time.perf_counter()
    with output.progress_bars() as bars:
        train, test = _load(bars)
        public: dict[str, Any] = {"classes": (-1, 1), "n_jobs": -1}
        steps = "auto" if n_iter is None else n_iter
        models: dict[str, Estimator] = {
            "lasso": DPLassoClassifier(
                epsilon, DELTA, n_iter=steps, random_state=random_state, **public
            ),
            "logistic": DPLogisticRegression(
                epsilon, DELTA, n_iter=steps, random_state=random_state, **public
            ),
            "plain": DPLogisticRegression(float("inf"), DELTA, n_iter=steps, **public),
        }
        names = _names(epsilon)
        results = {
            key: _train(model, train, test, bars, f"training: {' '.join(names[key].split())}")
            for key, model in models.items()
        }
        # Everything is held in memory until all of it is known, then put in place at once.
        heaviest = {key: _heaviest(results[key].model, HEAVIEST_DRAWN) for key in METHODS}
        picture = None
        if not undrawn:
            with bars.task("drawing"):
                picture = _picture(results, heaviest, test, epsilon)
    if undrawn:
        output.note(undrawn)
    with output.uninterrupted():
        files = _write(out, results, picture)
    seconds = {"seconds": time.perf_counter() - started, "compile_seconds": bars.compiled.seconds}
    report = _report(results, heaviest, train, test) | seconds
    if as_json:
        output.document(report | {"files": files})
        return
    _print_report(report, epsilon)
    output.promise(results["logistic"].model.privacy_, explain=explain)
    compiling = f" ({report['compile_seconds']:.0f} of it compiling, once on this machine)"
    output.text(
        f"\nDone in {report['seconds']:.0f} s{compiling if report['compile_seconds'] > 1 else ''}. "
        f"Written: {', '.join(map(str, files.values()))}"
    )


def _names(epsilon: float) -> dict[str, str]:
    """Return the name of each model, in two lines."""
    private = {key: f"{name}\nepsilon {epsilon:g}" for key, name in METHODS.items()}
    return private | {"plain": "logistic,\nno privacy"}


def _load(bars: output.Bars) -> tuple["Dataset", "Dataset"]:
    """Load both parts and cross their columns over the whole public domain."""
    from dplasso.data.files import Dataset
    from dplasso.datasets.adult import crosses, load_adult

    parts = []
    with bars.task("crossing columns") as progress:
        for data in (load_adult("train"), load_adult("test")):
            parts.append(Dataset(crosses(data.X), data.y, data.source))
            progress(len(parts), 2)
    return parts[0], parts[1]


def _train(
    model: "Estimator", train: "Dataset", test: "Dataset", bars: output.Bars, label: str
) -> Trained:
    from dplasso.cli.metrics import Scores, score

    seconds = train_with_bar(model, train.X, train.y, bars, label)
    scores = score(model, test.X, test.y, test.source)
    assert isinstance(scores, Scores)
    return Trained(model, scores, seconds["prepare"] + seconds["train"] - seconds["compile"])


def _heaviest(model: "Estimator", count: int) -> list[dict[str, Any]]:
    """Name the heaviest weights."""
    from dplasso.datasets.adult import cross_name

    heaviest = model.top_features(count).rows()
    return [one | {"name": cross_name(one["column"])} for one in heaviest]


def _picture(
    results: Mapping[str, Trained],
    heaviest: Mapping[str, list[dict[str, Any]]],
    test: "Dataset",
    epsilon: float,
) -> bytes:
    from dplasso.cli.plots import NamedWeights, demo_picture

    names = _names(epsilon)
    areas = [(names[key], trained.scores.auc or 0.0) for key, trained in results.items()]
    lists = []
    for key, ones in heaviest.items():
        # A LASSO of too little budget for a refit has none.
        error = next((one["standard_error"] or 0.0 for one in ones), 0.0)
        remark = "the largest, \u00b1 2 standard errors" if error else "the largest weights"
        lists.append(
            NamedWeights(
                f"{METHODS[key]}, epsilon {epsilon:g}: {remark}",
                [one["name"] for one in ones],
                np.array([one["weight"] for one in ones]),
                error,
            )
        )
    title = (
        f"UCI Adult, all 1- to 3-way crosses ({test.X.shape[1]:,} columns): "
        f"epsilon {epsilon:g}, delta {DELTA:g}"
    )
    if not results["logistic"].model.privacy_.is_private:
        title += " (not private: see the statement)"
    return demo_picture(areas, lists, title)


def _write(
    directory: Path, results: Mapping[str, Trained], picture: bytes | None
) -> dict[str, Path]:
    directory.mkdir(parents=True, exist_ok=True)
    files = {kind: directory / name for kind, name in FILES.items()}
    for key in METHODS:
        model = results[key].model
        with naming(files[key]):
            model.save(files[key])
        write_file(files[f"{key}_statement"], model.privacy_.to_json(indent=2) + "\n")
    if picture is None:
        del files["picture"]
    else:
        write_file(files["picture"], picture)
    return files


def _report(
    results: Mapping[str, Trained],
    heaviest: Mapping[str, list[dict[str, Any]]],
    train: "Dataset",
    test: "Dataset",
) -> dict[str, Any]:
    from dplasso.model.weights import weights_of

    models = {
        name: {
            "auc": trained.scores.auc,
            "accuracy": trained.scores.accuracy,
            "n_nonzero": len(weights_of(trained.model.model_)),
            "seconds": trained.seconds,
        }
        for name, trained in results.items()
    }
    return {
        "n_samples": train.X.shape[0],
        "n_test": test.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        **models,
        "majority_accuracy": results["plain"].scores.majority_accuracy,
        "heaviest": {key: ones[:HEAVIEST_PRINTED] for key, ones in heaviest.items()},
        "privacy": {key: results[key].model.privacy_.to_dict() for key in METHODS},
    }


def _print_report(report: Mapping[str, Any], epsilon: float) -> None:
    output.text(
        f"UCI Adult: is a person's income above 50,000 dollars? {report['n_samples']:,} people to "
        f"train on, {report['n_test']:,} to test on, {report['n_features']:,} columns: all crosses "
        "of up to three attributes.\n"
    )
    names = _names(epsilon)

    def row(name: str, key: str, form: str, majority: str) -> tuple[str, ...]:
        return name, *(format(report[model][key], form) for model in names), majority

    output.table(
        ["", *(f">{name}" for name in names.values()), ">majority\nclass"],
        [
            row("AUC", "auc", ".3f", "0.500"),
            row("accuracy", "accuracy", ".3f", f"{report['majority_accuracy']:.3f}"),
            row("non-zero weights", "n_nonzero", ",", "0"),
            row("seconds to train", "seconds", ".1f", ""),
        ],
        title="On the test rows",
    )
    for key, ones in report["heaviest"].items():
        output.weights(ones, f"{METHODS[key]}: the largest weights")
    from dplasso.model.weights import beyond_by_chance

    columns = report["n_features"]
    output.text(
        f"Of {columns:,} columns, noise alone takes about {beyond_by_chance(columns):,} beyond a z "
        "of 3.\n",
        "dim",
    )
    output.text("logistic: the most accurate model, and every weight with its standard error.")
    output.text("LASSO: few, named weights and nothing else to show or store.\n")
