"""What is done with a model file: ``predict``, ``evaluate``, ``show`` and ``report``."""

import json
import shlex
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer

import dplasso
from dplasso.cli import output
from dplasso.cli.clusters import ClusterOptions, over_stores
from dplasso.cli.inputs import BESIDE_CLUSTER, ReadingOptions, read_raw, refuse
from dplasso.cli.ledger_report import cohort_of, left_after, left_sentence, sentence
from dplasso.cli.scoring import print_confusion, print_scores, score
from dplasso.cli.training import chosen_ledger
from dplasso.data.formats import Dataset
from dplasso.data.source_files import expand
from dplasso.estimators.record_wise import split
from dplasso.ledger import Budget, Charge, entry_of, read_budgets, share_of
from dplasso.ledger.composition import protected
from dplasso.model import Model, read_model
from dplasso.model.file import written_by
from dplasso.model.inference import inference_of
from dplasso.model.weights import count_of, linear_part, weights_of
from dplasso.privacy.wording import rounded_up
from dplasso.report.bars import Bar
from dplasso.report.displays import budget_bars
from dplasso.report.page import Beside, cautions_about, model_facts, report_page
from dplasso.tuning.scores import PrivateScore

_NOT_PRIVATE = (
    "These scores are not private: they are for the curator, not for release. --epsilon makes one "
    "that is."
)


@dataclass(frozen=True)
class Applied:
    """A model, and the rows that it is applied to, here or by a cluster."""

    model: Path
    data: list[str]
    reading: ReadingOptions
    cluster: ClusterOptions

    @property
    def files(self) -> list[Path]:
        """The files of the rows; none where a cluster reads them."""
        return expand(self.data) if self.cluster.cluster is None else []

    def read(self, bars: output.Bars, *, labelled: bool) -> tuple[Any, Dataset]:
        """Return the model and the rows."""
        files, fitted = self.files, dplasso.load(self.model)
        steps, last = split(fitted) or (None, fitted)
        many = bool(files) and labelled and last.privacy_.many_labels
        labels = self.reading.read_labels(files, last.classes_.tolist()) if many else None
        labelled = labelled and not many
        if steps is not None:
            given = {"--cluster": self.cluster.cluster}
            refuse(given, "does not go with a model that knows its pipeline")
            fitted, rows = read_raw(fitted, files, self.reading, bars, labelled=labelled)
        elif files:
            rows = self.reading.read_for(fitted, files, bars, labelled=labelled)
        else:
            fitted, rows = over_stores(fitted, self.model, self.data, self.cluster, bars)
        return fitted, rows if labels is None else replace(rows, y=labels)


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
    dplasso predict model.npz stores/ --cluster auto

    A model knows how its rows were encoded and made binary, so DATA is given raw. One saved with a
    pipeline takes what that takes: texts from the column "text" of a table, or the only one. A
    table needs no labels; those of other files are read but not used, and need --label-map if they
    are text.
    """
    if out is not None:
        inputs = [*applied.files, applied.model, applied.reading.labels]
        output.check_outputs([out], inputs, force=force)
    with output.progress_bars() as bars:
        fitted, rows = applied.read(bars, labelled=False)
        if not proba:
            lines = [_written(label) for label in fitted.predict(rows.X).tolist()]
        elif not hasattr(fitted, "classes_"):
            raise typer.BadParameter("--proba: a regression predicts numbers, not probabilities")
        else:
            given = fitted.predict_proba(rows.X)
            two = given.shape[1] == 2 and not fitted.privacy_.many_labels
            shown = given[:, 1:] if two else given
            labels = fitted.classes_[-shown.shape[1] :].tolist()
            lines = [shlex.join(_written(label) for label in labels)]
            lines += [" ".join(f"{value:.9g}" for value in row) for row in shown.tolist()]
    told = "".join(f"{line}\n" for line in lines)
    if out is None:
        output.write_out(told)
        return
    with output.uninterrupted():
        output.write_file(out, told)


def _written(label: Any) -> str:
    """Write a label the way svmlight files do: 1, not 1.0; of many labels 0 or 1 for each."""
    if isinstance(label, list):
        return " ".join(map(_written, label))
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() else f"{label:.9g}"
    return str(label)


@dataclass(frozen=True)
class ScoreOptions:
    """Of a private score.

    Privacy
    -------
    epsilon : E
        Budget of one private score. Default: scores without noise.
    ledger : LEDGER
        Charge the score to this ledger before anything is computed (see dplasso ledger).
    metric : METRIC
        The private score: for two classes auc (default), accuracy, f1, f1_weighted, log_loss,
        confusion or calibration; for more accuracy (default), auc, auc_weighted, f1, f1_weighted,
        log_loss or confusion; for many labels auc (default), auc_weighted, f1, f1_weighted,
        accuracy or log_loss; for a regression mae (default) or r2.
    """

    epsilon: float | None = None
    delta: float = 1e-6
    metric: str | None = None
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
    dplasso evaluate model.npz test.npz --labels labels.npy --json
    dplasso evaluate labels.npz test.csv --label-column asthma,gout

    Without --epsilon, scores are computed without noise: they are for the curator, not for release.
    A model knows how its rows were encoded and made binary, so DATA is given raw.
    """
    private = scoring.epsilon is not None
    if applied.cluster.cluster is not None:
        refuse({"--epsilon": private}, BESIDE_CLUSTER)
    for name in () if private else ("metric", "ledger", "dataset", "purpose"):
        if getattr(scoring, name) is not None:
            raise ValueError(f"--{name} is for a private score, which needs --epsilon")
    with output.progress_bars() as bars:
        fitted, rows = applied.read(bars, labelled=True)
        if not private:
            scores = score(fitted, rows.X, rows.y, rows.source)
            return output.Result(scores | {"private": False}, partial(_print_exact, scores))
        settings = asdict(scoring)
        ledger = chosen_ledger(*(settings.pop(name) for name in ("ledger", "dataset", "purpose")))
        found = dplasso.private_score(fitted, rows.X, rows.y, **settings, ledger=ledger)
    # All that may be said of the rows: not their number.
    told = {**found.to_dict(), "private": found.privacy.is_private}
    if scoring.ledger is not None:
        told["ledger"] = left_after(scoring.ledger, scoring.dataset, found.privacy)
    return output.Result(told, partial(_print_private, found, told.get("ledger"), explain=explain))


