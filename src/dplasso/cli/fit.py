"""``dplasso fit``: train on a file, report, write the model and its statement."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.checkpoints import kept_checkpoint
from dplasso.cli.files import check_outputs, naming, write_file
from dplasso.cli.ledger import left_in, left_sentence
from dplasso.cli.options import DATA, MODEL, OUTPUT, PRIVACY, flag, option
from dplasso.cli.output import (
    Bars,
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
from dplasso.cli.stores import data_text
from dplasso.cli.training import check_before_reading, train_with_bar

if TYPE_CHECKING:
    from dplasso import DPLassoClassifier
    from dplasso.data.files import Dataset

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
    note="Row counts, seconds and test scores are for the curator. They are computed without "
    "noise and are no part of the release: what may be released is the model and its "
    "statement.",
)


@dataclass(frozen=True)
class PrivacyOptions:
    """What is promised to whom, and what is declared as public."""

    epsilon: options.Epsilon
    delta: options.Delta = 1e-6
    neighbors: options.Neighbors = "add-remove"
    feature_bound: options.FeatureBound = 1.0
    classes: Annotated[
        str | None,
        option(
            "--classes",
            "The two labels, as public knowledge. Default: the numbers of --label-map or, "
            "without it, taken from the file, which the statement then says.",
            "NEG,POS",
            PRIVACY,
        ),
    ] = None
    features: Annotated[
        int | None,
        option(
            "--features",
            "Number of columns, as public knowledge. Default: taken from the file.",
            "D",
            PRIVACY,
            min=1,
        ),
    ] = None
    seed: options.Seed = None
    mechanism: Annotated[
        str,
        option(
            "--mechanism",
            "exponential, or paper: the published algorithm, for reproduction only; "
            "it is not differentially private.",
            panel=PRIVACY,
        ),
    ] = "exponential"
    ledger: options.Ledger = None
    dataset: options.DatasetName = None


@dataclass(frozen=True)
class ModelOptions:
    """What is trained and how; None keeps the estimator's own default."""

    l1_radius: Annotated[float, option("--l1-radius", "Largest sum of |weight|.", "R", MODEL)] = (
        10.0
    )
    n_iter: options.Iterations = 100
    no_intercept: Annotated[bool, flag("--no-intercept", "Leave the intercept out.", MODEL)] = False
    solver: Annotated[
        str | None,
        option("--solver", "sparse (default) or standard: same model, other cost.", panel=MODEL),
    ] = None
    selector: Annotated[
        str | None,
        option(
            "--selector",
            "How a column is drawn; every choice draws from the same distribution.",
            panel=MODEL,
        ),
    ] = None
    drift_tol: Annotated[
        str | None,
        option(
            "--drift-tol",
            "How stale a record's gradient may get in the sparse solver; 0: never, "
            "none: without limit; default: auto.",
            "X",
            MODEL,
        ),
    ] = None
    jobs: Annotated[
        int | None, option("--jobs", "Threads; never changes the model.", "N", MODEL)
    ] = None


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
            "--model", "Write the model here (.npz). Default: nothing is written.", "OUT", OUTPUT
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
    explain: options.Explain = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a private model on labelled sparse rows."""
    from dplasso.data.source_files import expand

    # Everything that can be refused is refused before the long work starts.
    declared = None if privacy.classes is None else parse_classes(privacy.classes)
    meaning = reading.meaning()
    mapped = None if meaning is None or declared is not None else mapped_classes(meaning)
    estimator = _estimator(privacy, training)
    check_before_reading(estimator, paid=interruptions.resume)
    files, test_files = expand(data), expand(testing.test) if testing.test else []
    beside = (reading.labels, testing.test_labels, privacy.ledger)
    inputs = [*files, *test_files, *(path for path in beside if path is not None)]
    check_outputs(output.paths(), inputs, force=output.force)
    kept = kept_checkpoint(
        estimator, interruptions, others=[*inputs, *output.paths()], force=output.force
    )

    with kept as kept_fit, progress_bars() as bars:
        started = time.perf_counter()
        train = read(files, bars, reading, privacy.features)
        seconds = {"read": time.perf_counter() - started}
        if declared is not None:
            estimator.set_params(classes=classes_like(declared, train.y))
        elif mapped is not None:
            # Whoever says what every label means has declared the labels.
            estimator.set_params(classes=mapped)
        held_out, scores = None, None
        if test_files:
            held_out = _read_test(test_files, bars, reading, testing, train, estimator.classes)
        seconds |= train_with_bar(estimator, train.X, train.y, bars, "training", kept_fit.begin)
        if held_out is not None:
            from dplasso.cli.metrics import score

            scores = score(estimator, held_out.X, held_out.y, held_out.source)
    with uninterrupted():
        _write(estimator, output)
        if output.model is not None:
            kept_fit.finish()
    report = {
        "n_samples": train.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        "n_nonzero": estimator.coef_.nnz,
        "seconds": seconds,
        "privacy": estimator.privacy_.to_dict(),
        "model": output.model,
        "statement": output.statement,
    }
    if interruptions.checkpoint is not None:
        report["checkpoint"] = {
            "path": interruptions.checkpoint,
            "resumed_after": kept_fit.steps,
        }
    if scores is not None:
        report["test"] = {
            "auc": scores.auc,
            "accuracy": scores.accuracy,
            "n_samples": scores.n_samples,
        }
    if privacy.ledger is not None:
        report["ledger"] = left_in(privacy.ledger, privacy.dataset, privacy.delta, training.n_iter)
    if as_json:
        print_json(report)
        return
    print_facts(_facts(estimator, report, output))
    print_text()
    print_promise(estimator.privacy_, explain=explain)
    note = None if privacy.features is not None else _columns_note(train)
    if note is not None:
        print_text(note)


def _estimator(privacy: PrivacyOptions, training: ModelOptions) -> "DPLassoClassifier":
    """Make the estimator; options that were not given keep its own defaults."""
    from dplasso import DPLassoClassifier

    chosen: dict[str, Any] = {"solver": training.solver, "selector": training.selector}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if training.drift_tol is not None:
        chosen["drift_tol"] = parse_drift_tol(training.drift_tol)
    return DPLassoClassifier(
        privacy.epsilon,
        privacy.delta,
        l1_radius=training.l1_radius,
        n_iter=training.n_iter,
        feature_bound=privacy.feature_bound,
        neighbors=privacy.neighbors,
        fit_intercept=not training.no_intercept,
        mechanism=privacy.mechanism,
        random_state=privacy.seed,
        n_jobs=training.jobs,
        ledger=None if privacy.ledger is None else str(privacy.ledger),
        dataset=privacy.dataset,
        **chosen,
    )


def parse_drift_tol(text: str) -> float | str | None:
    """Read ``--drift-tol``: a number, or the word none or auto."""
    word = text.strip().lower()
    if word in ("none", "auto"):
        return None if word == "none" else word
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--drift-tol {text!r} is neither a number nor none nor auto"
        ) from None


def _read_test(
    files: list[Path],
    bars: Bars,
    reading: ReadingOptions,
    testing: TestOptions,
    train: "Dataset",
    classes: Any,
) -> "Dataset":
    """Read the test rows as the training rows were; refuse labels that the model will not know."""
    import numpy as np

    from dplasso.cli.metrics import check_known

    same = replace(reading, labels=testing.test_labels)
    rows = read(files, bars, same, train.X.shape[1])
    check_known(rows.y, np.unique(train.y) if classes is None else classes, rows.source)
    return rows


def _write(estimator: "DPLassoClassifier", output: OutputOptions) -> None:
    """Put the outputs in place: all of them or, where one fails, none."""
    if output.statement is not None:
        write_file(output.statement, estimator.privacy_.to_json() + "\n")
    if output.model is not None:
        try:
            with naming(output.model):
                estimator.save(output.model)
        except BaseException:
            if output.statement is not None:
                output.statement.unlink(missing_ok=True)
            raise


def _facts(
    estimator: "DPLassoClassifier", report: dict[str, Any], output: OutputOptions
) -> dict[str, str]:
    """Word what was trained, how good it is and where it is."""
    facts = {
        "data": data_text(report),
        "model": f"{report['n_nonzero']:,} non-zero weights after {estimator.n_iter_:,} "
        f"iterations, L1 radius {estimator.l1_radius:g}",
    }
    if "test" in report:
        from dplasso.cli.metrics import auc_text

        test = report["test"]
        facts["test"] = (
            f"AUC {auc_text(test['auc'])}, accuracy {test['accuracy']:.4f} on "
            f"{test['n_samples']:,} rows"
        )
    if "ledger" in report:
        facts["ledger"] = left_sentence(report["ledger"])
    seconds = dict(report["seconds"])
    compiling = seconds.pop("compile")
    facts["seconds"] = ", ".join(f"{name} {spent:.2f}" for name, spent in seconds.items())
    if compiling > 0:
        facts["seconds"] += f"; compiling {compiling:.2f} of that"
    written = [*output.paths()]
    if "checkpoint" in report:
        written.append(report["checkpoint"]["path"])
    facts["written"] = ", ".join(map(str, written))
    if output.model is None:
        nothing = facts["written"] + ", but no model" if written else "nothing"
        facts["written"] = f"{nothing} (give --model to keep the model)"
    return facts


def _columns_note(train: "Dataset") -> str | None:
    """Say where the number of columns came from, unless it was declared."""
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
