"""A model as a page for the one who has to answer for it: promise, weights, settings, digests.

Everything on it is a function of the release and public values; what the curator adds (ledger,
file, date) is passed in. The page needs no other file.
"""

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from dplasso.model.file import Model
from dplasso.model.release import digest_of
from dplasso.model.weights import (
    BY_NOISE,
    Weights,
    beyond_by_chance,
    count_of,
    row_name,
    weights_of,
)
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import assumptions, guarantee, rounded_up

_SHOWN = 20
# Parameters that are not the fit's: where it ran, and what it showed.
_ASIDE = ("classes", "ledger", "dataset", "purpose", "random_state", "n_jobs", "verbose")
_ROUNDED_UP = ("epsilon", "delta", "mu", "rho")


def statement_facts(statement: PrivacyStatement) -> dict[str, Any]:
    """Return a statement's entries in words, those that say something; their names likewise."""
    return {
        name.replace("_", " "): _worded(name, value)
        for name, value in statement.to_dict().items()
        if value not in (None, "", [], {})
    }


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
    """Return what a model is, in words: labels, columns, steps, settings and the release's digest.

    Of columns made by a schema, also what was declared of each.
    """
    bounds = model.statement.target_bounds
    labels = ", ".join(map(str, model.classes.tolist()))
    if model.classes.size == 2:
        labels = f"{model.classes[1]} (positive) against {model.classes[0]}"
    if bounds is not None:
        labels = f"numbers from {bounds[0]:g} to {bounds[1]:g}"
    named, made = "without names", {}
    if model.feature_names is not None:
        named = "with names, which are in the file and must be public"
    schema = None if model.origin is None else model.origin.schema
    if schema is not None:
        named = "made by a schema, which is in the file and must be public"
        made["schema"] = "; ".join(schema.described())
        if schema.note:
            made["draft"] = schema.note
    if model.origin is not None and model.origin.binarize:
        made["values"] = "every one that is not zero turned into 1"
    settings = [
        f"{name} {_worded(name, value)}"
        for name, value in model.params.items()
        if name not in _ASIDE and value is not None
    ]
    return {
        "method": f"{model.release.method[bounds is not None]}, {len(model.release):,} steps",
        **({"starts from": model.statement.prior} if model.prior is not None else {}),
        "labels": labels,
        "columns": f"{model.n_features:,}, {named}",
        **made,
        "weights": count_of(weights),
        "settings": ", ".join(settings),
        "digest": digest_of(model.release),
    }


def report_section(model: Model) -> str:
    """Return the report of a model as HTML for another page, whose style it does not touch."""
    return _report(model, "")


def report_page(model: Model, *, file: Mapping[str, str], ledger: Mapping[str, str] | str) -> str:
    """Return the report of a model as an HTML document of its own, to be printed and signed.

    `file`: the file's name, digest, versions and the date.
    `ledger`: the entry that paid for the model, or a sentence why there is none.
    """
    paid = f"<p>{escape(ledger)}</p>" if isinstance(ledger, str) else _table(ledger)
    lines = "".join(
        f"<div><span></span>{label}</div>"
        for label in ("Name and role", "Place, date", "Signature")
    )
    approval = (
        f"<h2>What paid for it</h2>{paid}<h2>This file</h2>{_table(file)}"
        f'<h2>Release approved</h2><div class="sign">{lines}</div>'
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Privacy report: {escape(file.get('file', 'model'))}</title></head>"
        f"<body>{_report(model, approval, '<h1>Privacy report</h1>')}</body></html>\n"
    )


def _report(model: Model, approval: str, title: str = "") -> str:
    style = files("dplasso.model").joinpath("report.css").read_text(encoding="utf-8")
    statement, every = model.statement, weights_of(model)
    verdict, *promise = [*guarantee(statement), *statement.cautions(model.release.n_records)]
    state = "private" if statement.is_private else "open"
    return (
        f'<style>{style}</style><div class="dplasso-report">{title}'
        f'<p class="verdict {state}">{escape(verdict)}</p>'
        f"{''.join(f'<p>{escape(text)}</p>' for text in promise)}"
        f"<h2>What was public</h2><p>{escape(assumptions(statement))}</p>"
        f"{_table(model_facts(model, every))}"
        f"<h2>The weights</h2>{_weights(every)}{approval}"
        f"<h2>The statement, entry by entry</h2>{_table(statement_facts(statement))}</div>"
    )


def _weights(every: Weights) -> str:
    """Draw the largest weights as bars from a common zero, with three standard errors."""
    rows = every.top(_SHOWN).rows()
    if not rows:
        return "<p>No column has a weight.</p>"
    errors = [row["standard_error"] or 0.0 for row in rows]
    widest = max(abs(row["weight"]) + 3 * error for row, error in zip(rows, errors, strict=True))
    lines = []
    for row, error in zip(rows, errors, strict=True):
        told = f"{row['weight']:+.3f}"
        told += f" &plusmn; {error:.3f}" if error else ""
        told += f" (corrected by {row['correction']:+.3f})" if "correction" in row else ""
        if row["steps"] is not None:
            told += f", {row['steps']:,} step{'' if abs(row['steps']) == 1 else 's'}"
        told += f' <i class="noise">{BY_NOISE}</i>' if row["clear"] is False else ""
        name = escape(row_name(row, f"column {row['column']:,}"))
        bar = _bar(row["weight"] / widest, 3 * error / widest)
        lines.append(f"<tr><th>{name}</th><td>{bar}</td><td>{told}</td></tr>")
    return (
        f'<table class="weights"><tbody>{"".join(lines)}</tbody></table>'
        f"<p><small>{escape(_legend(every, len(rows)))}</small></p>"
    )


def _bar(weight: float, error: float) -> str:
    """Return a bar, and a line over three standard errors, on a scale from -1 to 1."""
    left, width = 100 + 100 * min(weight, 0.0), 100 * abs(weight)
    sign = "negative" if weight < 0 else "positive"
    middle, whisker = 100 + 100 * weight, ""
    if error:
        whisker = f'<path d="M{middle - 100 * error:.1f} 6H{middle + 100 * error:.1f}"/>'
    return (
        '<svg viewBox="0 0 200 12" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{sign}" x="{left:.1f}" y="2" width="{width:.1f}" height="8"/>'
        f'{whisker}<path class="zero" d="M100 0V12"/></svg>'
    )


def _legend(every: Weights, shown: int) -> str:
    text = f"The {shown} largest of {count_of(every)}."
    if every.clear is None:
        return text
    if every.standard_error is not None:
        text += " Lines: three standard errors of the noise; sampling error is not in them."
        chance = beyond_by_chance(len(every))
        return f"{text} Noise alone takes about {chance:,} beyond that." if chance else text
    return (
        f"{text} Steps: those that chose the column with this sign, less those with the other. "
        "Marked: what uniform draws choose as often in more than one run of 20."
    )


def _table(rows: Mapping[str, Any]) -> str:
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in rows.items()
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return "<br>".join(f"{escape(key)}: {_cell(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "<br>".join(map(_cell, value))
    return escape(str(value))
