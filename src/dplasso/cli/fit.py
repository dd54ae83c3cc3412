"""``dplasso fit``: train on a file, report, write the model and its statement."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dplasso.cli import options
from dplasso.cli.checkpoints import kept_checkpoint
from dplasso.cli.files import check_outputs, write_text
from dplasso.cli.ledger import left_in, left_sentence
from dplasso.cli.options import DATA, MODEL, OUTPUT, PRIVACY
from dplasso.cli.output import (
    out,
    print_json,
    progress_bars,
    uninterrupted,
)
from dplasso.cli.reading import (
    Binarize,
    DataArgument,
    LabelMapOption,
    Labels,
    ZeroBased,
    check_known,
    classes_like,
    input_files,
    mapped_classes,
    meaning_of,
    parse_classes,
    read,
)
from dplasso.cli.training import train_with_bar

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


def fit(
    data: DataArgument,
    epsilon: options.Epsilon,
    delta: options.Delta = 1e-6,
    neighbors: options.Neighbors = "add-remove",
    feature_bound: options.FeatureBound = 1.0,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="NEG,POS",
            show_default=False,
            help="The two labels, as public knowledge. Default: the numbers of --label-map or, "
            "without it, taken from the file, which the statement then says.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--features",
            metavar="D",
            min=1,
            show_default=False,
            help="Number of columns, as public knowledge. Default: taken from the file.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            show_default=False,
            help="Make the run repeatable, for experiments: a seeded run is not private.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            help="exponential, or paper: the published algorithm, for reproduction only; "
            "it is not differentially private.",
            rich_help_panel=PRIVACY,
        ),
    ] = "exponential",
    ledger: options.Ledger = None,
    dataset: options.DatasetName = None,
    l1_radius: Annotated[
        float,
        typer.Option(
            "--l1-radius",
            metavar="R",
            help="Largest sum of |weight|.",
            rich_help_panel=MODEL,
        ),
    ] = 10.0,
    n_iter: options.Iterations = 100,
    no_intercept: Annotated[
        bool, typer.Option("--no-intercept", help="Leave the intercept out.", rich_help_panel=MODEL)
    ] = False,
    solver: Annotated[
        str | None,
        typer.Option(
            "--solver",
            show_default=False,
            help="sparse (default) or standard: same model, other cost.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    selector: Annotated[
        str | None,
        typer.Option(
            "--selector",
            show_default=False,
            help="How a column is drawn; every choice draws from the same distribution.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    drift_tol: Annotated[
        str | None,
        typer.Option(
            "--drift-tol",
            metavar="X",
            show_default=False,
            help="How stale a record's gradient may get in the sparse solver; 0: never, "
            "none: without limit; default: auto.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            show_default=False,
            help="Threads; never changes the model.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    binarize: Binarize = False,
    zero_based: ZeroBased = False,
    labels: Labels = None,
    label_map: LabelMapOption = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            metavar="DATA",
            show_default=False,
            help="Labelled rows to score the model on, for the curator: a file or a quoted "
            "pattern; may be given again for more.",
            rich_help_panel=DATA,
        ),
    ] = None,
    test_labels: Annotated[
        Path | None,
        typer.Option(
            "--test-labels",
            metavar="FILE",
            show_default=False,
            help="Labels of a --test .npz that holds none.",
            rich_help_panel=DATA,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="OUT",
            show_default=False,
            help="Write the model here (.npz). Default: nothing is written.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option(
            "--statement",
            metavar="OUT.json",
            show_default=False,
            help="Write the privacy statement here.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkpoint: options.CheckpointPath = None,
    checkpoint_seconds: options.CheckpointSeconds = 5.0,
    resume: options.Resume = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite existing outputs.", rich_help_panel=OUTPUT),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a private model on labelled sparse rows."""
    from dplasso import DPLassoClassifier

    declared = None if classes is None else parse_classes(classes)
    meaning = meaning_of(label_map)
    mapped = None if meaning is None or declared is not None else mapped_classes(meaning)
    test = test or []
    # Options that were not given keep the estimator's own defaults.
    chosen: dict[str, Any] = {"solver": solver, "selector": selector}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if drift_tol is not None:
        chosen["drift_tol"] = parse_drift_tol(drift_tol)
    estimator = DPLassoClassifier(
        epsilon,
        delta,
        l1_radius=l1_radius,
        n_iter=n_iter,
        feature_bound=feature_bound,
        neighbors=neighbors,
        fit_intercept=not no_intercept,
        mechanism=mechanism,
        random_state=seed,
        n_jobs=jobs,
        ledger=None if ledger is None else str(ledger),
        dataset=dataset,
        **chosen,
    )
    # Everything that can be refused is refused before the long work starts.
    _check_settings(estimator, resume=resume)
    inputs = input_files(data, labels) + input_files(test, test_labels)
    if ledger is not None:
        inputs.append(ledger)
    check_outputs([path for path in (model, statement) if path is not None], inputs, force=force)
    kept = kept_checkpoint(
        estimator,
        checkpoint,
        resume=resume,
        seconds=checkpoint_seconds,
        others=[*inputs, *(path for path in (model, statement) if path is not None)],
        force=force,
    )

    with kept as kept_fit, progress_bars() as bars:
        started = time.perf_counter()
        train = read(
            data,
            bars,
            n_features=features,
            zero_based=zero_based,
            labels=labels,
            label_map=meaning,
            binarize=binarize,
        )
        seconds = {"read": time.perf_counter() - started}
        if declared is not None:
            estimator.set_params(classes=classes_like(declared, train.y))
        elif mapped is not None:
            # Whoever says what every label means has declared the labels.
            estimator.set_params(classes=mapped)
        held_out = None
        if test:
            held_out = read(
                test,
                bars,
                n_features=train.X.shape[1],
                zero_based=zero_based,
                labels=test_labels,
                label_map=meaning,
                binarize=binarize,
            )
            check_known(held_out, estimator.classes, train.y)
        seconds |= train_with_bar(estimator, train.X, train.y, bars, "training", kept_fit.begin)

    scores = None
    if held_out is not None:
        from dplasso.cli.metrics import score

        scores = score(estimator, held_out.X, held_out.y, held_out.source)
    with uninterrupted():
        _write(estimator, model, statement)
        if model is not None:
            kept_fit.finish()
    report = {
        "n_samples": train.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        "n_nonzero": estimator.coef_.nnz,
        "seconds": seconds,
        "privacy": estimator.privacy_.to_dict(),
        "model": model,
    }
    if checkpoint is not None:
        report["checkpoint"] = {"path": checkpoint, "resumed_after": kept_fit.steps}
    if scores is not None:
        report["test"] = {
            "auc": scores.auc,
            "accuracy": scores.accuracy,
            "n_samples": scores.n_samples,
        }
    if ledger is not None:
        report["ledger"] = left_in(ledger, dataset, delta, n_iter)
    if as_json:
        print_json(report)
    else:
        _print_report(estimator, train, report, features_declared=features is not None)


