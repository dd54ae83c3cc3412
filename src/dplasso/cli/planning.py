"""``dplasso budget`` and ``plan``: what a privacy budget buys, without any data."""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import typer

from dplasso import privacy_cost, weakest_association
from dplasso.cli import output
from dplasso.cli.clusters import Estimate
from dplasso.cli.interval_plan import IntervalOptions, intervals_text
from dplasso.cli.options import option_name
from dplasso.cli.training import default_method, parse_target_bounds
from dplasso.estimators.cost import dense_schedule, estimator_of, task_of
from dplasso.estimators.fitting import method_of
from dplasso.fit.method import MANY_COLUMNS
from dplasso.gradient_descent.schedule import SIGNIFICANT
from dplasso.privacy.parameters import RELATIONS
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import rounded_down as down
from dplasso.privacy.wording import rounded_up
from dplasso.tuning.plan import Part, plan_budget

ITERATIONS_SHOWN = (10, 30, 100, 300, 1000, 4000)
EPSILONS_SHOWN = (0.1, 0.3, 1.0, 3.0, 10.0)
# Which rows a column that can be found has more of.
_SIDES = {
    True: "of one class than of the other",
    False: "far above what the others predict than far below",
}


def budget(
    epsilon: float,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    feature_bound: float | None = None,
    rows_per_person: int | None = None,
    rows: int | None = None,
    features: int | None = None,
    n_classes: int = 2,
    target_bounds: str | None = None,
    row_entries: float = 1.0,
    method: str | None = None,
    n_iter: int | None = None,
    explain: bool = False,
) -> output.Result:
    """Compute what a fit would cost and what it could find, without any data.

    Model
    -----
    rows : N >= 1
        Number of rows, about; with --columns, also say what can be found.
    features, columns : D >= 1
        Number of columns.
    n_classes : K >= 2
        Number of classes.
    row_entries : R
        logistic, linear: entries of a row, about.

    Examples
    --------
    dplasso budget --epsilon 1
    dplasso budget --epsilon 1 --rows 30000 --columns 100000
    dplasso budget --epsilon 0.5 --method frank-wolfe --n-iter 300 --columns 1000000
    dplasso budget --epsilon 1 --n-classes 10
    dplasso budget --epsilon 1 --target-bounds 0,100
    dplasso budget --epsilon 1 --neighbors replace-one --json
    """
    bounds = None if target_bounds is None else parse_target_bounds(target_bounds)
    method = method or default_method(bounds is not None)
    settings: dict[str, Any] = {"neighbors": neighbors, "rows_per_person": rows_per_person}
    settings |= {"feature_bound": feature_bound, "n_iter": n_iter}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= {"method": method, "n_classes": n_classes, "target_bounds": bounds}
    asked, draws = privacy_cost(epsilon, delta, **settings), method == "frank-wolfe"
    shown, table, mine = sorted({*EPSILONS_SHOWN, epsilon}), list[dict[str, Any]](), 0
    if draws:
        steps = sorted({*ITERATIONS_SHOWN, asked.steps})
        costs = [privacy_cost(epsilon, delta, **settings | {"n_iter": count}) for count in steps]
        table = [_draws_row(cost, features) for cost in costs]
        mine = steps.index(asked.steps)
    elif method != "lasso":
        table = [_noise_row(one, delta, rows, **settings) for one in shown]
        mine = shown.index(epsilon)
    report: dict[str, Any] = {"privacy": asked.to_dict(), "table": table}
    if table:
        report["noise_scale"] = table[mine]["noise_scale"]
    if rows is not None and features is not None and not draws:
        extent = {"row_entries": row_entries, **settings}
        report["findable"] = [
            {"epsilon": one, **asdict(weakest_association(one, delta, rows, features, **extent))}
            for one in shown
        ]

    def show() -> None:
        output.text("A fit with these settings would be:\n")
        output.promise(asked, explain=explain)
        output.text()
        if "findable" in report:
            among = f"Of {features:,} columns in {rows:,} rows"
            drawn = method == "lasso"
            _print_findable(report["findable"], shown.index(epsilon), asked, among, drawn=drawn)
        elif draws:
            _print_draws(table, mine, features, asked)
        elif table:
            _print_noise(table, mine, asked)
        else:
            output.text("Give --rows N and --columns D to see what such a fit can find.")

    return output.Result(report, show)