def _print_exact(scores: dict[str, Any]) -> None:
    print_scores(scores)
    output.text(_NOT_PRIVATE)


def _print_private(score: PrivateScore, left: dict[str, Any] | None, *, explain: bool) -> None:
    name = {
        "calibration": "share of the second class",
        "confusion": "accuracy",
        "auc_weighted": "auc, weighted by rows",
        "f1_weighted": "f1, weighted by rows",
    }.get(score.metric, score.metric)
    facts = {
        name: f"{score.value:.4f}  ({score.confidence:.0%} interval {score.low:.4f} to "
        f"{score.high:.4f}, noise included)"
    }
    if left is not None:
        facts["ledger"] = left_sentence(left)
    output.facts(facts)
    if score.curve:
        rows = [
            [f"{one.predicted_low:.1f} to {one.predicted_high:.1f}", *_noisy(one, one.observed)]
            for one in score.curve
        ]
        output.table(["predicted", ">rows", ">observed", "interval"], rows)
    if score.by_class:
        rows = [[_written(one.label), *_noisy(one, one.value)] for one in score.by_class]
        each = score.metric.partition("_")[0].replace("confusion", "f1")
        output.table(["class", ">rows", f">{each}", "interval"], rows)
    print_confusion(score.confusion)
    output.text()
    output.promise(score.privacy, explain=explain)


def _noisy(one: Any, value: float) -> list[str]:
    return [f"{one.rows:,.0f}", f"{value:.3f}", f"{one.low:.3f} to {one.high:.3f}"]


def show(model: Path, top: int = 20, explain: bool = False) -> output.Result:
    """Name a model's largest weights, its settings and what it promises.

    Options
    -------
    top : K >= 0
        How many of the largest weights.

    Examples
    --------
    dplasso show model.npz
    dplasso show model.npz --top 50 --explain
    dplasso show model.npz --json

    All of this is in the model file: whoever has the file may see it.
    """
    held = read_model(model)
    weights = weights_of(held)
    facts, heaviest = model_facts(held, weights), weights.top(top).rows()
    schema = None if held.origin is None else held.origin.schema
    cautions, estimates = cautions_about(held), inference_of(held)
    document = {
        "model": model,
        "facts": facts,
        "n_features": held.n_features,
        "params": {**held.params, "classes": held.classes.tolist()},
        "schema": None if schema is None else schema.to_json(),
        "n_nonzero": len(weights),
        "n_clear": None if weights.clear is None else int(weights.clear.sum()),
        "weights": heaviest,
        "intercept": linear_part(held)[1][0],
        **output.inferred(estimates),
        "privacy": held.statement.to_dict(),
        "cautions": [{"level": one.level, "sentence": one.sentence} for one in cautions],
    }

    def print_model() -> None:
        indent = " " * (max(map(len, facts)) + 2)
        width, shown = max(output.out.width - len(indent), 40), {"model": str(model), **facts}
        for name in {"schema", "settings"} & facts.keys():
            shown[name] = f"\n{indent}".join(wrap(facts[name], width, break_on_hyphens=False))
        output.facts(shown)
        output.text()
        output.weights(heaviest, f"The {len(heaviest)} largest of {count_of(weights)}")
        output.text()
        output.inference(estimates)
        output.promise(held.statement, explain=explain)
        for one in cautions if held.statement.is_private and not explain else []:
            output.text(f"Caution ({one.level}): {one.sentence}.")

    return output.Result(document, print_model)


