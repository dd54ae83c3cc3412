"""What ``fit`` trains: the options of both methods, and the estimator that they make."""

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.options import MODEL, PRIVACY, flag, option

if TYPE_CHECKING:
    from dplasso.estimators.load import Estimator

LASSO, LOGISTIC, LINEAR = "lasso", "logistic", "linear"
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
            "lasso: public bound on |value|, 1 by default; larger values are clipped to it "
            "without a message.",
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
            "Bound on a record's residual, from 0.5 (default) to 1; for a regression, from 0.01 "
            "to 2, in halves of the targets' interval, 0.25 by default.",
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
            "The labels, as public knowledge. Default: the numbers of --label-map or, without "
            "it, taken from the file, which the statement then says.",
            "NEG,POS[,...]",
            PRIVACY,
        ),
    ] = None
    target_bounds: options.TargetBounds = None
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
    task: Annotated[
        str | None,
        option(
            "--task",
            "Default: a regression where --target-bounds is given, otherwise a classification.",
            "classification|regression",
            MODEL,
        ),
    ] = None
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
        int | None, option("--jobs", "Threads; the model does not depend on them.", "N", MODEL)
    ] = None


# Options that have another name than the estimator's parameter, or none there.
_RENAMED = {"seed": "random_state", "jobs": "n_jobs"}
_OURS = ("method", "task", "no_intercept", "classes", "features")
_TASKS = ("classification", "regression")


def make_estimator(privacy: PrivacyOptions, training: ModelOptions) -> "Estimator":
    """Make the method's estimator; options that were not given keep its own defaults.

    Raises ValueError if there is no such method, or an option does not go with it.
    """
    import dplasso

    kinds: dict[tuple[str, bool], type[Estimator]] = {
        (LASSO, False): dplasso.DPLassoClassifier,
        (LASSO, True): dplasso.DPLasso,
        (LOGISTIC, False): dplasso.DPLogisticRegression,
        (LINEAR, True): dplasso.DPLinearRegression,
    }
    method, regression = training.method, is_regression(privacy, training)
    if method not in (LASSO, LOGISTIC, LINEAR):
        raise ValueError(f"method must be {LASSO}, {LOGISTIC} or {LINEAR}, got {method!r}")
    if (method, regression) not in kinds:
        task, right = ("regression", LINEAR) if regression else ("classification", LOGISTIC)
        raise ValueError(f"a {task} takes the method {LASSO} or {right}, not {method}")
    if regression and privacy.classes is not None:
        raise ValueError("a regression has no classes; leave --classes out")
    chosen: dict[str, Any] = {"fit_intercept": not training.no_intercept}
    for group in (privacy, training):
        for name in (field.name for field in fields(group)):
            value = getattr(group, name)
            if value is not None and name not in _OURS:
                chosen[_RENAMED.get(name, name)] = value
    estimator = kinds[method, regression]()
    if foreign := [name for name in chosen if name not in estimator.get_params()]:
        other = (LINEAR if regression else LOGISTIC) if method == LASSO else LASSO
        raise ValueError(f"{foreign[0]} does not go with method={method}, only with {other}")
    for name in ("max_weights", "row_norm", "residual_bound", "refit"):
        if name in chosen:
            chosen[name] = number_or_word(chosen[name])
    if chosen.get("refit") == "none":
        chosen["refit"] = None
    if privacy.target_bounds is not None:
        chosen["target_bounds"] = parse_target_bounds(privacy.target_bounds)
    if training.drift_tol is not None:
        chosen["drift_tol"] = parse_drift_tol(training.drift_tol)
    if privacy.ledger is not None:
        chosen["ledger"] = str(privacy.ledger)
    estimator.set_params(**chosen)
    return estimator


def is_regression(privacy: PrivacyOptions, training: ModelOptions) -> bool:
    """Return whether a fit learns numbers: as said, or as an interval for them says.

    Raises ValueError if the task is neither, or one without the interval or with one that it has
    no use for.
    """
    task, bounded = training.task, privacy.target_bounds is not None
    if task is not None and task not in _TASKS:
        raise ValueError(f"task must be {' or '.join(_TASKS)}, got {task!r}")
    if task == "classification" and bounded:
        raise ValueError("--target-bounds is for a regression, not for a classification")
    return bounded or task == "regression" or (task is None and training.method == LINEAR)


def parse_target_bounds(text: str) -> tuple[float, float]:
    """Read ``--target-bounds``: two numbers, the lower first."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not an interval; write --target-bounds LOW,HIGH, for example 0,100"
        ) from None
    return low, high


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

    Unless a number of weights was asked for: then the LASSO may be what is wanted. Nor where it
    drew no column because there are so few that it refitted all: then both are about alike.
    """
    asked = estimator.n_iter_ == 0 or training.n_iter is not None or training.l1_radius is not None
    if training.method != LASSO or asked or not estimator.privacy_.is_private:
        return None
    if math.isinf(estimator.epsilon) or estimator.n_features_in_ > _MOST_COLUMNS:
        return None
    method = LOGISTIC if estimator.privacy_.n_classes else LINEAR
    return (
        f"More accurate on nearly all data, with nothing to tune: --method {method}, which gives "
        "every column a weight (or --max-weights K)."
    )
