"""``dplasso evaluate``: how well a model predicts labelled rows."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.cli.clusters import ClusterOptions, over_stores, refuse_beside
from dplasso.cli.ledger_report import left_after, left_sentence
from dplasso.cli.options import examples
from dplasso.cli.output import (
    print_facts,
    print_json,
    print_promise,
    print_table,
    print_text,
    progress_bars,
)
from dplasso.cli.reading import ReadingOptions, read_for

if TYPE_CHECKING:
    from dplasso.tuning.scores import PrivateScore

EXAMPLES = examples(
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
    model: Path,
    data: list[str],
    reading: ReadingOptions,
    cluster: ClusterOptions,
    epsilon: float | None = None,
    delta: float = 1e-6,
    metric: str | None = None,
    neighbors: str = "add-remove",
    ledger: Path | None = None,
    dataset: str | None = None,
    purpose: str | None = None,
    random_state: int | None = None,
    explain: bool = False,
    as_json: bool = False,
) -> None:
    """Score a model: accuracy, AUC, log-loss, or R^2 of a regression; privately with --epsilon.

    Privacy
    -------
    epsilon : E
        Budget of one private score. Default: scores without noise.
    metric : METRIC
        The private score: accuracy (default), auc, log_loss or calibration; for a regression mae
        (default) or r2.
    """
    import dplasso
    from dplasso.cli.metrics import print_scores, score
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
        if epsilon is None:
            scores = score(fitted, rows.X, rows.y, rows.source)
        else:
            private = dplasso.private_score(
                fitted,
                rows.X,
                rows.y,
                epsilon,
                delta,
                metric=metric or ("accuracy" if hasattr(fitted, "classes_") else "mae"),
                neighbors=neighbors,
                random_state=random_state,
                ledger=ledger,
                dataset=dataset,
                purpose=purpose,
            )
    if epsilon is not None:
        left = None if ledger is None else left_after(ledger, dataset, private.privacy)
        _report(private, left, explain=explain, as_json=as_json)
    elif as_json:
        print_json({**asdict(scores), "private": False})
    else:
        print_scores(scores)
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
