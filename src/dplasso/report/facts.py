"""What a model and its statement are, in words: for the page, and for a terminal."""

from collections.abc import Mapping
from typing import Any

from dplasso.model.file import Model
from dplasso.model.release import digest_of
from dplasso.model.weights import Weights, count_of
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import rounded_up

# Parameters that are not the fit's: where it ran, and what it showed. The statement has the labels,
# and the bound on weights where there are any.
_ASIDE = {
    "classes",
    "weight_bound",
    "ledger",
    "dataset",
    "purpose",
    "random_state",
    "n_jobs",
    "verbose",
}
_ROUNDED_UP = ("epsilon", "delta", "mu", "rho")
_METRICS = {
    "accuracy": "accuracy (share of rows predicted right)",
    "auc": "AUC (0.5: guessing, 1: perfect)",
    "log_loss": "log-loss (smaller is better)",
    "calibration": "share of the second class",
    "mae": "mean absolute error",
    "r2": "R² (0: the mean, 1: perfect)",
}


def statement_facts(statement: PrivacyStatement) -> dict[str, Any]:
    """Return a statement's entries in words, those that say something; their names likewise."""
    return {
        name.replace("_", " "): _worded(name, value)
        for name, value in statement.to_dict().items()
        if isinstance(value, bool) or value not in (None, "", [], {}, 0)
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
    """Return what a model is, in words: labels, columns, steps, settings and its digest."""
    bounds = model.statement.target_bounds
    labels = ", ".join(map(str, model.classes.tolist()))
    if model.statement.many_labels:
        labels += " (a row has or has not each)"
    elif model.classes.size == 2:
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
        if is_draft(model):
            made["draft"] = schema.note or "nobody has edited it"
    if model.row_steps is not None:
        made["rows"] = "made by " + ", then ".join(model.row_steps.described())
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


def is_draft(model: Model) -> bool:
    """Return whether the columns were made by a schema that was drafted from data, unedited."""
    return model.origin is not None and model.origin.is_unedited_draft


def score_name(score: Mapping[str, Any]) -> str:
    """Return what a private score, as `PrivateScore.to_dict` gives it, is called on a page."""
    name = score["metric"]
    return f"{_METRICS.get(name, name)}, epsilon {rounded_up(score['privacy']['epsilon'])}"
