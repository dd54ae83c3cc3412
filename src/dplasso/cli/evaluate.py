"""``dplasso evaluate``: how well a model predicts labelled rows."""

from dataclasses import asdict

from dplasso.cli import options
from dplasso.cli.output import print_facts, print_json, print_table, progress_bars
from dplasso.cli.reading import DataArgument, ModelArgument, ReadingOptions, read

# Classes of a table that a screen holds; JSON has them all.
_MOST_SHOWN = 12

EXAMPLES = options.examples(
    "dplasso evaluate model.npz test.svm.gz",
    "dplasso evaluate model.npz test.npz --labels labels.npy --json",
    note="Scores on private rows are computed without noise: they are for the curator, not for "
    "release. Give --binarize here if the model was fitted with it.",
)


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    reading: ReadingOptions,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on labelled rows: accuracy, AUC, log-loss; R^2 of a regression."""
    import dplasso
    from dplasso.cli.metrics import RegressionScores, auc_text, r2_text, score
    from dplasso.data.source_files import expand

    files, fitted = expand(data), dplasso.load(model)
    with progress_bars() as bars:
        rows = read(files, bars, reading, fitted.n_features_in_)
        scores = score(fitted, rows.X, rows.y, rows.source)
    if as_json:
        print_json(asdict(scores))
        return
    if isinstance(scores, RegressionScores):
        numbers = {
            "rows": f"{scores.n_samples:,}",
            "R^2": r2_text(scores.r2),
            "mean absolute error": f"{scores.mae:.4g}",
        }
        print_facts(numbers, right=True)
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
