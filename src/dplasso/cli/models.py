"""``dplasso predict``, ``explain`` and ``evaluate``."""

import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

import dplasso
from dplasso.cli import output
from dplasso.cli.inputs import ReadingOptions
from dplasso.cli.ledger_report import left_after, left_sentence
from dplasso.cli.scoring import print_scores, score
from dplasso.cli.training import chosen_ledger
from dplasso.data.formats import Dataset, is_table
from dplasso.data.source_files import expand
from dplasso.data.store import Store
from dplasso.encoding.origin import with_origin
from dplasso.errors import DataError
from dplasso.estimators.record_wise import split
from dplasso.tuning.comparison import PrivateComparison, compared
from dplasso.tuning.scores import PrivateScore

_ENCODER = ["dplasso.encoding.encoder.PublicEncoder"]
_NOT_PRIVATE = (
    "These scores are not private: do not release them. Use --epsilon to compute a private score."
)


@dataclass(frozen=True)
class Applied:
    """A model, and the rows to apply it to."""

    model: Path
    data: list[str]
    reading: ReadingOptions

    @property
    def files(self) -> list[Path]:
        """The files of the rows."""
        return expand(self.data)

    def read(self, bars: output.Bars, *, labelled: bool) -> tuple[Any, Dataset]:
        """Return the model and the rows."""
        steps, last = split(dplasso.load(self.model))
        if labelled and last.privacy_.many_labels:
            raise DataError(
                f"{self.model} predicts {len(last.classes_)} labels of each row: score it in "
                "Python, with private_score or scikit-learn"
            )
        # With an encoder as the only step, the model has its schema, as without a pipeline.
        if steps is not None and [step["type"] for step in last.model_.row_steps.steps] != _ENCODER:
            raise DataError(
                f"{self.model} holds a pipeline, which takes rows in a form of its own: load it in "
                "Python (dplasso.load)"
            )
        files = self.files
        tables = [file for file in files if is_table(file)]
        if tables and last.model_.schema is None:
            raise DataError(
                f"{self.model} was trained on numbered columns, and {tables[0]} is a table; give "
                "rows in the form of the training rows"
            )
        return last, self.reading.read_for(last, files, bars, labelled=labelled)


def predict(
    applied: Applied, proba: bool = False, out: Path | None = None, force: bool = False
) -> None:
    """Predict the label or number of every row: one line each, in the order of the rows.

    Options
    -------
    proba
        The probability of the positive class instead of the label; with more than two classes, that
        of each. The first line names the classes.

    Output
    ------
    out : FILE
        Write here instead of standard output.

    Examples
    --------
    dplasso predict model.npz new.svm.gz
    dplasso predict model.npz 'new-*.svm.gz' --proba --out probabilities.txt
    dplasso predict model.npz new.csv
    dplasso predict model.npz new.store

    Pass raw DATA: the model encodes rows as those it was trained on. Tables and .npz files need no
    labels. In svmlight text, the first number of a line is not used.
    """
    if out is not None:
        inputs = [*applied.files, applied.model, *applied.reading.beside]
        output.check_outputs([out], inputs, force=force)
    with output.progress_bars() as bars:
        fitted, rows = applied.read(bars, labelled=False)
        if not proba:
            lines = [_written(label) for label in fitted.predict(rows.X).tolist()]
        elif not hasattr(fitted, "classes_"):
            raise typer.BadParameter("--proba: a regression predicts numbers, not probabilities")
        else:
            probabilities = fitted.predict_proba(rows.X)
            two = probabilities.shape[1] == 2 and not fitted.privacy_.many_labels
            shown = probabilities[:, 1:] if two else probabilities
            labels = fitted.classes_[-shown.shape[1] :].tolist()
            lines = [" ".join(_quoted(_written(label)) for label in labels)]
            lines += [" ".join(f"{value:.9g}" for value in row) for row in shown.tolist()]
    content = "".join(f"{line}\n" for line in lines)
    if out is None:
        output.write_out(content)
        return
    with output.uninterrupted():
        output.write_file(out, content)


def explain(
    applied: Applied, label: str | None = None, top: int = 8, rows: int = 10
) -> output.Result:
    """Explain predictions: what each column adds to the margin of a row.

    Options
    -------
    label : LABEL
        The class whose margins are explained. Default: the second of two classes, of more the one
        that is predicted.
    top : K >= 1
        Columns to name for each row: those that add most.
    rows : N >= 1
        Rows to explain: the first ones.

    Examples
    --------
    dplasso explain model.npz new.csv
    dplasso explain model.npz new.csv --rows 3 --json
    """
    with output.progress_bars() as bars:
        fitted, data = applied.read(bars, labelled=False)
        X = data.X
        if not isinstance(X, Store):
            X = with_origin(X[:rows], fitted.model_.origin)
        named = [each for each in fitted.model_.classes.tolist() if str(each) == label]
        explanations = fitted.explain(X, *(named or [label]))

    def print_rows() -> None:
        for number, explanation in enumerate(explanations, 1):
            output.text(f"row {number}: {explanation.text(top)}")

    document = {"rows": [explanation.to_dict() for explanation in explanations]}
    return output.Result(document | {"not_for_release": ["rows"]}, print_rows)


