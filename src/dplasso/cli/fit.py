"""``dplasso fit``: train on a file, report, write the model and its statement."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.checkpoints import checkpoint_place, kept_checkpoint, refuse_unfinished
from dplasso.cli.clusters import ClusterOptions, read_partitions, refuse_beside
from dplasso.cli.files import check_outputs, naming, write_file
from dplasso.cli.ledger_report import left_in, left_sentence
from dplasso.cli.methods import (
    ModelOptions,
    PrivacyOptions,
    better_method,
    make_estimator,
)
from dplasso.cli.options import DATA, OUTPUT, flag, option
from dplasso.cli.output import (
    NOT_FOR_RELEASE,
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
    refuse_fractions,
)
from dplasso.cli.stores import data_text
from dplasso.cli.training import check_before_reading, train_with_bar
from dplasso.cli.weights import print_weights

if TYPE_CHECKING:
    from dplasso.data.files import Dataset
    from dplasso.estimators.load import Estimator

EXAMPLES = options.examples(
    "dplasso fit train.svm.gz --epsilon 1 --model model.npz",
    "dplasso fit train.svm.gz --epsilon 1 --binarize --classes 0,1 --test test.svm.gz",
    "dplasso fit 'part-*.svm.gz' --epsilon 1 --label-map neg=0,pos=1 --model model.npz",
    "dplasso fit train.store --epsilon 1 --model model.npz    (after: dplasso convert train.svm.gz "
    "train.store)",
    "dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits --model model.npz",
    "dplasso fit counts.npz --labels labels.npy --epsilon 0.5 --n-iter 300 --l1-radius 20 --json",
    "dplasso fit train.svm --epsilon 1 --model m.npz --checkpoint c.npz    "
    "(killed? the same again with --resume)",
    "dplasso fit train.svm.gz --epsilon 1 --method logistic --max-weights 30 --model model.npz",
    "dplasso fit stores/ --cluster auto --epsilon 1 --classes 0,1 --checkpoint c.npz --model m.npz "
    "   (after: dplasso convert 'part-*' stores/ --features 1000000 --cluster auto)",
    "dplasso fit s3://bucket/stores/ --cluster auto --epsilon 1 --classes 0,1 --model m.npz",
    "dplasso fit table.csv --schema schema.json --epsilon 1 --model model.npz    (after: dplasso "
    "schema draft table.csv > schema.json, and editing it)",
    note="Row counts, seconds and test scores are for the curator. They are computed without "
    "noise and are not part of the release: what may be released is the model and its "
    "statement.",
)


HEAVIEST = 10
# Entries of the JSON object that depend on the data without noise, or on other fits.
_CURATORS = ("n_samples", "nnz", "seconds", "test", "checkpoint", "ledger")


@dataclass(frozen=True)
class TestOptions:
    """Rows to score the model on."""

    test: Annotated[
        list[str] | None,
        option(
            "--test",
            "Labelled rows to score the model on, for the curator: a file or a quoted "
            "pattern; may be given again for more.",
            "DATA",
            DATA,
        ),
    ] = None
    test_labels: Annotated[
        Path | None,
        option("--test-labels", "Labels of a --test .npz that holds none.", "FILE", DATA),
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """What is written."""

    model: Annotated[
        Path | None,
        option(
            "--model",
            "Write the model here (.npz); needed with --ledger. Default: nothing is written.",
            "OUT",
            OUTPUT,
        ),
    ] = None
    statement: Annotated[
        Path | None, option("--statement", "Write the privacy statement here.", "OUT.json", OUTPUT)
    ] = None
    force: Annotated[bool, flag("--force", "Overwrite existing outputs.", OUTPUT)] = False

    def paths(self) -> list[Path]:
        """List the files that will be written."""
        return [path for path in (self.model, self.statement) if path is not None]


def fit(
    data: DataArgument,
    privacy: PrivacyOptions,
    training: ModelOptions,
    reading: ReadingOptions,
    testing: TestOptions,
    output: OutputOptions,
    interruptions: options.CheckpointOptions,
    cluster: ClusterOptions,
    person_column: options.PersonColumn = None,
    explain: options.Explain = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a private model on labelled sparse rows."""
    from dplasso.cli.metrics import score, scores_text
    from dplasso.data.source_files import expand
    from dplasso.estimators.hints import raw_numbers

    # Everything that can be refused is refused before the long work starts.
    declared = None if privacy.classes is None else parse_classes(privacy.classes)
    meaning, schema = reading.meaning(), reading.declared()
    estimator = make_estimator(privacy, training)
    if person_column is not None and privacy.rows_per_person is None:
        raise typer.BadParameter(
            "--person-column needs --rows-per-person M: how many rows of one person may enter"
        )
    mapped = None
    if meaning is not None and declared is None and "classes" in estimator.get_params():
        mapped = mapped_classes(meaning)
    charged = privacy.ledger is not None
    place = checkpoint_place(interruptions, output.model, charged=charged)
    if not (interruptions.resume or output.force):
        refuse_unfinished(place, output.paths())
    check_before_reading(estimator, paid=interruptions.resume)
    engine = cluster.engine()
    if engine is not None:
        refuse_beside({"--test": bool(testing.test), "--labels": reading.labels is not None})
    files = expand(data) if engine is None else []
    test_files = expand(testing.test) if testing.test else []
    beside = (reading.labels, reading.schema, testing.test_labels, privacy.ledger)
    inputs = [*files, *test_files, *(path for path in beside if path is not None)]
    again = ", which is charged again" if charged and not interruptions.resume else ""
    check_outputs(output.paths(), inputs, force=output.force, again=again)
    kept = kept_checkpoint(
        estimator,
        interruptions,
        place,
        model=output.model if charged else None,
        others=[*inputs, *output.paths()],
        force=output.force,
    )

    with kept as kept_fit, progress_bars() as bars:
        started = time.perf_counter()
        if engine is None:
            train = read(
                files, bars, reading, privacy.features, schema, person_column=person_column
            )
            rows, labels = train.X, train.y
        else:
            train, rows = read_partitions(data, reading, privacy.features)
            labels = None
        seconds = {"read": time.perf_counter() - started}
        if declared is not None:
            estimator.set_params(classes=classes_like(declared, train.y))
        elif mapped is not None:
            # Whoever says what every label means has declared the labels.
            estimator.set_params(classes=mapped)
        if "classes" in estimator.get_params() and training.task is None:
            refuse_fractions(train.y)
        held_out, scores = None, None
        if test_files:
            same = replace(reading, labels=testing.test_labels)
            held_out = read(test_files, bars, same, train.X.shape[1], schema)
            _refuse_other_rows(train, held_out, estimator)
        if engine is None and (hint := raw_numbers(train.X, estimator.get_params())):
            bars.note(hint)
        seconds |= train_with_bar(
            estimator, rows, labels, bars, "training", kept_fit.begin, train.people, engine
        )
        if held_out is not None:
            scores = score(estimator, held_out.X, held_out.y, held_out.source)
        with uninterrupted():
            write_outputs(estimator, output, kept_fit.temporary)
            if output.model is not None:
                kept_fit.finish()
    from dplasso.fit.records import store_of
    from dplasso.model.weights import weights_of

    weights = weights_of(estimator.model_)
    report = {
        "n_samples": train.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        "n_nonzero": len(weights),
        "seconds": seconds,
        "privacy": estimator.privacy_.to_dict(),
        "model": output.model,
        "statement": output.statement,
    }
    if hasattr(estimator, "coef_standard_error_"):
        report |= {
            "standard_error": estimator.coef_standard_error_,
            "n_significant": None if weights.clear is None else int(weights.clear.sum()),
            "heaviest": weights.top(HEAVIEST).rows(),
        }
    if interruptions.checkpoint is not None:
        report["checkpoint"] = {
            "path": interruptions.checkpoint,
            "resumed_after": kept_fit.steps,
        }
    test_text = None
    if scores is not None:
        names = ("auc", "accuracy", "r2", "mae", "n_samples")
        report["test"] = {name: value for name, value in asdict(scores).items() if name in names}
        test_text = scores_text(scores)
    if privacy.ledger is not None:
        report["ledger"] = left_in(privacy.ledger, privacy.dataset, estimator.model_)
    if as_json:
        print_json(report | {"not_for_release": [name for name in _CURATORS if name in report]})
        return
    print_facts(_facts(estimator, report, output))
    print_text()
    if "heaviest" in report:
        print_weights(report["heaviest"], "The largest weights, for rows of length 1")
    print_promise(estimator.privacy_, explain=explain)
    store = store_of(train.X)
    if person_column is not None or (store is not None and store.knows_people):
        print_text(
            f"Of each person at most {estimator.rows_per_person:,} rows entered "
            "(--rows-per-person); the promise covers a person."
        )
    note = None if privacy.features is not None else _columns_note(train)
    for sentence in (note, better_method(training, estimator)):
        if sentence is not None:
            print_text(sentence)
    print_text()
    print_text(NOT_FOR_RELEASE)
    print_facts(_curators_facts(report, test_text))