def _draws_row(statement: PrivacyStatement, features: int | None) -> dict[str, Any]:
    """Return a row of the table: the scale of a draw's Gumbel noise, 0 without privacy."""
    eps0, moved = statement.number("eps0") or math.inf, _share_of(statement)
    moved *= statement.rows_per_person * RELATIONS[statement.neighbors].times
    row = {"n_iter": statement.steps, "eps0": eps0, "noise_scale": 2.0 * moved / eps0}
    if features is not None:
        # The largest of 2D Gumbel noises of scale s is about s ln(2D), 2KD for K classes.
        outputs = statement.n_classes if statement.n_classes > 2 else 1
        row["findable_gradient"] = row["noise_scale"] * math.log(2 * outputs * features)
    return row


def _share_of(statement: PrivacyStatement) -> float:
    """Return the largest contribution of a record to a column's gradient."""
    return (statement.number("feature_bound") or 1.0) * (statement.number("residual_bound") or 1.0)


def _noise_row(
    epsilon: float,
    delta: float,
    rows: int | None,
    *,
    method: str,
    n_classes: int,
    target_bounds: tuple[float, float] | None,
    **settings: Any,
) -> dict[str, Any]:
    """Return a row of the table: the noise of a dense fit, from public numbers."""
    settings |= {"epsilon": epsilon, "delta": delta}
    estimator = estimator_of(method, target_bounds, **settings)
    task = task_of(n_classes, getattr(estimator, "target_bounds", None))
    cost = method_of(estimator).budget(task, MANY_COLUMNS // task.n_outputs)
    schedule = dense_schedule(rows or 1, cost, task)
    return {
        "epsilon": epsilon,
        "mu": cost.mu,
        "noise_scale": schedule.noise_scale,
        "standard_error": schedule.standard_error,
        "findable_gradient": SIGNIFICANT * schedule.standard_error / schedule.reach(),
    }


def _print_findable(
    found: list[dict[str, Any]], mine: int, asked: PrivacyStatement, among: str, *, drawn: bool
) -> None:
    def part(one: dict[str, Any]) -> str:
        return f"{100 * one['part']:.2g} %" if one["part"] <= 1 else "nothing can be found"

    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">epsilon": lambda one: f"{one['epsilon']:g}",
        ">weights": lambda one: f"{one['n_weights']:,}",
        ">weakest column,\nin rows": lambda one: f"{math.ceil(one['rows']):,}",
        ">of all rows": part,
    }
    output.listing(columns, found, strong={mine: "bold"})
    reached = "is drawn before noise" if drawn else "has a weight beyond 3 standard errors"
    sides = _SIDES[asked.n_classes > 0]
    output.text(f"{among}, one that occurs in so many more rows {sides} {reached}.")


def _print_draws(
    rows: list[dict[str, Any]], mine: int, features: int | None, asked: PrivacyStatement
) -> None:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">steps": lambda row: f"{row['n_iter']:,}",
        ">eps0 per step": lambda row: rounded_up(row["eps0"], 5),
        ">noise scale on a gradient": lambda row: f"{row['noise_scale']:,.1f}",
    }
    if features is not None:
        heading = f">gradient that stands out\namong {features:,} columns"
        columns[heading] = lambda row: f"{row['findable_gradient']:,.0f}"
    output.listing(columns, rows, strong={mine: "bold"})
    output.text(
        "A column's gradient is a sum over records. Each contributes at most "
        f"{_share_of(asked):g}. At noise scale s, a column whose gradient is larger by s is about "
        "e times as likely to be chosen."
    )


