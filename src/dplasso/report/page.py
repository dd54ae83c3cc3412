"""The report of a model: a page to sign, with a part for everybody and one for experts.

Everything on it follows from the release and public values. The curator's additions (ledger,
private scores, file, date) are passed in. The page needs no other file.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from dplasso.encoding.origin import columns_declared
from dplasso.gradient_descent.schedule import SIGNIFICANT
from dplasso.model.curves import curves_of
from dplasso.model.file import Model
from dplasso.model.linear import steps_of
from dplasso.model.weights import Weights, beyond_by_chance, count_of, weights_of
from dplasso.phases.releases import Drawn
from dplasso.privacy.parameters import RELATIONS
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import (
    AMBER,
    GREEN,
    PICTURED,
    RED,
    Caution,
    assumptions,
    guarantee,
    level_of,
    odds,
    rounded_up,
)
from dplasso.report.bars import Bar, bars_as_html, curves_as_html
from dplasso.report.displays import weight_bars

_SHOWN, _SHOWN_FIRST = 20, 8
# Parameters that do not shape the fit.
_ASIDE = ("classes", "ledger", "random_state", "n_jobs", "verbose")
_ROUNDED_UP = ("epsilon", "delta", "mu", "rho")
_METRICS = {
    "accuracy": "accuracy (share of rows predicted right)",
    "auc": "AUC (0.5: guessing, 1: perfect)",
    "log_loss": "log-loss (smaller is better)",
    "mae": "mean absolute error",
}
_VERDICTS = {
    GREEN: "Green: private, without a caution.",
    AMBER: "Amber: private, but what follows needs an answer before a release.",
    RED: "Red: do not release this as private.",
}
# The meaning of each digest.
HASHES = {
    "digest": "what the fit released",
    "SHA-256": "this file, byte for byte",
    "starts from": "the public model before it",
}
_SHARE = (
    "Shares are parts of the budget's zCDP. Costs of several releases add up in zCDP; epsilons do "
    "not. When the shares reach 100 %, the ledger refuses every further fit."
)
_NO_SCORE = (
    "This page cannot say how well the model predicts, because no private score was given. To add "
    "one: dplasso evaluate MODEL DATA --epsilon 0.1 --json > score.json, then dplasso report "
    "--score score.json."
)


@dataclass(frozen=True)
class Beside:
    """The curator's additions to a page."""

    # The file's name, digest, versions and the date.
    file: Mapping[str, str]
    # The entry that paid for the model, or a sentence why there is none.
    ledger: Mapping[str, str] | str
    # The entries of that ledger.
    budget: Sequence[Bar] = ()
    # Private scores of the model, as `PrivateScore.to_dict` gives them.
    scores: Sequence[Mapping[str, Any]] = ()


def cautions_about(model: Model) -> list[Caution]:
    """Return the cautions about a model's privacy statement."""
    schema = model.schema
    return model.statement.cautions(
        model.params.get("n_records") or model.n_records,
        draft=schema is not None and schema.is_unedited_draft,
        unconfirmed=schema is not None and schema.confirmed is False,
        classes=model.classes.tolist(),
        columns_declared=columns_declared(model.origin),
    )


def report_section(model: Model) -> str:
    """Return the report of a model as HTML for another page, whose style it does not touch."""
    every = weights_of(model)
    return _styled(f"{_verdict(model)}{_promise(model, every)}{_appendix(model.statement)}")


def report_page(model: Model, beside: Beside) -> str:
    """Return the report of a model as an HTML document of its own, to be printed and signed."""
    every, name = weights_of(model), escape(beside.file.get("file", "model"))
    lines = "".join(
        f"<div><span></span>{label}</div>"
        for label in ("Name and role", "Place, date", "Signature")
    )
    first = (
        f"<header><h1>Privacy report</h1><p>{name}, for whoever decides. "
        '<a href="#expert">For the statistician</a></p></header>'
        f"{_verdict(model)}{_meaning(model.statement)}"
        f"<h2>How good it is</h2>{_usefulness(beside.scores)}"
        f"<h2>What counts most in it</h2>{_heaviest(model, every)}"
        f"<h2>What paid for it</h2>{_paid(beside)}"
        f"<h2>This file</h2>{_table(beside.file)}"
        f'<h2>Release approved</h2><div class="sign">{lines}</div>'
    )
    second = (
        f'<h1 id="expert">For the statistician</h1>{_promise(model, every)}'
        f"{_scores(beside.scores)}{_appendix(model.statement)}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Privacy report: {name}</title></head><body>"
        f"{_styled(f'<section>{first}</section><section>{second}</section>')}</body></html>\n"
    )


