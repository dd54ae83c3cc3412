"""``dplasso fit``: train on a file, report, write the model and its statement."""

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from dplasso.cli import output
from dplasso.cli.checkpoints import (
    CheckpointOptions,
    Keeping,
    checkpoint_of,
    kept_checkpoint,
    refuse_finished,
    refuse_unfinished,
)
from dplasso.cli.clusters import ClusterOptions, read_partitions
from dplasso.cli.inputs import BESIDE_CLUSTER, ReadingOptions, refuse
from dplasso.cli.ledger_report import left_after, left_sentence
from dplasso.cli.scoring import numbers_in, score, scores_text
from dplasso.cli.training import EstimatorOptions, train_with_bar
from dplasso.data.formats import Dataset
from dplasso.data.source_files import expand
from dplasso.data.store import Store
from dplasso.encoding.origin import columns_declared, origin_of
from dplasso.encoding.schema import Schema
from dplasso.encoding.suggest import coverage_notes
from dplasso.estimators.base import PrivateLinearModel
from dplasso.estimators.fitting import method_of
from dplasso.estimators.predictions import with_odds
from dplasso.fit.run import Hooks
from dplasso.ledger import check_affordable
from dplasso.model import write_model
from dplasso.model.weights import beyond_by_chance, count_of, signs, weights_of
from dplasso.report.page import cautions_about

HEAVIEST = 10
# Entries of the JSON document that depend on the data without noise, or on other fits.
_CURATORS = ("n_samples", "nnz", "seconds", "test", "checkpoint", "ledger", "remarks")
_SCORES = ("auc", "accuracy", "r2", "mae", "n_samples")


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """All options of the command but those of the report.

    Data
    ----
    test : DATA
        Labelled rows to score the model on, for the curator only: a file or a quoted pattern. You
        can repeat the option.

    Output
    ------
    model : OUT
        Write the model here (.npz); needed with --ledger. Default: nothing is written.
    """

    data: list[str]
    wanted: EstimatorOptions
    reading: ReadingOptions
    test: list[str] | None = None
    model: Path | None = None
    force: bool = False
    interruptions: CheckpointOptions
    cluster: ClusterOptions
    person_column: str | None = None

    @property
    def place(self) -> Path | None:
        """The checkpoint: as named, or beside the model that a ledger pays for."""
        kept, model = self.interruptions, self.model
        if kept.checkpoint is None and model is not None:
            place = checkpoint_of(model)
            if self.wanted.ledger is not None or (kept.resume and place.exists()):
                return place
        if kept.checkpoint is None and kept.resume:
            raise typer.BadParameter("--resume needs --checkpoint PATH: the checkpoint to resume")
        return kept.checkpoint

    @property
    def beside(self) -> tuple[Path | None, ...]:
        """Files that are read besides the data."""
        return (*self.reading.beside, *self.wanted.beside)


@dataclass(frozen=True)
class _Fitted:
    """The results of a fit: those that may be released, and those for the curator only."""

    estimator: PrivateLinearModel
    train: Dataset
    scores: dict[str, Any] | None
    seconds: dict[str, float]
    resumed_after: int | None


def fit(asked: FitOptions, explain: bool = False) -> output.Result:
    """Train a private model on labelled rows: sparse files, tables or stores.

    Most needed
    -----------
    epsilon, delta, model, method, classes, target_bounds, schema, test, ledger, dataset,
    explain

    Examples
    --------
    dplasso fit train.svm.gz --epsilon 1 --model model.npz
    dplasso fit train.svm.gz --epsilon 1 --binarize --classes 0,1 --test test.svm.gz
    dplasso fit table.csv --schema schema.json --epsilon 1 --model model.npz    (after: dplasso
        schema draft table.csv > schema.json, and editing it)
    dplasso fit train.store --epsilon 1 --model model.npz    (after: dplasso convert train.svm.gz
        train.store)
    dplasso fit 'part-*.svm.gz' --epsilon 1 --model model.npz
    dplasso fit train.svm.gz --epsilon 1 --ledger team.ledger --dataset visits --model model.npz
    dplasso fit counts.npz --labels labels.npy --epsilon 0.5 --json
    dplasso fit train.svm --epsilon 1 --model m.npz --checkpoint c.npz    (killed? the same again
        with --resume)
    dplasso fit train.svm.gz --epsilon 1 --max-weights 30 --model model.npz
    dplasso fit table.csv --schema schema.json --epsilon 1 --row-norm 3 --infer all --model m.npz
    dplasso fit train.svm.gz --epsilon 1 --method lasso --model model.npz
    dplasso fit stores/ --cluster auto --epsilon 1 --classes 0,1 --checkpoint c.npz --model m.npz
        (after: dplasso convert part-1.svm stores/part-1.store --features 1000000, and the others)
    dplasso fit train.svm.gz --epsilon 0.3 --prior last-year.npz --model model.npz
    dplasso fit train.csv --schema schema.json --epsilon 0.3 --prior weights.csv --model model.npz
    dplasso fit train.svm.gz --epsilon 0.3 --public-data public.svm.gz --model model.npz
    dplasso fit train.svm.gz --epsilon 0.3 --public-rows unlabelled.svm.gz --model model.npz
    dplasso fit s3://bucket/stores/ --cluster auto --epsilon 1 --classes 0,1 --model m.npz

    Row counts, seconds and test scores are for the curator. They are computed without noise and are
    not part of the release: what may be released is the model and its statement.
    """
    estimator, schema, files, tests = _checked(asked)
    inputs = (*files, *tests, asked.model, *asked.beside)
    keeping = kept_checkpoint(asked.interruptions, asked.place, inputs, force=asked.force)
    with keeping as kept, output.progress_bars() as bars:
        fitted = _trained(asked, estimator, schema, files, tests, kept, bars)
        with output.uninterrupted():
            if asked.model is not None:
                write_model(estimator.model_, asked.model)
                kept.finish()
    report = _report(fitted, asked)
    curators = [name for name in _CURATORS if name in report]
    if not columns_declared(fitted.estimator.model_.origin):
        curators.append("n_features")
    show = partial(_print, fitted, report, asked, explain=explain)
    return output.Result(report | {"not_for_release": curators}, show)


