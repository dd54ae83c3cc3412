"""``dplasso evaluate``: how well a model predicts labelled rows."""

from dataclasses import asdict

from dplasso.cli import options
from dplasso.cli.output import print_facts, print_json, progress_bars
from dplasso.cli.reading import DataArgument, ModelArgument, ReadingOptions, read_for

EXAMPLES = options.examples(
    "dplasso evaluate model.npz test.svm.gz",
    "dplasso evaluate model.npz test.npz --labels labels.npy --json",
    note="Scores on private rows are computed without noise: they are for the curator, not for "
    "release. A model knows how its rows were encoded and made binary, so DATA is given raw.",
)


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    reading: ReadingOptions,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on labelled rows: accuracy, AUC, log-loss."""
    import dplasso
    from dplasso.cli.metrics import auc_text, score
    from dplasso.data.source_files import expand

    files, fitted = expand(data), dplasso.load(model)
    with progress_bars() as bars:
        rows = read_for(fitted, files, bars, reading, labelled=True)
        scores = score(fitted, rows.X, rows.y, rows.source)
    if as_json:
        print_json(asdict(scores))
        return
    facts = {
        "rows": f"{scores.n_samples:,}",
        "accuracy": f"{scores.accuracy:.4f}",
        "  of the majority class": f"{scores.majority_accuracy:.4f}",
        "AUC": auc_text(scores.auc),
        "log-loss": f"{scores.log_loss:.4f}",
    }
    print_facts(facts, right=True)