def _refuse_other_rows(train: "Dataset", test: "Dataset", estimator: "Estimator") -> None:
    """Refuse test rows of other columns, and labels that the model will not know."""
    import numpy as np

    from dplasso.cli.metrics import check_known
    from dplasso.encoding.origin import check_same_origin, origin_of

    check_same_origin(origin_of(train.X), origin_of(test.X), test.source)
    params = estimator.get_params()
    if "classes" in params:
        known = np.unique(train.y) if params["classes"] is None else params["classes"]
        check_known(test.y, known, test.source)


def write_outputs(
    estimator: "Estimator", output: OutputOptions, temporary: str | None = None
) -> None:
    """Put the outputs in place: all of them or, where one fails, none.

    `temporary`: of the model, where room is held for it (`dplasso.files.room`).
    """
    from dplasso.model import write_model

    if output.statement is not None:
        write_file(output.statement, estimator.privacy_.to_json() + "\n")
    if output.model is not None:
        try:
            with naming(output.model):
                write_model(estimator.model_, output.model, temporary=temporary)
        except BaseException:
            if output.statement is not None:
                output.statement.unlink(missing_ok=True)
            raise


def _facts(estimator: "Estimator", report: dict[str, Any], output: OutputOptions) -> dict[str, str]:
    """Word what was trained and where it is."""
    written = [*output.paths()]
    if "checkpoint" in report:
        written.append(report["checkpoint"]["path"])
    paths = ", ".join(map(str, written))
    if output.model is None:
        nothing = paths + ", but no model" if written else "nothing"
        paths = f"{nothing} (give --model to keep the model)"
    return {"model": _model_text(estimator, report), "written": paths}


