"""What ``fit`` trains: the options of both methods, and the estimator that they make."""

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.options import MODEL, PRIVACY, flag, option

if TYPE_CHECKING:
    from dplasso.estimators.load import Estimator

LASSO, LOGISTIC = "lasso", "logistic"
# Weights of every column beyond this are too many to hold.
_MOST_COLUMNS = 10**8


@dataclass(frozen=True)
class PrivacyOptions:
    """What is promised to whom, and what is declared as public."""

    epsilon: options.Epsilon
    delta: options.Delta = 1e-6
    neighbors: options.Neighbors = "add-remove"
    feature_bound: Annotated[
        float | None,
        option(
            "--feature-bound",
            "lasso: public bound on |value|, 1 by default; larger values are clipped to it, "
            "silently.",
            "B",
            PRIVACY,
        ),
    ] = None
    row_norm: Annotated[
        str | None,
        option(
            "--row-norm",
            "logistic: unit (default) scales every row to length 1; a number scales longer rows "
            "down to it.",
            "R",
            PRIVACY,
        ),
    ] = None
    residual_bound: Annotated[
        str | None,
        option(
            "--residual-bound",
            "The most that a row can pull, from 0.5 (default) to 1.",
            "C",
            PRIVACY,
        ),
    ] = None
    rows_per_person: options.RowsPerPerson = None
    n_records: options.Records = None
    classes: Annotated[
        str | None,
        option(
            "--classes",
            "The two labels, as public knowledge. Default: the numbers of --label-map or, "
            "without it, taken from the file, which the statement then says.",
            "NEG,POS",
            PRIVACY,
        ),
    ] = None
    features: Annotated[
        int | None,
        option(
            "--features",
            "Number of columns, as public knowledge. Default: taken from the file.",
            "D",
            PRIVACY,
            min=1,
        ),
    ] = None
    seed: options.Seed = None
    mechanism: Annotated[
        str | None,
        option(
            "--mechanism",
            "lasso: exponential (default), or paper: the published algorithm, for reproduction "
            "only; it is not differentially private.",
            panel=PRIVACY,
        ),
    ] = None
    ledger: options.Ledger = None
    dataset: options.DatasetName = None
    purpose: options.Purpose = None


@dataclass(frozen=True)
class ModelOptions:
    """What is trained and how; None keeps the estimator's own default."""

    method: options.Method = LASSO
    max_weights: Annotated[
        str | None,
        option(
            "--max-weights",
            "logistic: keep K weights and refit them, or those beyond 3 standard errors. "
            "Default: every column has one.",
            "K|significant",
            MODEL,
        ),
    ] = None
    l1_radius: Annotated[
        float | None,
        option(
            "--l1-radius",
            "lasso: largest sum of |weight|, for steps as in the paper. Default: steps of one "
            "size, every column at most once.",
            "R",
            MODEL,
        ),
    ] = None
    n_iter: options.Steps = None
    refit: Annotated[
        str | None,
        option(
            "--refit",
            "lasso: share of the budget that refits the weights of the columns drawn; none: no "
            "refit. Default: 0.3 where it pays by public facts.",
            "SHARE|none",
            MODEL,
        ),
    ] = None
    no_intercept: Annotated[bool, flag("--no-intercept", "Leave the intercept out.", MODEL)] = False
    solver: Annotated[
        str | None,
        option("--solver", "lasso: sparse (default) or standard: same model.", panel=MODEL),
    ] = None
    selector: Annotated[
        str | None,
        option(
            "--selector",
            "lasso: how a column is drawn; every choice draws from the same distribution.",
            panel=MODEL,
        ),
    ] = None
    drift_tol: Annotated[
        str | None,
        option(
            "--drift-tol",
            "lasso: how stale a record's gradient may get in the sparse solver; 0: never, "
            "none: without limit; default: auto.",
            "X",
            MODEL,
        ),
    ] = None
    jobs: Annotated[
        int | None, option("--jobs", "Threads; never changes the model.", "N", MODEL)
    ] = None


# Options that have another name than the estimator's parameter, or none there.
_RENAMED = {"seed": "random_state", "jobs": "n_jobs"}
_OURS = ("method", "no_intercept", "classes", "features")


def make_estimator(privacy: PrivacyOptions, training: ModelOptions) -> "Estimator":
    """Make the method's estimator; options that were not given keep its own defaults.

    Raises
    ------
    ValueError
        If there is no such method, or an option does not go with it.
    """
    import dplasso

    kinds: dict[str, type[Estimator]] = {
        LASSO: dplasso.DPLassoClassifier,
        LOGISTIC: dplasso.DPLogisticRegression,
    }
    method = training.method
    if method not in kinds:
        raise ValueError(f"method must be {LASSO} or {LOGISTIC}, got {method!r}")
    chosen: dict[str, Any] = {"fit_intercept": not training.no_intercept}
    for group in (privacy, training):
        for name in (field.name for field in fields(group)):
            value = getattr(group, name)
            if value is not None and name not in _OURS:
                chosen[_RENAMED.get(name, name)] = value
    estimator = kinds[method]()
    if foreign := [name for name in chosen if name not in estimator.get_params()]:
        other = LASSO if method == LOGISTIC else LOGISTIC
        raise ValueError(f"{foreign[0]} does not go with method={method}, only with {other}")
    for name in ("max_weights", "row_norm", "residual_bound", "refit"):
        if name in chosen:
            chosen[name] = number_or_word(chosen[name])
    if chosen.get("refit") == "none":
        chosen["refit"] = None
    if training.drift_tol is not None:
        chosen["drift_tol"] = parse_drift_tol(training.drift_tol)
    if privacy.ledger is not None:
        chosen["ledger"] = str(privacy.ledger)
    estimator.set_params(**chosen)
    return estimator


def parse_drift_tol(text: str) -> float | str | None:
    """Read ``--drift-tol``: a number, or the word none or auto."""
    word = text.strip().lower()
    if word in ("none", "auto"):
        return None if word == "none" else word
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--drift-tol {text!r} is neither a number nor none nor auto"
        ) from None


def number_or_word(text: str) -> int | float | str:
    """Read a value that may be a number; the estimator refuses other words than its own."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip().lower()


def better_method(training: ModelOptions, estimator: "Estimator") -> str | None:
    """Name the other method where public facts say that it would be more accurate.

    Unless a number of weights was asked for: then the LASSO may be what is wanted.
    """
    asked = training.n_iter is not None or training.l1_radius is not None
    if training.method != LASSO or asked or not estimator.privacy_.is_private:
        return None
    if math.isinf(estimator.epsilon) or estimator.n_features_in_ > _MOST_COLUMNS:
        return None
    return (
        "More accurate on nearly all data, with nothing to tune: --method logistic, which gives "
        "every column a weight (or --max-weights K)."
    )
