"""``dplasso evaluate``: how well a model predicts labelled rows."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from dplasso.cli import options
from dplasso.cli.clusters import ClusterOptions, over_stores, refuse_beside
from dplasso.cli.ledger_report import left_after, left_sentence
from dplasso.cli.options import PRIVACY, option
from dplasso.cli.output import (
    print_facts,
    print_json,
    print_promise,
    print_table,
    print_text,
    progress_bars,
)
from dplasso.cli.reading import DataArgument, ModelArgument, ReadingOptions, read_for

if TYPE_CHECKING:
    from dplasso.tuning.scores import PrivateScore

# Classes of a table that a screen holds; JSON has them all.
_MOST_SHOWN = 12

EXAMPLES = options.examples(
    "dplasso evaluate model.npz test.svm.gz",
    "dplasso evaluate model.npz test.svm.gz --epsilon 0.1 --metric auc",
    "dplasso evaluate model.npz test.npz --labels labels.npy --json",
    note="Without --epsilon, scores are computed without noise: they are for the curator, not for "
    "release. A model knows how its rows were encoded and made binary, so DATA is given raw.",
)
_NOT_PRIVATE = (
    "These scores are not private: they are for the curator, not for release. --epsilon makes one "
    "that is."
)


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    reading: ReadingOptions,
    cluster: ClusterOptions,
    epsilon: Annotated[
        float | None,
        option("--epsilon", "Budget of one private score. Default: scores without noise.", "E"),
    ] = None,
    delta: options.Delta = 1e-6,
    metric: Annotated[
        str | None,
        option(
            "--metric",
            "The private score: accuracy (default), auc, log_loss or calibration; for a "
            "regression mae (default) or r2.",
            "METRIC",
            PRIVACY,
        ),
    ] = None,
    neighbors: options.Neighbors = "add-remove",
    ledger: options.Ledger = None,
    dataset: options.DatasetName = None,
    purpose: options.Purpose = None,
    seed: options.Seed = None,
    explain: options.Explain = False,
    as_json: options.AsJson = False,
) -> None:
    """Score a model: accuracy, AUC, log-loss, or R^2 of a regression; privately with --epsilon."""
    import dplasso
    from dplasso.cli.metrics import RegressionScores, auc_text, r2_text, score
    from dplasso.data.files import Dataset
    from dplasso.data.source_files import expand

    if epsilon is None:
        of_private = {"metric": metric, "ledger": ledger, "dataset": dataset, "purpose": purpose}
        for name, given in of_private.items():
            if given is not None:
                raise ValueError(f"--{name} is for a private score, which needs --epsilon")
    files = expand(data) if cluster.cluster is None else []
    fitted: Any = dplasso.load(model)
    with progress_bars() as bars:
        if cluster.cluster is None:
            rows = read_for(fitted, files, bars, reading, labelled=True)
        else:
            refuse_beside({"--epsilon": epsilon is not None})
            fitted, stores, targets = over_stores(fitted, model, data, cluster, bars)
            rows = Dataset(stores, targets, f"{len(stores.stores)} stores")
        if epsilon is not None:
            private = dplasso.private_score(
                fitted,
                rows.X,
                rows.y,
                epsilon,
                delta,
                metric=metric or ("accuracy" if fitted.privacy_.n_classes else "mae"),
                neighbors=neighbors,
                random_state=seed,
                ledger=ledger,
                dataset=dataset,
                purpose=purpose,
            )
            left = None if ledger is None else left_after(ledger, dataset, private.privacy)
            _report(private, left, explain=explain, as_json=as_json)
            return
        scores = score(fitted, rows.X, rows.y, rows.source)
    if as_json:
        print_json({**asdict(scores), "private": False})
        return
    if isinstance(scores, RegressionScores):
        numbers = {
            "rows": f"{scores.n_samples:,}",
            "R^2": r2_text(scores.r2),
            "mean absolute error": f"{scores.mae:.4g}",
        }
        print_facts(numbers, right=True)
        print_text(_NOT_PRIVATE)
        return
    facts = {
        "rows": f"{scores.n_samples:,}",
        "accuracy": f"{scores.accuracy:.4f}",
        "  of the majority class": f"{scores.majority_accuracy:.4f}",
        "AUC" if len(scores.classes) == 2 else "macro AUC": auc_text(scores.auc),
        "log-loss": f"{scores.log_loss:.4f}",
    }
    print_facts(facts, right=True)
    if 2 < len(scores.classes) <= _MOST_SHOWN:
        labels = [f"{c:g}" if isinstance(c, float) else str(c) for c in scores.classes]
        headings = ["class", *(f">{label}" for label in labels)]
        table = [
            [label, *(f"{count:,}" for count in counts)]
            for label, counts in zip(labels, scores.confusion, strict=True)
        ]
        print_table(headings, table, title="Rows of each class by the class predicted")
    print_text(_NOT_PRIVATE)


def _report(
    score: "PrivateScore", left: dict[str, Any] | None, *, explain: bool, as_json: bool
) -> None:
    """Print a private score, which is all that may be said of the rows: not their number."""
    if as_json:
        told = {**score.to_dict(), "private": score.privacy.is_private}
        print_json(told if left is None else {**told, "ledger": left})
        return
    name = "share of the second class" if score.curve else score.metric
    facts = {
        name: f"{score.value:.4f}  ({score.confidence:.0%} interval {score.low:.4f} to "
        f"{score.high:.4f}, noise included)"
    }
    if left is not None:
        facts["ledger"] = left_sentence(left)
    print_facts(facts)
    if score.curve:
        rows = [
            [
                f"{point.predicted_low:.1f} to {point.predicted_high:.1f}",
                f"{point.rows:,.0f}",
                f"{point.observed:.3f}",
                f"{point.low:.3f} to {point.high:.3f}",
            ]
            for point in score.curve
        ]
        print_table(["predicted", ">rows", ">observed", "interval"], rows)
    print_text()
    print_promise(score.privacy, explain=explain)
