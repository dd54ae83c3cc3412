"""What a record that must not count is added to: fits, scores and edges, by random options.

A trial has two data sets, without the record and with it, and what is run on both.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso import private_quantiles, private_score
from dplasso.checkpoint import fit_with_checkpoints
from dplasso.cluster import InProcessEngine, ThreadEngine
from dplasso.phases.intervals import MOST_COLUMNS
from dplasso.tuning.estimates import MANY_LABELS, NUMBERS, TWO_CLASSES
from dplasso.tuning.metrics import METRICS
from isolated_records import (
    FORMS,
    IN_PARTS,
    N_COLUMNS,
    SCHEMA,
    Choices,
    Records,
    draw,
    encoded,
    in_memory,
    matrix,
)
from isolated_units import drawn_releases
from small_fits import (
    BOUNDS,
    FAMILIES,
    GRADIENTS,
    LASSOS,
    LOOPS,
    N_CLASSES,
    PLANS,
    STRANGERS,
    directions,
    given_to_fit,
    planned,
    prior_of,
    scored_model,
    short_runs,
    targets_of,
)

THREADS = (1, 2, 3)
# Of all trials, more are of what has more ways to go wrong.
KINDS = ("gradients", "draws", "scores", "edges")
_OFTEN = {"gradients": 5, "draws": 2, "scores": 2, "edges": 1}


@dataclass(frozen=True)
class Trial:
    """Two data sets and what is run on both; `adds`: what a record adds is what it is by itself."""

    one: Records
    other: Records
    run: Callable[[Records, Path], dict[str, Any]]
    adds: bool = False


# --- Fits ----------------------------------------------------------------------------------------

# Options of the paper's algorithms.
RADII: dict[str, dict[str, Any]] = {
    "of a radius": {"n_iter": 6, "l1_radius": 20.0},
    "by Algorithm 1": {"n_iter": 6, "l1_radius": 9.0, "solver": "standard"},
}


def _start(choices: Choices, family: str, n_classes: int, n_columns: int) -> dict[str, Any]:
    # Cross-validation on public rows takes a thousand times as long as the fit.
    start = choices.pick("start", (*["nothing"] * 8, *["plain"] * 4, *["huge"] * 3, "public"))
    if start == "nothing":
        return {}
    rng = choices.rng("start")
    if start != "public":
        return {"prior": prior_of(start, n_classes, n_columns, rng)}
    X = rng.normal(0.0, 1.0, (10, n_columns))
    y = targets_of(n_classes, rng, 10, many_labels=family == "labels")
    if n_classes and family != "labels":
        y = np.arange(10) % n_classes
    return {"public_data": (X, y)}


def _descent(
    choices: Choices, family: str, way: str, n_columns: int, options: dict[str, Any]
) -> None:
    options["max_weights"] = choices.pick("most-weights", (None, None, 3))
    options["row_norm"] = choices.pick("row-norm", ("unit", "unit", 2.0))
    from_prior = {"prior", "public_data"} & set(options)
    weighs = choices.pick("class-weights", (None, None, "given", "balanced"))
    if family in ("logistic", "three classes") and weighs is not None:
        options["class_weight"] = [0.3, 7.0, 1.0][: FAMILIES[family][1]]
        if weighs == "balanced" and not from_prior:
            options["class_weight"] = "balanced"
    plain = options["max_weights"] is None and "class_weight" not in options and not from_prior
    plain &= n_columns <= MOST_COLUMNS
    if plain and family in ("logistic", "linear"):
        options |= choices.pick("intervals", ({}, {"infer": "all", "row_norm": 2.0}))
    by_class = options.get("class_weight") == "balanced"
    by_class |= options["fit_intercept"] and not from_prior and family != "labels"
    # Where rows are replaced, what is counted is rows of whatever weight (docs/logistic.md).
    if way == "weight" and not by_class:
        options["neighbors"] = "add-remove"


def _fit_trial(kind: str, choices: Choices) -> "Trial":
    way = choices.pick("why", ("weight", "person"))
    limit = choices.pick("limit", (1, 2, 3)) if way == "person" else 1
    families = GRADIENTS if kind == "gradients" else LASSOS
    columns = "all"
    if kind == "gradients" and choices.pick("family", ("descent", "descent", "lasso")) == "lasso":
        families = LASSOS
        columns = choices.pick("columns", ("all", "all", "kept"))
    elif kind == "draws":
        columns = choices.pick("columns", ("drawn", *RADII))
        families = LOOPS if columns in RADII else LASSOS
    family = choices.pick("target", families)
    maker, n_classes = FAMILIES[family]
    forms: tuple[str, ...] = ("csr", "csr", "csc", "csc, row last", "coo", "dense")
    forms += ("dense by columns", "store")
    own_people = way == "person" and family != "labels"
    forms += ("table",) + ("store of people",) * own_people
    if families is not LOOPS:
        forms += ("partitions", "partitions")
        forms += ("stores",) * (own_people or (way == "weight" and family != "labels"))
    targets = partial(targets_of, n_classes, many_labels=family == "labels")
    one, other, form = draw(choices, targets, way, limit, forms)
    n_rows = len(one.rows)
    options: dict[str, Any] = {
        "epsilon": choices.pick("epsilon", (5.0, 1.0, 60.0) if n_rows < 2800 else (100.0, 5.0)),
        "neighbors": choices.pick("neighbors", ("add-remove", "replace-one")),
        "fit_intercept": choices.pick("intercept", (True, True, False)),
        "n_jobs": choices.pick("threads", THREADS),
        "random_state": choices.number,
    }
    if way == "person":
        options["rows_per_person"] = limit
    options |= {"classes": list(range(n_classes))} if n_classes else {"target_bounds": BOUNDS}
    n_columns = SCHEMA.n_features if form == "table" else N_COLUMNS
    if families is not LOOPS:
        options |= _start(choices, family, n_classes, n_columns)
    if families is GRADIENTS:
        _descent(choices, family, way, n_columns, options)
        may = options["row_norm"] == "unit" and form not in IN_PARTS
        if may and choices.pick("public-rows", (False, False, True)):
            options["public_rows"] = directions(n_columns)
    else:
        options["feature_bound"] = choices.pick("feature-bound", (1.0, 0.1, 1.5))
        options |= {"max_weights": 5} if columns == "drawn" else RADII.get(columns, {})
        may = kind == "gradients" and form not in IN_PARTS
        if may and choices.pick("public-rows", (False, False, True)):
            options["public_rows"] = directions(n_columns)
            # As in `_descent`: it counts rows of whatever weight where it does not count classes.
            if way == "weight" and (
                {"prior", "public_data"} & set(options) or not options["fit_intercept"]
            ):
                options["neighbors"] = "add-remove"
        if columns == "of a radius":
            options["drift_tol"] = choices.pick("drift", ("auto", None, 0.01))
        if columns in RADII and choices.pick("records", ("counted", "public")) == "public":
            options["n_records"] = n_rows
    # With few steps, but where they are as many as pay.
    patched = [short_runs] if choices.pick("steps", ("few", "few", "auto")) == "few" else []
    patched += [partial(planned, columns)] if columns in PLANS else []
    if choices.pick("units-released", ("found", "drawn", "drawn")) == "drawn":
        patched.append(drawn_releases(choices.rng))
    return Trial(one, other, partial(_within, patched, maker(**options), choices, form))


def _within(
    patched: Any, estimator: Any, choices: Choices, form: str, records: Records, folder: Path
) -> dict[str, Any]:
    with ExitStack() as stack:
        for one in patched:
            stack.enter_context(one())
        return _fit(estimator, choices, form, records, folder)


def _given(choices: Choices, form: str, records: Records, folder: Path) -> tuple[Any, Any, Any]:
    """Return X, y and what else a fit is given."""
    if form == "table":
        _, y, given = given_to_fit("csr", records, folder)
        return encoded(records, folder, choices), y, given
    if form not in IN_PARTS:
        return given_to_fit(form, records, folder)
    engine = choices.pick("engine", (InProcessEngine, ThreadEngine))
    return given_to_fit(form, records, folder, engine(choices.pick("threads", THREADS)))


def _fit(estimator: Any, choices: Choices, form: str, records: Records, folder: Path) -> Any:
    X, y, given = _given(choices, form, records, folder)
    parts: dict[str, Any] = {}
    if form == "store of people":
        path = folder / "fit.checkpoint"
        fitted = fit_with_checkpoints(estimator, X, None, path, overwrite=True)
        parts["checkpoint"] = path.read_bytes()
    else:
        fitted = estimator.fit(X, y, **given)
    fitted.save(folder / "model.npz")
    parts["model file"] = (folder / "model.npz").read_bytes()
    parts["statement"] = fitted.privacy_.to_json(), str(fitted.privacy_)
    shown = matrix(records) if form in IN_PARTS else X
    margins = getattr(fitted, "decision_function", fitted.predict)(shown)
    kept = np.arange(len(records.rows)) != records.extra
    parts["predictions"] = margins[kept].tobytes()
    return parts


# --- Scores and edges: what a record adds is what it is by itself --------------------------------

_OF_CLASSES = ("accuracy", "f1", "f1_weighted")


def _between_classes(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    """Move rows to where a linear model's first margin is 0, or its first two classes are equal."""
    first = getattr(model, "estimators_", [model])[0]
    weights = np.atleast_2d(getattr(first.coef_, "toarray", lambda: first.coef_)())
    constants = np.atleast_1d(first.intercept_)
    w, b = weights[0], constants[0]
    if len(weights) > 1:
        w, b = w - weights[1], b - constants[1]
    j = int(np.abs(w).argmax())
    X[:, j] = -(b + np.delete(X, j, axis=1) @ np.delete(w, j)) / w[j]
    return X