def _styled(inside: str) -> str:
    style = files("dplasso.report").joinpath("report.css").read_text(encoding="utf-8")
    return f'<style>{style}</style><div class="dplasso-report">{inside}</div>'


def _verdict(model: Model) -> str:
    """Say in a colour and in words whether the model may be released as private, and why not."""
    cautions = cautions_about(model)
    level = level_of(cautions)
    items = "".join(
        f'<li class="{caution.level}"><b>{caution.level.capitalize()}</b>: '
        f"<span>{escape(caution.sentence)}.</span></li>"
        for caution in cautions
    )
    listed = f'<ul class="cautions">{items}</ul>' if items else ""
    return f'<p class="verdict {level}">{_VERDICTS[level]}</p>{listed}'


def _meaning(statement: PrivacyStatement) -> str:
    if not statement.is_private:
        return (
            "<h2>What it means for a person</h2><p>The model protects nobody. Anyone who has it "
            "may find out what it was trained on. Treat it like the records themselves.</p>"
        )
    rows, relation = statement.rows_per_person, RELATIONS[statement.neighbors]
    record = "any one row of the data" if rows == 1 else f"all rows of one person, up to {rows:,},"
    whom = f"It protects {statement.protected}. A person with more rows is protected less."
    if statement.by_person:
        rows, record = 2, "all rows of one person"
        whom = f"It protects {statement.protected}, however many rows that is."
    factor = "at most a factor of" if statement.epsilon <= PICTURED else "a factor of"
    if not relation.hides_features:
        whom += " It does not protect the features, so they may show in the model."
    return (
        "<h2>What it means for a person</h2>"
        f"<p>If {relation.part(rows)}{record} had been {relation.exchanged}, the odds of any "
        f"conclusion from the model would change by {factor} <b>{odds(statement.epsilon)}</b> "
        f"(epsilon {rounded_up(statement.epsilon)}), except with a probability of at most one in "
        f"{math.floor(1 / statement.delta):,} (delta {rounded_up(statement.delta)}). {whom}</p>"
    )


def _usefulness(scores: Sequence[Mapping[str, Any]]) -> str:
    if not scores:
        return f"<p>{escape(_NO_SCORE)}</p>"
    rows = {}
    for score in scores:
        interval = f"{score['low']:.3f} to {score['high']:.3f}"
        rows[score_name(score)] = (
            f"{score['value']:.3f}; with {score['confidence']:.0%} confidence {interval}"
        )
    return (
        f"{_table(rows)}<p><small>Private scores, paid for like the model: noise and chance are in "
        "the interval.</small></p>"
    )


def _paid(beside: Beside) -> str:
    if isinstance(beside.ledger, str):
        return f"<p>{escape(beside.ledger)}</p>"
    bars = bars_as_html(beside.budget, (0.0, 1.0)) if beside.budget else ""
    return f"{_table(beside.ledger)}{bars}<p><small>{escape(_SHARE)}</small></p>"


def _promise(model: Model, every: Weights) -> str:
    """Return the guarantee in full, what was public, the settings and the weights."""
    statement = model.statement
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in guarantee(statement))
    return (
        f"<h2>The guarantee</h2>{paragraphs}"
        f"<h2>What was public</h2><p>{escape(assumptions(statement))}</p>"
        f"{_table(model_facts(model, every))}"
        f"{_curves(model)}<h2>The weights</h2>{_weights(every)}"
    )