def _print_noise(rows: list[dict[str, Any]], mine: int, asked: PrivacyStatement) -> None:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">epsilon": lambda row: f"{row['epsilon']:g}",
        ">noise on one gradient\n(standard deviation)": lambda row: f"{row['noise_scale']:,.1f}",
        ">standard error\nof a weight": lambda row: f"{row['standard_error']:.3f}",
        ">gradient beyond\n3 standard errors": lambda row: f"{row['findable_gradient']:,.1f}",
    }
    output.listing(columns, rows, strong={mine: "bold"})
    unit = "log-odds" if asked.n_classes else "in halves of the targets' interval"
    output.text(
        f"Rows have length 1, so the standard error is also that of any row's margin ({unit}). "
        "Training stops at this standard error for every epsilon. A larger budget buys a longer "
        "path, so the signal grows relative to the noise. A column's gradient is a sum over "
        "records. A record with R entries of equal size contributes at most "
        f"{asked.number('residual_bound'):.3g}/sqrt(R)."
    )


def plan(
    rows: int,
    intervals: IntervalOptions,
    epsilon: float | None = None,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    method: str | None = None,
    columns: int = 100_000,
    row_entries: float = 30.0,
    entries: float | None = None,
    n_classes: int = 2,
    target_bounds: str | None = None,
    workers: int | None = None,
    worker_threads: int = 1,
    score: float = 0.1,
    encoding: float = 0.0,
    refit: float = 0.0,
    tries: float = 0.0,
) -> output.Result:
    """Divide a budget among encoding, fit or search, second fit and score.

    Privacy
    -------
    epsilon : E
        The whole budget. Not needed if only --workers is asked for.

    Model
    -----
    method : logistic|linear|lasso
        Default: logistic, or linear for a regression.
    n_classes : K >= 2
        Number of classes.

    Options
    -------
    rows : N >= 1
        About how many rows there are; public.
    columns : D >= 1
        About how many columns there are.
    row_entries : R
        About how many non-zero entries a row has: the parts of a table, or the distinct words
        of a text.
    entries : C
        Entries of all rows, in place of --row-entries.
    workers : W >= 1
        Estimate time, and memory of each worker, for a fit on so many partitions.
    worker_threads : N >= 1
        Cores of each worker.
    score : S
        Share of a private score.
    encoding : S
        Share of a private encoding of the columns.
    refit : S
        Share of a second fit.
    tries : M
        Replace the fit by a search with so many expected tries.

    Examples
    --------
    dplasso plan --epsilon 2 --rows 30000
    dplasso plan --epsilon 2 --rows 30000 --columns 120 --row-entries 14
    dplasso plan --epsilon 2 --rows 30000 --tries 3
    dplasso plan --epsilon 2 --rows 30000 --columns 12 --infer --effect 0.3
    dplasso plan --epsilon 2 --rows 30000 --target-bounds 0,100
    dplasso plan --rows 1000000000 --columns 1000000 --entries 2e10 --workers 100

    Shares are of zCDP, which adds up; the epsilons of the parts sum to more than the whole. What a
    fit can find is accurate within a factor of two if columns are similar.
    """
    bounds = None if target_bounds is None else parse_target_bounds(target_bounds)
    method = method or default_method(bounds is not None)
    row_entries = row_entries if entries is None else entries / rows
    fit: dict[str, Any] = {"method": method, "n_classes": n_classes, "target_bounds": bounds}
    fit |= {"rows_per_person": rows_per_person, "neighbors": neighbors}
    report: dict[str, Any] = {}
    takes = ""
    if workers is not None:
        steps = privacy_cost(1.0 if epsilon is None else epsilon, delta, **fit).steps
        size: dict[str, Any] = {"rows": rows, "columns": columns, "entries": rows * row_entries}
        size |= {"threads": worker_threads, "outputs": n_classes if n_classes > 2 else 1}
        estimate = Estimate(**size, workers=workers, steps=steps)
        partitions = "1 partition" if workers == 1 else f"{workers} partitions"
        takes = f"A fit on {partitions}: {estimate.text()}."
        report["cluster"] = estimate.to_dict()
    if epsilon is None:
        if not takes:
            raise typer.BadParameter(
                "--epsilon E divides a budget, --workers W says what a cluster needs: give one"
            )
        return output.Result(report, partial(output.text, takes))
    whole: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    shares: dict[str, Any] = {"score": score, "encoding": encoding, "refit": refit, "tries": tries}
    extent = {"row_entries": row_entries, **fit}
    found = {
        part: _finds(part, rows, columns, extent) for part in plan_budget(**whole, **fit, **shares)
    }
    planned = intervals.planned(found, rows, columns, fit)
    if planned is not None:
        report["intervals"] = asdict(planned)
    parts = [
        {name: getattr(part, name) for name in ("name", "share", "epsilon", "delta")}
        | {"try_epsilon": part.try_epsilon or None, "finds": finds}
        for part, finds in found.items()
    ]

    def show() -> None:
        _print_plan(whole | fit | {"target_bounds": target_bounds}, found, tries)
        intervals_text(intervals, planned)
        if takes:
            output.text("\n" + takes)

    return output.Result({**whole, "neighbors": neighbors, "parts": parts, **report}, show)


