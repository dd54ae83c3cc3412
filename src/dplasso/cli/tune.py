"""``dplasso tune``: choose settings and train in one private search."""

import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.files import check_outputs
from dplasso.cli.fit import OutputOptions, write_outputs
from dplasso.cli.ledger_report import left_after, left_in, left_sentence
from dplasso.cli.methods import (
    ModelOptions,
    PrivacyOptions,
    is_regression,
    make_estimator,
    number_or_word,
)
from dplasso.cli.options import MODEL, option
from dplasso.cli.output import (
    print_facts,
    print_json,
    print_promise,
    print_text,
    progress_bars,
    uninterrupted,
)
from dplasso.cli.reading import (
    DataArgument,
    ReadingOptions,
    classes_like,
    mapped_classes,
    parse_classes,
    read,
)

if TYPE_CHECKING:
    from dplasso.data.files import Dataset
    from dplasso.tuning.search import PrivateSearch

EXAMPLES = options.examples(
    "dplasso tune train.svm.gz --epsilon 3 --grid l1-radius=3,10,30 --grid n-iter=50,200 "
    "--model model.npz",
    "dplasso tune train.svm.gz --epsilon 3 --method logistic --grid max-weights=none,30,100 "
    "--tries 3 --metric accuracy",
    note="One fit with the defaults and the whole epsilon is mostly better than a search: "
    "docs/tuning.md says when a search pays. The number of tries is random, and not released.",
)

# Settings that are worth a try at most.
_LIKELY = {
    "lasso": "feature-bound, n-iter and l1-radius",
    "logistic": "max-weights and residual-bound",
    "linear": "residual-bound",
}