def _scores(scores: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for score in scores:
        parts.append(f"<h2>The score: {escape(score_name(score))}</h2>")
        promise, *_, how = guarantee(PrivacyStatement.from_dict(score["privacy"]))
        parts.append(f"<p>{escape(promise)} {escape(how)}</p>")
    return "".join(parts)


def _appendix(statement: PrivacyStatement) -> str:
    facts = {
        name.replace("_", " "): _worded(name, value)
        for name, value in statement.to_dict().items()
        if isinstance(value, bool) or value not in (None, "", [], {}, 0)
    }
    return (
        "<h2>Appendix: the statement, entry by entry</h2>"
        f"{_table(facts)}<p><small>Entries that are zero or empty are left "
        "out; the file has them.</small></p>"
    )


def _heaviest(model: Model, every: Weights) -> str:
    """Draw the largest weights that are clear of the noise, and say what their signs mean."""
    clear = every if every.clear is None else every.chosen(every.clear)
    if not len(clear):
        return "<p>No weight is clear of the noise.</p>"
    shown, classes = clear.top(_SHOWN_FIRST), model.classes
    caption = f"Weights that are clear of the noise: {len(shown)} of {len(clear):,}, largest first."
    if every.clear is None:
        caption = f"The {len(shown)} largest of {count_of(every)}."
    caption += _by_chance(every)
    if classes.size == 2 and not model.statement.many_labels:
        caption += f" To the right: speaks for {classes[1]}."
    return f"{bars_as_html(weight_bars(shown.rows()))}<p><small>{escape(caption)}</small></p>"


def _curves(model: Model) -> str:
    """Draw the effect of each number that has bins on several levels; nothing without any."""
    curves = curves_of(model)
    if not curves:
        return ""
    unit = "the target" if model.statement.target_bounds else "the margin"
    caption = (
        f"What a number adds to {unit} of a typical row, summed over the bins of all levels and "
        f"centred. Shaded: {SIGNIFICANT:g} standard errors of the noise, without sampling error."
    )
    return f"<h2>The numbers</h2>{curves_as_html(curves)}<p><small>{caption}</small></p>"


def _by_chance(every: Weights) -> str:
    """Say how many weights noise alone puts beyond three standard errors, if any."""
    errors = every.clear is not None and every.standard_error is not None
    chance = beyond_by_chance(len(every)) if errors else 0
    words = f" Noise alone puts about {chance:,} weights beyond {SIGNIFICANT:g} standard errors."
    return words if chance else ""


def _weights(every: Weights) -> str:
    shown = every.top(_SHOWN)
    if not len(shown):
        return "<p>No column has a weight.</p>"
    caption = f"The {len(shown)} largest of {count_of(every)}."
    if every.clear is not None and every.standard_error is not None:
        caption += f" Lines: {SIGNIFICANT:g} standard errors of the noise, without sampling error."
        caption += _by_chance(every)
    elif every.clear is not None:
        caption += (
            " Steps: those that chose the column with this sign, minus those with the other. "
            "Marked: uniform draws would choose it as often in more than one run of 20."
        )
    return f"{bars_as_html(weight_bars(shown.rows()))}<p><small>{escape(caption)}</small></p>"


def _table(rows: Mapping[str, Any]) -> str:
    meaning = {name: f"<br><small>{words}</small>" for name, words in HASHES.items()}
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{_cell(value)}{meaning.get(name, '')}</td></tr>"
        for name, value in rows.items()
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return "<br>".join(f"{escape(key)}: {_cell(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "<br>".join(map(_cell, value))
    return escape(str(value))


def _worded(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _worded(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_worded(name, item) for item in value]
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return rounded_up(value) if name.startswith(_ROUNDED_UP) else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def model_facts(model: Model, weights: Weights) -> dict[str, Any]:
    """Return what a model is, in words: labels, columns, steps, settings and its digest."""
    bounds = model.statement.target_bounds
    labels = ", ".join(map(str, model.classes.tolist()))
    if model.statement.many_labels:
        labels += " (each row may have any subset)"
    elif model.classes.size == 2:
        labels = f"{model.classes[1]} (positive) against {model.classes[0]}"
    if bounds is not None:
        labels = f"numbers from {bounds[0]:g} to {bounds[1]:g}"
    named, made = "without names", {}
    if model.feature_names is not None:
        named = "with names, which are in the file and must be public"
    if (schema := model.schema) is not None:
        named = "made by a schema, which is in the file and must be public"
        made["schema"] = "; ".join(schema.described())
        if schema.is_unedited_draft:
            made["draft"] = schema.note or "nobody has edited it"
    if model.row_steps is not None:
        made["rows"] = "made by " + ", then ".join(model.row_steps.described())
    if model.origin is not None and model.origin.binarize:
        made["values"] = "every one that is not zero turned into 1"
    if model.linear.centres is not None:
        centred = int((model.linear.centres != 0.0).sum())
        made["centred"] = f"{centred:,} columns, whose weights are of differences from a noisy mean"
    names = {"epsilon": "epsilon of one try"} if model.statement.find("search") else {}
    settings = [
        f"{names.get(name, name)} {_worded(name, value)}"
        for name, value in model.params.items()
        if name not in _ASIDE and value is not None
    ]
    method = "logistic regression" if bounds is None else "linear regression"
    if model.released.last(Drawn) is not None:
        method = "LASSO by Frank-Wolfe"
    return {
        "method": f"{method}, {steps_of(model.released):,} steps",
        **({"starts from": model.statement.prior} if model.prior is not None else {}),
        **({"public rows": model.statement.public_rows} if model.statement.public_rows else {}),
        "labels": labels,
        "columns": f"{model.n_features:,}, {named}",
        **made,
        "weights": count_of(weights),
        "settings": ", ".join(settings),
        "digest": model.digest,
    }


def score_name(score: Mapping[str, Any]) -> str:
    """Return what a private score, as `PrivateScore.to_dict` gives it, is called on a page."""
    name = score["metric"]
    return f"{_METRICS.get(name, name)}, epsilon {rounded_up(score['privacy']['epsilon'])}"
