"""``dplasso show`` and ``report``: what a model file holds."""

import json
from dataclasses import fields
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dplasso.cli import output
from dplasso.files.disk import program
from dplasso.ledger import Budget, Charge, entry_of, read_budgets, share_of
from dplasso.model import Model, read_model
from dplasso.model.curves import curves_of
from dplasso.model.file import written_by
from dplasso.model.inference import inference_of
from dplasso.model.weights import count_of, linear_part, signs, weights_of
from dplasso.privacy.parameters import RELATIONS
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import percent, rounded_up
from dplasso.report.bars import Bar
from dplasso.report.displays import CurvesDisplay, WeightsDisplay, budget_bars
from dplasso.report.page import Beside, cautions_about, model_facts, report_page


def show(
    model: Path, top: int = 20, explain: bool = False, plot: Path | None = None, force: bool = False
) -> output.Result:
    """Show a model's largest weights, its settings and its privacy statement.

    Options
    -------
    top : K >= 0
        How many of the largest weights, and of the curves in a picture.

    Output
    ------
    plot : OUT.png
        Draw the effect of each number that the schema has in bins on several levels, the largest
        effects first; without any, the largest weights.

    Examples
    --------
    dplasso show model.npz
    dplasso show model.npz --plot curves.png
    dplasso show model.npz --top 50 --explain
    dplasso show model.npz --json

    All of this is in the model file: whoever has the file may see it.
    """
    if plot is not None:
        output.check_outputs([plot], [model], force=force)
    held = read_model(model)
    weights, curves = weights_of(held), curves_of(held)
    if plot is not None:
        # Hundreds of curves would take minutes, and nobody could read them.
        drawn = sorted(curves, key=lambda each: -float(np.ptp(each.effect)))[: max(1, top)]
        display = CurvesDisplay(drawn) if curves else WeightsDisplay(weights.top(top))
        image = BytesIO()
        display.plot().figure_.savefig(image, format="png", dpi=110)
        with output.uninterrupted():
            output.write_file(plot, image.getvalue())
    schema = held.schema
    heaviest = weights.top(top).rows()
    if schema is not None:
        # Loading the loss for odds takes a second.
        from dplasso.estimators.predictions import with_odds

        heaviest = with_odds(held, weights.top(top))
    facts = model_facts(held, weights)
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
        "curves": [
            {"column": each.column, "class": each.label, "bins": each.rows()} for each in curves
        ],
        "intercept": linear_part(held)[1][0],
        **output.inferred(estimates),
        "privacy": held.statement.to_dict(),
        "cautions": output.cautions_json(cautions),
    }

    def print_model() -> None:
        prose = ("schema", "draft", "settings")
        output.facts({"model": str(model), **facts}, prose=prose)
        output.text()
        title = f"The {len(heaviest)} largest of {count_of(weights)}"
        output.weights(heaviest, title, signs(held))
        if plot is not None:
            some = f" ({len(drawn):,} of {len(curves):,} curves; --top K)"
            output.facts({"written": f"{plot}{some * (len(drawn) < len(curves))}"})
        elif curves:
            numbers = len({each.column for each in curves})
            output.text(f"--plot OUT.png draws the curves of {numbers:,} numbers.")
        output.text()
        output.inference(estimates)
        output.promise(held.statement, explain=explain)
        for each in cautions if held.statement.is_private and not explain else []:
            output.text(f"Caution ({each.level}): {each.sentence}.")

    return output.Result(document, print_model)


def report(
    model: Path,
    out: Path,
    ledger: Path | None = None,
    score: list[Path] | None = None,
    force: bool = False,
) -> None:
    """Write a report on a model and its privacy: one page to print and sign.

    Output
    ------
    out : OUT.html
        Write the page here.

    Options
    -------
    ledger : LEDGER
        Look up the entry that paid for the model here.
    score : SCORE.json
        A private score of this model, as printed by evaluate --epsilon --json. You can repeat the
        option.

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
            "reported by": program(),
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
    from dplasso.tuning.scores import PrivateScore

    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        score = {field.name: document[field.name] for field in fields(PrivateScore)}
        statement = PrivacyStatement.from_dict(score["privacy"])
        is_score = all(isinstance(score[name], float) for name in ("value", "low", "high"))
    except (ValueError, LookupError, TypeError):
        is_score = False
    if not is_score:
        raise ValueError(
            f"{path} holds no private score; make one with dplasso evaluate --epsilon 0.1 --json"
        )
    if not statement.is_private:
        raise ValueError(
            f"{path}: the score is not private; make one with dplasso evaluate --epsilon"
        )
    if score["model"] != model.digest:
        raise ValueError(f"{path}: the score is of another model; give a score of this one")
    return score


def _paid(model: Model, ledger: Path | None) -> tuple[dict[str, str] | str, list[Bar]]:
    """Return the ledger entry that paid for a model in words, and its budget as bars."""
    if ledger is None:
        return "No ledger was given to this report.", []
    digest, budgets = model.digest, read_budgets(ledger)
    paid = entry_of(budgets, digest)
    if paid is None:
        reason = (
            f"No entry of {ledger.name} paid for this model. It was charged to another ledger, "
            "before entries held digests, or not at all."
        )
        return reason, []
    budget, entry = paid
    charge = entry.charge
    facts = {
        "entry": f"{entry.number} of {ledger.name}",
        "data set": budget.name or "(without a name)",
        "purpose": charge.purpose or "(none given)",
        "charged": f"{_cost(charge)}, {entry.reserved_at}",
        "budget": f"{_cost(budget)} for all releases from this data set, for "
        f"{RELATIONS[budget.neighbors].protected(budget.rows_per_person)}",
        "share": f"{percent(share_of(budget, charge))} of the budget",
    }
    return facts, budget_bars(budget, digest)


def _cost(spending: Budget | Charge) -> str:
    return f"epsilon {rounded_up(spending.epsilon)} at delta {rounded_up(spending.delta)}"
