"""``dplasso tune``: choose settings and train in one private search."""

import math
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import typer

from dplasso.cli import output
from dplasso.cli.inputs import ReadingOptions
from dplasso.cli.ledger_report import left_after, left_sentence
from dplasso.cli.options import number_or_word
from dplasso.cli.training import EstimatorOptions, OutputOptions
from dplasso.data.formats import Dataset
from dplasso.data.source_files import expand
from dplasso.encoding.origin import origin_of
from dplasso.errors import DataError
from dplasso.estimators.fitting import method_of
from dplasso.files.disk import held_room
from dplasso.tuning.candidates import list_candidates
from dplasso.tuning.search import PrivateSearch


def tune(
    data: list[str],
    wanted: EstimatorOptions,
    reading: ReadingOptions,
    outputs: OutputOptions,
    grid: list[str],
    tries: float = 10.0,
    law: str = "auto",
    metric: str | None = None,
    held_out: float = 0.2,
    explain: bool = False,
) -> output.Result:
    """Choose settings and train, all under one private guarantee.

    Most needed
    -----------
    epsilon, delta, grid, tries, metric, model, method, classes, target_bounds, schema,
    ledger, dataset, explain

    Model
    -----
    grid : NAME=V,V,...
        A setting and its values; may be given again.
    tries : M
        Expected number of tries.
    law : LAW
        How their number is drawn: auto, poisson (costs a ledger least) or logarithmic.
    metric : METRIC
        auc (default for two classes), accuracy (default for more), f1, f1_macro or log_loss;
        auc_weighted or f1_weighted; for a regression mae (default) or r2.
    held_out : S
        Share of the rows that tries are scored on.

    Examples
    --------
    dplasso tune train.svm.gz --epsilon 3 --grid max-weights=none,30,100 --tries 3 --metric accuracy
    dplasso tune train.svm.gz --epsilon 3 --method frank-wolfe --grid l1-radius=3,10,30
        --grid n-iter=50,200 --model model.npz

    One fit with the defaults and the whole epsilon is mostly better than a search: docs/tuning.md
    says when a search pays. The number of tries is random, and not released.
    """
    schema = reading.declared()
    settings = {"tries": tries, "law": law, "metric": metric, "held_out": held_out}
    search = _search(wanted, grid, settings)
    outputs.refuse_unwritten(wanted.ledger)
    files, charged = expand(data), wanted.ledger is not None
    if search.estimator.rows_per_person > 1 and not files[0].is_dir():
        raise DataError(
            f"{files[0]} does not say which person each row belongs to; a store does that was made "
            "with --person-column (dplasso convert)"
        )
    beside = reading.labels, reading.schema, *wanted.beside
    outputs.check((*files, *beside), charged=charged)
    with output.progress_bars() as bars, ExitStack() as held:
        rows = reading.read(files, bars, wanted.features, schema)
        wanted.declare(search.estimator, rows.y)
        wanted.read_public(search.estimator, reading, rows, bars, schema)
        temporary = None
        if charged and outputs.model is not None:
            temporary = held.enter_context(held_room(outputs.model, _model_bytes(search, rows)))
        with bars.task("searching"):
            search.fit(rows.X, rows.y)
        if search.best_params_ is not None:
            with output.uninterrupted():
                outputs.write(search.best_estimator_, temporary)
    report: dict[str, Any] = {
        "n_features": rows.X.shape[1],
        "best_params": search.best_params_,
        "best_score": None if search.best_score_ is None else search.best_score_._asdict(),
        "metric": search.metric_,
        "privacy": search.privacy_.to_dict(),
        "model": outputs.model,
    }
    if wanted.ledger is not None:
        best = getattr(search.best_estimator_, "model_", None)
        release = "" if best is None else best.digest
        report["ledger"] = left_after(wanted.ledger, wanted.dataset, search.privacy_, release)
    return output.Result(report, partial(_print, report, search, outputs, explain=explain))


def _search(wanted: EstimatorOptions, grid: list[str], settings: dict[str, Any]) -> PrivateSearch:
    """Return the search, checked; what every fit of it shares is set here, and not in its tries."""
    estimator = wanted.estimator()
    settings_of_tries = dict(_setting(text) for text in grid)
    params = estimator.get_params()
    if unknown := [name for name in settings_of_tries if name not in params]:
        raise typer.BadParameter(
            f"--grid {unknown[0].replace('_', '-')}: there is no such setting; it takes options of "
            f"dplasso fit --method {wanted.chosen}"
        )
    moved = ("ledger", "random_state")
    search = PrivateSearch(
        estimator.set_params(**dict.fromkeys(moved)),
        settings_of_tries,
        wanted.epsilon,
        params["delta"],
        **settings,
        **{name: params[name] for name in moved},
    )
    search.check()
    return search


def _model_bytes(search: PrivateSearch, rows: Dataset) -> int:
    """Return the size of the largest model that a try can make."""
    classes = np.zeros(0)
    params = search.estimator.get_params()
    if "classes" in params:
        classes = np.asarray(params["classes"] or np.unique(rows.y))
    n_features, origin = int(rows.X.shape[1]), origin_of(rows.X)
    candidates = list_candidates(search.estimator, search.grid, search.delta)
    methods = [method_of(candidate.estimator) for candidate in candidates]
    return max(method.model_bytes(n_features, classes, origin=origin) for method in methods)


def _setting(text: str) -> tuple[str, list[Any]]:
    """Read NAME=V,V,...; anything malformed is wrong usage."""
    name, equals, listed = text.partition("=")
    values = [value.strip() for value in listed.split(",")]
    if not (name.strip() and equals and all(values)):
        raise typer.BadParameter(f"--grid {text!r} is not of the form NAME=VALUE,VALUE,...")
    words = {"none": None, "true": True, "false": False}
    read = (number_or_word(value) for value in values)
    parsed = [words.get(value, value) if isinstance(value, str) else value for value in read]
    return name.strip().replace("-", "_"), parsed


def _print(
    report: dict[str, Any], search: PrivateSearch, outputs: OutputOptions, *, explain: bool
) -> None:
    params, score = report["best_params"], report["best_score"]
    if params is None and outputs.model is not None:
        output.text("There was no try, so there is no model to write.")
    facts = {"best": "none, because the random number of tries was zero"}
    if params is not None:
        finite = math.isfinite(score["low"])
        interval = f"{score['low']:.4f} to {score['high']:.4f}" if finite else "without interval"
        facts = {
            "best": ", ".join(f"{name} {value}" for name, value in params.items()),
            "score": f"{report['metric']} {score['value']:.4f} ({interval}), noisy and "
            "optimistic, because it is the best of several tries",
        }
    if "ledger" in report:
        facts["ledger"] = left_sentence(report["ledger"])
    written = str(outputs.model or "nothing (give --model to keep the model)")
    output.facts(facts | {"written": written})
    output.text()
    output.promise(search.privacy_, explain=explain)
