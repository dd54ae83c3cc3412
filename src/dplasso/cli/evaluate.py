"""``dplasso evaluate``: how well a model predicts labelled rows."""

from dataclasses import asdict

from rich.table import Table

from dplasso.cli import options
from dplasso.cli.output import out, print_json, progress_bars
from dplasso.cli.reading import (
    Binarize,
    DataArgument,
    LabelMapOption,
    Labels,
    ModelArgument,
    ZeroBased,
    meaning_of,
    read,
)

EXAMPLES = options.examples(
    "dplasso evaluate model.npz test.svm.gz",
    "dplasso evaluate model.npz test.npz --labels labels.npy --json",
    note="Scores on private rows are computed without noise: they are for the curator, not for "
    "release. Give --binarize here if the model was fitted with it.",
)


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    binarize: Binarize = False,
    zero_based: ZeroBased = False,
    labels: Labels = None,
    label_map: LabelMapOption = None,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on labelled rows: accuracy, AUC, log-loss."""
    import dplasso
    from dplasso.cli.metrics import score

    meaning = meaning_of(label_map)
    fitted = dplasso.load(model)
    with progress_bars() as bars:
        rows = read(
            data,
            bars,
            n_features=fitted.n_features_in_,
            zero_based=zero_based,
            labels=labels,
            label_map=meaning,
            binarize=binarize,
        )
    scores = score(fitted, rows.X, rows.y, rows.source)
    if as_json:
        print_json(asdict(scores))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("rows", f"{scores.n_samples:,}")
    table.add_row("accuracy", f"{scores.accuracy:.4f}")
    table.add_row("  of the majority class", f"{scores.majority_accuracy:.4f}")
    table.add_row("AUC", "undefined (one class)" if scores.auc is None else f"{scores.auc:.4f}")
    table.add_row("log-loss", f"{scores.log_loss:.4f}")
    out.print(table)