def parse_drift_tol(text: str) -> float | str | None:
    """Read ``--drift-tol``: a number, or the word none or auto."""
    word = text.strip().lower()
    if word == "none":
        return None
    if word == "auto":
        return word
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--drift-tol {text!r} is neither a number nor none nor auto"
        ) from None


def _check_settings(estimator: "DPLassoClassifier", *, resume: bool) -> None:
    """Refuse settings that no data can make right."""
    estimator._check_parameters()
    from dplasso.privacy.ledger import check_affordable

    # Finds a delta too small for n_iter; the number of rows does not matter for that.
    mechanism = estimator._mechanism(n_samples=1)
    # A resumed fit has paid, as its checkpoint knows.
    if not resume:
        check_affordable(estimator.ledger, estimator.dataset, mechanism)


def _write(estimator: "DPLassoClassifier", model: Path | None, statement: Path | None) -> None:
    """Put the outputs in place: all of them or, where one fails, none."""
    if statement is not None:
        write_text(statement, estimator.privacy_.to_json() + "\n")
    if model is not None:
        try:
            estimator.save(model)
        except BaseException:
            if statement is not None:
                statement.unlink(missing_ok=True)
            raise


def _print_report(
    estimator: "DPLassoClassifier",
    train: "Dataset",
    report: dict[str, Any],
    *,
    features_declared: bool,
) -> None:
    """Print a fit for a person: what was trained, how good it is, what it promises."""
    seconds = report["seconds"]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row(
        "data",
        f"{report['n_samples']:,} rows, {report['n_features']:,} columns, "
        f"{report['nnz']:,} non-zeros",
    )
    table.add_row(
        "model",
        f"{report['n_nonzero']:,} non-zero weights after {estimator.n_iter_:,} iterations, "
        f"L1 radius {estimator.l1_radius:g}",
    )
    if "test" in report:
        auc = report["test"]["auc"]
        table.add_row(
            "test",
            f"AUC {'undefined (one class)' if auc is None else f'{auc:.4f}'}, "
            f"accuracy {report['test']['accuracy']:.4f} on {report['test']['n_samples']:,} rows",
        )
    if "ledger" in report:
        table.add_row("ledger", left_sentence(report["ledger"]))
    table.add_row("seconds", ", ".join(f"{name} {spent:.2f}" for name, spent in seconds.items()))
    table.add_row("written", str(report["model"] or "nothing (give --model to keep the model)"))
    out.print(table)
    out.print()
    out.print(estimator.privacy_.text(), markup=False, highlight=False)
    if not features_declared:
        out.print(
            f"The number of columns ({train.X.shape[1]:,}) was taken from the file and is treated "
            "as public; declare it with --features.",
            markup=False,
            highlight=False,
        )