def _score_trial(choices: Choices) -> Trial:
    kind = choices.pick("target", (TWO_CLASSES, *N_CLASSES))
    strangers = range(1, 1 + len(STRANGERS[kind]))
    ours = (0, 0) if kind == MANY_LABELS else (0, 1 + len(strangers))
    number = choices.pick("model", (*strangers, *strangers, *ours))
    model = scored_model(kind, number)
    fitting = [name for name, one in METRICS.items() if kind in one.kinds]
    if not hasattr(model, "predict_proba") and kind != NUMBERS:
        fitting = [name for name in fitting if name in _OF_CLASSES]
    metric = choices.pick("metric", fitting)
    forms: tuple[str, ...] = ("dense", "dense by columns", "csr", "csc", "csc, row last", "coo")
    # Others' models multiply matrices by BLAS; stores are for models of ours.
    forms = (*["dense"] * 5, *forms) if number in strangers else (*forms, "store")
    way = choices.pick("people", ("", "", "person"))
    targets = partial(targets_of, N_CLASSES[kind], many_labels=kind == MANY_LABELS)
    one, other, form = draw(choices, targets, way, 1, forms)
    if choices.pick("at-the-margin", (False, True, True, True)):
        one, other = _at_the_margin(choices, model, one, other)
    options: dict[str, Any] = {"metric": metric, "epsilon": 1.0, "random_state": choices.number}
    options["neighbors"] = choices.pick("neighbors", ("add-remove", "replace-one"))
    options |= {"target_bounds": BOUNDS} if kind == NUMBERS else {}

    def run(records: Records, folder: Path) -> dict[str, Any]:
        X = FORMS[form](records, folder)
        people = records.people and list(records.people)
        score = private_score(model, X, records.y, groups=people, **options)
        return {"score": json.dumps(score.to_dict())} if way else {}

    return Trial(one, other, run, adds=not way)