def _print_plan(asked: dict[str, Any], found: dict[Part, str], tries: float) -> None:
    headings: dict[str, Callable[[Part], str]] = {
        "part": lambda part: part.name,
        ">share": lambda part: f"{part.share:.0%}",
        ">epsilon": lambda part: down(part.epsilon),
        "what it finds": lambda part: found[part],
    }
    output.listing(headings, found)
    output.text("\nCommands that charge this plan to a ledger:")
    usual = {"neighbors": "add-remove", "rows_per_person": 1, "target_bounds": None}
    more = {
        name: f" {option_name(name)} {asked[name]}" if asked[name] != default else ""
        for name, default in usual.items()
    }
    if asked["method"] == "linear" and not more["target_bounds"]:
        more["target_bounds"] = " --target-bounds LOW,HIGH"
    delta = f"--delta {asked['delta']:g}"
    people = more["neighbors"] + more["rows_per_person"]
    output.text(
        f"  dplasso ledger init L --epsilon {asked['epsilon']:g} {delta}{people}", wrap=False
    )
    method = f" DATA --method {asked['method']}{more['target_bounds']}"
    search = f"tune{method} --grid NAME=V,V --tries {tries:g} --law poisson{more['neighbors']}"
    who = " --person-column NAME" if more["rows_per_person"] else ""
    commands = dict.fromkeys(("fit", "refit"), f"fit{method}{people}{who}")
    commands |= {"search": search, "score": "evaluate model.npz DATA"}
    for part in found:
        if part.epsilon and part.name in commands:
            kept = "" if part.name == "score" else " --model model.npz"
            line = (
                f"dplasso {commands[part.name]} --epsilon {down(part.epsilon)} {delta} "
                f"--ledger L{kept}"
            )
            if part.name == "score" and who:
                line = (
                    f"in Python: private_score(model, X, y, {down(part.epsilon)}, "
                    f"{asked['delta']:g}, groups=people, rows_per_person={asked['rows_per_person']}"
                    ', ledger="L")'
                )
            output.text(f"  {line}", wrap=False)


def _finds(part: Part, rows: int, columns: int, extent: dict[str, Any]) -> str:
    """Say what a part of the plan can find in so many rows."""
    if not part.epsilon:
        return "nothing: the share is too small"
    classes = extent["method"] != "linear" and extent["target_bounds"] is None
    if part.name == "encoding":
        return f"a count of rows to within {2.0 * part.noise:,.0f}"
    if part.name == "score":
        low, high = (0.0, 1.0) if classes else extent["target_bounds"] or (0.0, 1.0)
        within = 2.0 * part.noise / rows * (high - low)
        # Right and wrong rows, each with this noise, near an accuracy of 0 or 1 at the worst.
        what = "an accuracy over all rows" if classes else "a mean absolute error"
        return f"{what} to within {within:.2g}, and chance"
    budget = part.try_epsilon or part.epsilon, part.delta
    found = weakest_association(*budget, rows, columns, **extent)
    finds = "nothing"
    if found.part <= 1.0:
        finds = f"columns in {found.rows:,.0f} more rows {_SIDES[classes]}"
    if part.name == "search":
        return f"{finds}, by each try (epsilon about {down(part.try_epsilon)})"
    return finds