def tune(
    data: DataArgument,
    privacy: PrivacyOptions,
    training: ModelOptions,
    reading: ReadingOptions,
    output: OutputOptions,
    grid: Annotated[
        list[str],
        option("--grid", "A setting and its values; may be given again.", "NAME=V,V,...", MODEL),
    ],
    tries: Annotated[float, option("--tries", "Expected number of tries.", "M", MODEL)] = 10.0,
    law: Annotated[
        str,
        option(
            "--law",
            "How their number is drawn: auto, poisson (costs a ledger least), geometric or "
            "logarithmic.",
            "LAW",
            MODEL,
        ),
    ] = "auto",
    metric: Annotated[
        str | None,
        option(
            "--metric",
            "auc (default, for two classes), accuracy or log_loss; for a regression mae (default) "
            "or r2.",
            "METRIC",
            MODEL,
        ),
    ] = None,
    held_out: Annotated[
        float, option("--held-out", "Share of the rows that tries are scored on.", "S", MODEL)
    ] = 0.2,
    explain: options.Explain = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose settings and train, all under one private guarantee."""
    from dplasso.data.source_files import expand
    from dplasso.files.room import held_room
    from dplasso.tuning.search import PrivateSearch

    declared = None if privacy.classes is None else parse_classes(privacy.classes)
    meaning, schema = reading.meaning(), reading.declared()
    estimator = make_estimator(privacy, training)
    if metric is None:
        metric = "mae" if is_regression(privacy, training) else "auc"
    if privacy.rows_per_person is not None and privacy.rows_per_person > 1:
        raise ValueError("rows_per_person needs to know whose row each is, which no file says")
    settings = dict(_setting(text) for text in grid)
    if unknown := [name for name in settings if name not in estimator.get_params()]:
        raise typer.BadParameter(
            f"--grid {unknown[0].replace('_', '-')}: there is no such setting; those of this "
            f"method are options of dplasso fit, such as {_LIKELY[training.method]}"
        )
    moved = {"ledger": None, "dataset": None, "purpose": None, "random_state": None}
    search = PrivateSearch(
        estimator.set_params(**moved),
        settings,
        privacy.epsilon,
        privacy.delta,
        tries=tries,
        law=law,
        metric=metric,
        held_out=held_out,
        random_state=privacy.seed,
        ledger=None if privacy.ledger is None else str(privacy.ledger),
        dataset=privacy.dataset,
        purpose=privacy.purpose,
    )
    search.check()
    if privacy.ledger is not None and output.model is None:
        raise typer.BadParameter("--ledger needs --model OUT: what is paid for has to be written")
    files = expand(data)
    beside = (reading.labels, reading.schema, privacy.ledger)
    inputs: list[Path] = [*files, *(path for path in beside if path is not None)]
    again = "" if privacy.ledger is None else ", which is charged again"
    check_outputs(output.paths(), inputs, force=output.force, again=again)
    with progress_bars() as bars, ExitStack() as held:
        rows = read(files, bars, reading, privacy.features, schema)
        if declared is not None:
            estimator.set_params(classes=classes_like(declared, rows.y))
        elif meaning is not None and "classes" in estimator.get_params():
            estimator.set_params(classes=mapped_classes(meaning))
        temporary = None
        if privacy.ledger is not None and output.model is not None:
            room = held_room(output.model, _model_bytes(search, rows))
            temporary = held.enter_context(room)
        with bars.task("searching"):
            search.fit(rows.X, rows.y)
        if search.best_params_ is not None or output.model is None:
            with uninterrupted():
                write_outputs(search.best_estimator_, output, temporary)
    if search.best_params_ is None and output.model is not None:
        print_text("There was no try, so there is no model to write.")
    report: dict[str, Any] = {
        "n_features": rows.X.shape[1],
        "best_params": search.best_params_,
        "best_score": None if search.best_score_ is None else search.best_score_._asdict(),
        "metric": metric,
        "privacy": search.privacy_.to_dict(),
        "model": output.model,
        "statement": output.statement,
    }
    if privacy.ledger is not None:
        best = search.best_estimator_
        report["ledger"] = (
            left_in(privacy.ledger, privacy.dataset, best.model_)
            if hasattr(best, "model_")
            else left_after(privacy.ledger, privacy.dataset, search.privacy_)
        )
    if as_json:
        print_json(report)
        return
    print_facts(_facts(report, output))
    print_text()
    print_promise(search.privacy_, explain=explain)


def _model_bytes(search: "PrivateSearch", rows: "Dataset") -> int:
    """Return how large the model of any try can be."""
    import numpy as np

    from dplasso.encoding.origin import origin_of
    from dplasso.estimators.fitting import method_of
    from dplasso.fit.room import model_bytes
    from dplasso.tuning.candidates import list_candidates

    params, largest = search.estimator.get_params(), 0
    classes = np.zeros(0)
    if "classes" in params:
        classes = np.asarray(params["classes"] or np.unique(rows.y))
    for candidate in list_candidates(search.estimator, search.grid, search.delta):
        method, n_features = method_of(candidate.estimator), int(rows.X.shape[1])
        mechanism = method.cost(n_features, classes.size)
        origin = origin_of(rows.X)
        largest = max(largest, model_bytes(method, mechanism, n_features, classes, origin=origin))
    return largest


def _setting(text: str) -> tuple[str, list[Any]]:
    """Read NAME=V,V,...; anything malformed is wrong usage."""
    name, found, values = text.partition("=")
    if not (name.strip() and found and all(value.strip() for value in values.split(","))):
        raise typer.BadParameter(f"--grid {text!r} is not of the form NAME=VALUE,VALUE,...")
    words = {"none": None, "true": True, "false": False}
    parsed = (number_or_word(value.strip()) for value in values.split(","))
    return name.strip().replace("-", "_"), [
        words.get(value, value) if isinstance(value, str) else value for value in parsed
    ]


def _facts(report: dict[str, Any], output: OutputOptions) -> dict[str, str]:
    params, score = report["best_params"], report["best_score"]
    if params is None:
        facts = {"best": "none: the random number of tries came out as zero"}
    else:
        settings = ", ".join(f"{name} {value}" for name, value in params.items())
        interval = f"{score['low']:.4f} to {score['high']:.4f}"
        if not math.isfinite(score["low"]):
            interval = "without interval"
        facts = {
            "best": settings,
            "score": f"{report['metric']} {score['value']:.4f} ({interval}), noisy, and "
            "too high, as the best of several",
        }
    if "ledger" in report:
        facts["ledger"] = left_sentence(report["ledger"])
    facts["written"] = ", ".join(map(str, output.paths())) or (
        "nothing (give --model to keep the model)"
    )
    return facts