def _written(label: Any) -> str:
    """Write a label as svmlight files do: 1, not 1.0; several labels as 0 or 1 each."""
    if isinstance(label, list):
        return " ".join(map(_written, label))
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() else f"{label:.9g}"
    return str(label)


def _quoted(name: str) -> str:
    """Return a name in quotes where a reader that splits at blanks needs them."""
    return name if name and not re.search(r"[\s'\"\\]", name) else shlex.quote(name)


@dataclass(frozen=True)
class ScoreOptions:
    """Options of a private score.

    Privacy
    -------
    epsilon : E
        Budget of one private score. Default: scores without noise.
    ledger : LEDGER
        Charge the score to this ledger before noise is drawn (see dplasso ledger).
    metric : METRIC
        The private score: for two classes auc (default), accuracy, f1, f1_macro, f1_weighted or
        log_loss; for more accuracy (default), auc, auc_weighted, f1, f1_weighted or
        log_loss; for a regression mae.
    against : MODEL
        Compare with this model on the same rows, as one private release; the metric is then
        accuracy (default), log_loss, or mae of a regression.
    """

    epsilon: float | None = None
    delta: float = 1e-6
    metric: str | None = None
    against: Path | None = None
    neighbors: str = "add-remove"
    ledger: Path | None = None
    dataset: str | None = None
    purpose: str | None = None
    random_state: int | None = None


def evaluate(applied: Applied, scoring: ScoreOptions, explain: bool = False) -> output.Result:
    """Score a model: accuracy, AUC, log-loss, or R^2 of a regression; privately with --epsilon.

    Examples
    --------
    dplasso evaluate model.npz test.svm.gz
    dplasso evaluate model.npz test.svm.gz --epsilon 0.1 --metric auc
    dplasso evaluate model.npz test.svm.gz --epsilon 0.1 --against older.npz
    dplasso evaluate model.npz test.npz --labels labels.npy --json

    Without --epsilon, scores are computed without noise: they are for the curator, not for release.
    Pass raw DATA: the model encodes rows as those it was trained on.
    """
    private = scoring.epsilon is not None
    for name in () if private else ("metric", "against", "ledger", "dataset", "purpose"):
        if getattr(scoring, name) is not None:
            raise ValueError(f"--{name} is for a private score, which needs --epsilon")
    with output.progress_bars() as bars:
        fitted, rows = applied.read(bars, labelled=True)
        if not private:
            scores = score(fitted, rows.X, rows.y, rows.source)

            def print_exact() -> None:
                print_scores(scores)
                output.text(_NOT_PRIVATE)

            return output.Result(scores | {"private": False}, print_exact)
        settings = asdict(scoring)
        against = settings.pop("against")
        ledger = chosen_ledger(*(settings.pop(name) for name in ("ledger", "dataset", "purpose")))
        settings["ledger"] = ledger
        result: PrivateScore | PrivateComparison
        if against is None:
            result = dplasso.private_score(fitted, rows.X, rows.y, **settings)
        else:
            other, same = replace(applied, model=against).read(bars, labelled=True)
            result = compared(((fitted, rows.X, rows.y), (other, same.X, same.y)), **settings)
    # The number of rows is not released.
    document = {**result.to_dict(), "private": result.privacy.is_private}
    left = None
    if scoring.ledger is not None:
        left = left_after(scoring.ledger, scoring.dataset)
        document |= {"ledger": left, "not_for_release": ["ledger"]}
    return output.Result(document, partial(_print_private, result, left, explain=explain))


_BETTER = {"a": "MODEL", "b": "the model --against", None: "these rows do not tell"}


def _print_private(
    result: PrivateScore | PrivateComparison, left: dict[str, Any] | None, *, explain: bool
) -> None:
    facts, name = {}, result.metric
    if isinstance(result, PrivateComparison):
        facts["better"] = _BETTER[result.better]
        name = f"{result.metric}, how much better MODEL is"
    interval = f"{result.confidence:.0%} interval {result.low:.4f} to {result.high:.4f}"
    facts[name] = f"{result.value:.4f}  ({interval}, noise included)"
    output.facts(facts)
    if isinstance(result, PrivateScore) and result.by_class:
        metric = result.metric.partition("_")[0]
        columns: dict[str, Callable[[Any], str]] = {
            "class": lambda part: _written(part.label),
            ">rows": lambda part: f"{part.rows:,.0f}",
            f">{metric}": lambda part: f"{part.value:.3f}",
            "interval": lambda part: f"{part.low:.3f} to {part.high:.3f}",
        }
        output.listing(columns, result.by_class)
    output.text()
    output.promise(result.privacy, explain=explain)
    if left is not None:
        output.text(f"\n{output.NOT_FOR_RELEASE}")
        output.facts({"ledger": left_sentence(left)})