def _curators_facts(report: dict[str, Any], test_text: str | None) -> dict[str, str]:
    """Word what it was trained on, how good it is and how long it took."""
    facts = {"data": data_text(report)}
    if test_text is not None:
        facts["test"] = test_text
    if "ledger" in report:
        facts["ledger"] = left_sentence(report["ledger"])
    seconds = dict(report["seconds"])
    compiling = seconds.pop("compile")
    facts["seconds"] = ", ".join(f"{name} {spent:.2f}" for name, spent in seconds.items())
    if compiling > 0:
        facts["seconds"] += f"; compiling {compiling:.2f} of that"
    return facts


def _model_text(estimator: "Estimator", report: dict[str, Any]) -> str:
    """Word how many weights came of how many steps."""
    count = f"{report['n_nonzero']:,} non-zero weights after {estimator.n_iter_:,}"
    lasso = hasattr(estimator, "transcript_")
    refitted = f"{count} steps and a refit"
    if lasso and not estimator.n_iter_:
        # So few columns that all are taken.
        refitted = f"{report['n_nonzero']:,} non-zero weights after a refit of all columns"
    if "heaviest" not in report:
        radius = estimator.l1_radius
        rest = "no refit: their sizes say little" if radius == "auto" else f"L1 radius {radius:g}"
        return f"{count} steps, {rest}"
    if report["n_significant"] is None:
        return f"{refitted if lasso else f'{count} gradients'} without noise"
    if lasso:
        return f"{refitted}, {report['n_significant']:,} beyond 3 standard errors"
    from dplasso.model.weights import beyond_by_chance

    beyond = f"{report['n_significant']:,} beyond 3 standard errors"
    chance = beyond_by_chance(report["n_features"])
    # A short list was chosen by another run than the one that gave it its weights.
    if chance and not isinstance(estimator.max_weights, int):
        beyond += f" ({chance:,} by chance)"
    return f"{count} gradients, {beyond}"


def _columns_note(train: "Dataset") -> str | None:
    """Say where the number of columns came from, unless it was declared."""
    from dplasso.encoding.origin import origin_of

    origin = origin_of(train.X)
    if origin is not None and origin.schema is not None:
        return None
    columns = f"The number of columns ({train.X.shape[1]:,})"
    store = getattr(train.X, "store", None)
    if store is None:
        return (
            f"{columns} was taken from the file and is treated as public; declare it with "
            "--features."
        )
    declared = getattr(store, "columns_declared", None)
    if declared:
        return None
    if declared is None:
        return f"{columns} is that of the store and is treated as public."
    return (
        f"{columns} was taken from the data when the store was made and is treated as public; "
        "declare it with convert --features."
    )