def _checked(asked: FitOptions) -> tuple[PrivateLinearModel, Schema | None, list[Path], list[Path]]:
    """Refuse what is wrong before the work; return estimator, schema, data and test files."""
    wanted, reading, model = asked.wanted, asked.reading, asked.model
    schema = reading.declared()
    estimator = wanted.estimator()
    if asked.person_column is not None and "rows_per_person" not in wanted.parameters:
        raise typer.BadParameter(
            "--person-column needs --rows-per-person M: how many rows of one person may enter"
        )
    if wanted.ledger is not None and model is None:
        raise typer.BadParameter(
            "--ledger needs --model OUT: the ledger pays for a model, so write it"
        )
    resume = asked.interruptions.resume
    if resume:
        refuse_finished(asked.interruptions.checkpoint, model)
    elif not asked.force:
        refuse_unfinished(asked.place, model)
    # A fit that is resumed was charged already; its checkpoint checks the settings.
    if not resume:
        method = method_of(estimator)
        # Refuses a delta that is too small for n_iter, whatever the size of the data.
        cost = method.cost()
        if schema is not None and schema.edges is not None:
            by_person, seeded = asked.person_column is not None, wanted.random_state is not None
            cost = schema.edges.before(cost, seeded=seeded, by_person=by_person)
        check_affordable(method.ledger, cost)
    tests = asked.test or []
    if asked.cluster.cluster is not None:
        refuse({"--test": bool(tests), "--labels": reading.labels}, BESIDE_CLUSTER)
    files = expand(asked.data) if asked.cluster.cluster is None else []
    wanted.refuse_private(files)
    test_files = expand(tests) if tests else []
    again = ", which is charged again" if wanted.ledger is not None and not resume else ""
    inputs = (*files, *test_files, *asked.beside)
    output.check_outputs([model] if model else [], inputs, force=asked.force, again=again)
    return estimator, schema, files, test_files


def _trained(
    asked: FitOptions,
    estimator: PrivateLinearModel,
    schema: Schema | None,
    files: list[Path],
    tests: list[Path],
    kept: Keeping,
    bars: output.Bars,
) -> _Fitted:
    """Read the rows, train on them, and score the model on those of --test."""
    started, reading, wanted = time.perf_counter(), asked.reading, asked.wanted
    engine, rows, labels, scores = asked.cluster.engine, None, None, None
    if engine is None:
        person = asked.person_column
        train = reading.read(files, bars, wanted.features, schema, person_column=person)
        rows, labels = train.X, train.y
    else:
        train = read_partitions(asked.data, reading, wanted.features)
        rows = train.X.places
    seconds = {"read": time.perf_counter() - started}
    wanted.declare(estimator, train.y)
    wanted.read_public(estimator, reading, train, bars, schema)
    if tests:
        beside, like = replace(reading, labels=None), origin_of(train.X)
        test = beside.read(tests, bars, train.X.shape[1], schema, like)
        if "classes" in (params := estimator.get_params()):
            classes = np.unique(train.y) if params["classes"] is None else params["classes"]
            numbers_in(test.source, test.y, classes)
    hooks = Hooks(checkpoints=kept.begin, cautioned=output.cautions)
    more = {"groups": train.people, "engine": engine}
    seconds |= train_with_bar(estimator, rows, labels, bars, "training", hooks, **more)
    if tests:
        scores = score(estimator, test.X, test.y, test.source)
    return _Fitted(estimator, train, scores, seconds, kept.steps)