def _at_the_margin(choices: Choices, model: Any, one: Records, other: Records) -> Any:
    """Put the rows of all where a last bit decides; the extra one stays what it is."""
    rng = choices.rng("at-the-margin")
    X = _between_classes(model, rng.normal(0.0, 1.0, (len(one.rows), N_COLUMNS)))
    rows = tuple((np.arange(N_COLUMNS), own) for own in X)
    both = (*rows[: other.extra], other.rows[other.extra], *rows[other.extra :])
    kept = replace(one, rows=rows, dtype=np.float64)
    return kept, replace(other, rows=both, dtype=np.float64)


def _edges_trial(choices: Choices) -> "Trial":
    way = choices.pick("people", ("", "person"))
    limit = choices.pick("limit", (1, 2)) if way else 1
    targets = partial(targets_of, 2)
    one, other, _ = draw(choices, targets, way, limit, ("table",))
    seen = {"real0": (-2.0, 5.0)}
    reader = choices.pick("reader", ("arrow", "pandas"))

    def run(records: Records, _: Path) -> dict[str, Any]:
        people = records.people and list(records.people)
        options = {"epsilon": 1.0, "rows_per_person": limit, "random_state": choices.number}
        table = in_memory(records, reader)
        schema = private_quantiles(table, SCHEMA, seen, bins=4, groups=people, **options)
        return {"schema": schema.to_json()} if way else {}

    return Trial(one, other, run, adds=not way)


def trial_of(choices: Choices, kinds: tuple[str, ...]) -> Trial:
    """Make the choices of a trial of one of these kinds."""
    kind = choices.pick("kind", [kind for kind in kinds for _ in range(_OFTEN[kind])])
    if kind == "scores":
        return _score_trial(choices)
    return _edges_trial(choices) if kind == "edges" else _fit_trial(kind, choices)
