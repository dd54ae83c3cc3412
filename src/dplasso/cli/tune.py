"""``dplasso tune``: choose settings and train in one private search."""

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer

from dplasso.cli import output
from dplasso.cli.files import check_outputs
from dplasso.cli.ledger_report import left_after, left_in, left_sentence
from dplasso.cli.options import number_or_word
from dplasso.cli.reading import ReadingOptions, read
from dplasso.cli.training import EstimatorOptions, OutputOptions

if TYPE_CHECKING:
    from dplasso.data.files import Dataset
    from dplasso.tuning.search import PrivateSearch


# Settings that are worth a try at most.
_LIKELY = {
    "lasso": "feature-bound, n-iter and l1-radius",
    "logistic": "max-weights and residual-bound",
    "linear": "residual-bound",
}


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
    as_json: bool = False,
) -> None:
    """Choose settings and train, all under one private guarantee.

    Model
    -----
    grid : NAME=V,V,...
        A setting and its values; may be given again.
    tries : M
        Expected number of tries.
    law : LAW
        How their number is drawn: auto, poisson (costs a ledger least), geometric or logarithmic.
    metric : METRIC
        auc (default, for two classes), accuracy or log_loss; for a regression mae (default) or r2.
    held_out : S
        Share of the rows that tries are scored on.

    Examples
    --------
    dplasso tune train.svm.gz --epsilon 3 --grid l1-radius=3,10,30 --grid n-iter=50,200 --model
        model.npz
    dplasso tune train.svm.gz --epsilon 3 --method logistic --grid max-weights=none,30,100 --tries 3
        --metric accuracy

    One fit with the defaults and the whole epsilon is mostly better than a search: docs/tuning.md
    says when a search pays. The number of tries is random, and not released.
    """
    from dplasso.data.source_files import expand
    from dplasso.files.room import held_room

    schema = reading.declared()
    metric = metric or ("mae" if wanted.is_regression else "auc")
    settings = {"tries": tries, "law": law, "metric": metric, "held_out": held_out}
    search = _search(wanted, reading, grid, settings)
    outputs.refuse_unwritten(wanted.ledger)
    files = expand(data)
    beside = (reading.labels, reading.schema, wanted.ledger)
    inputs = [*files, *(path for path in beside if path is not None)]
    again = "" if wanted.ledger is None else ", which is charged again"
    check_outputs(outputs.paths(), inputs, force=outputs.force, again=again)
    with output.progress_bars() as bars, ExitStack() as held:
        rows = read(files, bars, reading, wanted.features, schema)
        wanted.declare(search.estimator, rows.y)
        temporary = None
        if wanted.ledger is not None and outputs.model is not None:
            temporary = held.enter_context(held_room(outputs.model, _model_bytes(search, rows)))
        with bars.task("searching"):
            search.fit(rows.X, rows.y)
        if search.best_params_ is not None or outputs.model is None:
            with output.uninterrupted():
                outputs.write(search.best_estimator_, temporary)
    if search.best_params_ is None and outputs.model is not None:
        output.text("There was no try, so there is no model to write.")
    report: dict[str, Any] = {
        "n_features": rows.X.shape[1],
        "best_params": search.best_params_,
        "best_score": None if search.best_score_ is None else search.best_score_._asdict(),
        "metric": metric,
        "privacy": search.privacy_.to_dict(),
        "model": outputs.model,
        "statement": outputs.statement,
    }
    if wanted.ledger is not None:
        best = search.best_estimator_
        report["ledger"] = (
            left_in(wanted.ledger, wanted.dataset, best.model_)
            if hasattr(best, "model_")
            else left_after(wanted.ledger, wanted.dataset, search.privacy_)
        )
    if as_json:
        output.document(report)
        return
    output.facts(_facts(report, outputs))
    output.text()
    output.promise(search.privacy_, explain=explain)


def _search(
    wanted: EstimatorOptions, reading: ReadingOptions, grid: list[str], settings: dict[str, Any]
) -> "PrivateSearch":
    """Return the search, checked; what every fit of it shares is set here, and not in its tries."""
    from dplasso.tuning.search import PrivateSearch

    estimator = wanted.estimator(reading.meaning())
    if estimator.rows_per_person > 1:
        raise ValueError("rows_per_person needs to know the person of each row, which no file says")
    settings_of_tries = dict(_setting(text) for text in grid)
    known = estimator.get_params()
    if unknown := [name for name in settings_of_tries if name not in known]:
        raise typer.BadParameter(
            f"--grid {unknown[0].replace('_', '-')}: there is no such setting; those of this "
            f"method are options of dplasso fit, such as {_LIKELY[wanted.method]}"
        )
    moved = ("ledger", "dataset", "purpose", "random_state")
    search = PrivateSearch(
        estimator.set_params(**dict.fromkeys(moved)),
        settings_of_tries,
        wanted.epsilon,
        known["delta"],
        **settings,
        **{name: known[name] for name in moved},
    )
    try:
        search.check()
    except TypeError as error:
        # A grid is text: a number of the wrong kind is a wrong value.
        raise ValueError(str(error)) from None
    return search


def _model_bytes(search: "PrivateSearch", rows: "Dataset") -> int:
    """Return how large the model of any try can be."""
    import numpy as np

    from dplasso.encoding.origin import origin_of
    from dplasso.estimators.fitting import method_of
    from dplasso.tuning.candidates import list_candidates

    params, largest = search.estimator.get_params(), 0
    classes = np.zeros(0)
    if "classes" in params:
        classes = np.asarray(params["classes"] or np.unique(rows.y))
    n_features, origin = int(rows.X.shape[1]), origin_of(rows.X)
    for candidate in list_candidates(search.estimator, search.grid, search.delta):
        method = method_of(candidate.estimator)
        mechanism = method.cost(n_features, classes.size)
        largest = max(largest, method.model_bytes(mechanism, n_features, classes, origin=origin))
    return largest


def _setting(text: str) -> tuple[str, list[Any]]:
    """Read NAME=V,V,...; anything malformed is wrong usage."""
    name, found, given = text.partition("=")
    values = [value.strip() for value in given.split(",")]
    if not (name.strip() and found and all(values)):
        raise typer.BadParameter(f"--grid {text!r} is not of the form NAME=VALUE,VALUE,...")
    words = {"none": None, "true": True, "false": False}
    read = (number_or_word(value) for value in values)
    parsed = [words.get(value, value) if isinstance(value, str) else value for value in read]
    return name.strip().replace("-", "_"), parsed


def _facts(report: dict[str, Any], outputs: OutputOptions) -> dict[str, str]:
    params, score = report["best_params"], report["best_score"]
    facts = {"best": "none: the random number of tries came out as zero"}
    if params is not None:
        interval = f"{score['low']:.4f} to {score['high']:.4f}"
        if not math.isfinite(score["low"]):
            interval = "without interval"
        facts = {
            "best": ", ".join(f"{name} {value}" for name, value in params.items()),
            "score": f"{report['metric']} {score['value']:.4f} ({interval}), noisy, and "
            "too high, as the best of several",
        }
    if "ledger" in report:
        facts["ledger"] = left_sentence(report["ledger"])
    paths = ", ".join(map(str, outputs.paths()))
    return facts | {"written": paths or "nothing (give --model to keep the model)"}