def _report(fitted: _Fitted, asked: FitOptions) -> dict[str, Any]:
    estimator, train, wanted = fitted.estimator, fitted.train, asked.wanted
    weights = weights_of(estimator.model_)
    report: dict[str, Any] = {
        "n_samples": train.X.shape[0],
        "n_features": train.X.shape[1],
        "nnz": train.X.nnz,
        "n_nonzero": len(weights),
        "seconds": fitted.seconds,
        "privacy": estimator.privacy_.to_dict(),
        "cautions": output.cautions_json(cautions_about(estimator.model_)),
        "model": asked.model,
    }
    if hasattr(estimator, "coef_standard_error_"):
        report |= {
            "standard_error": float(np.max(estimator.coef_standard_error_, initial=0.0)),
            "n_significant": None if weights.clear is None else int(weights.clear.sum()),
            "heaviest": with_odds(estimator.model_, weights.top(HEAVIEST)),
        }
    report |= output.inferred(getattr(estimator, "inference_", None))
    if (path := asked.interruptions.checkpoint) is not None:
        report["checkpoint"] = {"path": path, "resumed_after": fitted.resumed_after}
    if fitted.scores is not None:
        scores = fitted.scores.items()
        report["test"] = {name: value for name, value in scores if name in _SCORES}
    if remarks := _schema_remarks(train):
        report["remarks"] = remarks
    if wanted.ledger is not None:
        report["ledger"] = left_after(wanted.ledger, wanted.dataset, estimator.model_.digest)
    return report


def _print(fitted: _Fitted, report: dict[str, Any], asked: FitOptions, *, explain: bool) -> None:
    """Print a fit: first what may be released, then what may not."""
    estimator, train = fitted.estimator, fitted.train
    model = asked.model
    written = "nothing (give --model to keep the model)" if model is None else str(model)
    if "checkpoint" in report:
        written += f", checkpoint {report['checkpoint']['path']}"
    public = {
        "starts from": estimator.privacy_.prior,
        "public rows": estimator.privacy_.public_rows,
    }
    facts = {"model": _model_text(estimator, report)} | {k: v for k, v in public.items() if v}
    output.facts(facts | {"written": written})
    output.text()
    if "heaviest" in report:
        title = "The largest weights, for rows of length 1"
        output.weights(report["heaviest"], title, signs(estimator.model_))
    output.inference(getattr(estimator, "inference_", None))
    output.promise(estimator.privacy_, explain=explain)
    known = isinstance(train.X, Store) and train.X.knows_people
    if asked.person_column is not None or known:
        rows = "1 row" if (most := estimator.rows_per_person) == 1 else f"{most:,} rows"
        output.text(f"The fit used at most {rows} of each person (--rows-per-person).")
    output.text()
    output.text(output.NOT_FOR_RELEASE)
    facts = {"data": output.data_text(report)}
    if remarks := report.get("remarks"):
        facts["schema"] = f"{'; '.join(remarks)}. Check that the schema fits this table."
    if fitted.scores is not None:
        facts["test"] = scores_text(fitted.scores)
    if "ledger" in report:
        facts["ledger"] = left_sentence(report["ledger"])
    spent = [f"{name} {time:.2f}" for name, time in fitted.seconds.items() if name != "compile"]
    compiling = fitted.seconds["compile"]
    more = f"; compiling {compiling:.2f} of that" if compiling > 0 else ""
    output.facts(facts | {"seconds": ", ".join(spent) + more})


def _model_text(estimator: PrivateLinearModel, report: dict[str, Any]) -> str:
    """Say how many weights and steps the model has."""
    weights, steps = count_of(weights_of(estimator.model_)), estimator.n_iter_
    if "heaviest" not in report:
        radius = getattr(estimator, "l1_radius", None)
        rest = "no refit, so ignore their sizes" if radius is None else f"L1 radius {radius:g}"
        return f"{weights} after {steps:,} steps, {rest}"
    made, lasso = f"{steps:,} gradients", hasattr(estimator, "transcript_")
    if lasso:
        # If there are few columns, the fit takes all and draws none.
        made = f"{steps:,} steps and a refit" if steps else "a refit of all columns"
    if report["n_significant"] is None:
        return f"{weights} after {made} without noise"
    beyond = f"{report['n_significant']:,} beyond 3 standard errors"
    # A short list was chosen by other gradients than those that gave it its weights.
    if not (lasso or isinstance(estimator.max_weights, int)):
        chance = beyond_by_chance(report["n_nonzero"])
        beyond += f" ({chance:,} by chance)" if chance else ""
    return f"{weights} after {made}, {beyond}"


def _schema_remarks(train: Dataset) -> list[str]:
    """Name the parts of a schema that no row fell into; none for rows on a cluster."""
    origin, X = origin_of(train.X), train.X
    if origin is None or origin.schema is None:
        return []
    if isinstance(X, Store):
        counts = X.column_counts()
    elif hasattr(X, "indices"):
        counts = np.bincount(X.indices, minlength=X.shape[1])
    else:
        return []
    return coverage_notes(origin.schema, counts, int(X.shape[0]))