def report(
    model: Path,
    out: Path,
    ledger: Path | None = None,
    score: list[Path] | None = None,
    force: bool = False,
) -> None:
    """Write what a model promises and holds on one page that can be printed and signed.

    Output
    ------
    out : OUT.html
        Write the page here.

    Options
    -------
    ledger : LEDGER
        Look up the entry that paid for the model here.
    score : SCORE.json
        A private score of this model, as evaluate --epsilon --json printed it; may be given again.

    Examples
    --------
    dplasso report model.npz --out report.html
    dplasso report model.npz --out report.html --ledger team.ledger
    dplasso report model.npz --out report.html --score score.json    (after: dplasso evaluate
        model.npz test.svm.gz --epsilon 0.1 --json > score.json)

    The first part of the page is for whoever decides, the second for a statistician. With --ledger
    the page names the entry that paid for the model, its purpose and what is spent: the curator
    decides whether that part is handed on.
    """
    output.check_outputs([out], [model, ledger, *(score or [])], force=force)
    held = read_model(model)
    scores = [_released_score(path, held) for path in score or []]
    paid, budget = _paid(held, ledger)
    beside = Beside(
        file={
            "file": model.name,
            "SHA-256": sha256(model.read_bytes()).hexdigest(),
            "written by": written_by(model),
            "reported by": f"dplasso {version('dplasso')}",
            "date of this report": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        },
        ledger=paid,
        budget=budget,
        scores=scores,
    )
    with output.uninterrupted():
        output.write_file(out, report_page(held, beside))
    output.facts({"written": str(out)})


def _released_score(path: Path, model: Model) -> dict[str, Any]:
    """Read a private score, which must be of this model and may be shown with it."""
    try:
        held = json.loads(path.read_text(encoding="utf-8-sig"))
        score = {one.name: held[one.name] for one in fields(PrivateScore)}
        statement = dplasso.PrivacyStatement.from_dict(score["privacy"])
        known = all(isinstance(score[name], float) for name in ("value", "low", "high"))
    except (ValueError, LookupError, TypeError):
        known = False
    if not known:
        raise ValueError(
            f"{path} holds no private score; make one with dplasso evaluate --epsilon 0.1 --json"
        )
    if not statement.is_private:
        raise ValueError(f"{path}: the score is not private, so it has no place on the page")
    if score["model"] != model.digest:
        raise ValueError(f"{path}: the score is of another model than this one")
    return score


def _paid(model: Model, ledger: Path | None) -> tuple[dict[str, str] | str, list[Bar]]:
    """Word the entry of a ledger that paid for a model, and draw the budget that it is part of."""
    if ledger is None:
        return "No ledger was given to this report.", []
    digest, budgets = model.digest, read_budgets(ledger)
    found = entry_of(budgets, digest)
    if found is None:
        told = (
            f"No entry of {ledger.name} has paid for this model: it was charged elsewhere, before "
            "entries held digests, or not at all."
        )
        return told, []
    budget, entry = found
    charge, cohort = entry.charge, cohort_of(ledger, budget.name)
    facts = {
        "entry": f"{entry.number} of {ledger.name}",
        "data set": budget.name or "(without a name)",
        "purpose": charge.purpose or "(none given)",
        "charged": f"{_cost(charge)}, {entry.reserved_at}",
        "budget": f"{_cost(budget)} for all releases from this data set, for "
        f"{protected(budget.rows_per_person)}",
        "share": f"{share_of(budget, charge):.1%} of the budget",
        **({} if cohort is None else {"people": sentence(cohort)}),
    }
    return facts, budget_bars(budget, digest, purposes=False)


def _cost(one: Budget | Charge) -> str:
    return f"epsilon {rounded_up(one.epsilon)} at delta {rounded_up(one.delta)}"
