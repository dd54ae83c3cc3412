"""``dplasso budget`` and ``plan``: what a privacy budget buys, before any data is touched."""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import typer

from dplasso import privacy_cost, weakest_association
from dplasso.cli import output
from dplasso.cli.options import default_method, option_name
from dplasso.cli.training import parse_target_bounds
from dplasso.cluster.estimate import Estimate
from dplasso.fit.cost import dense_schedule
from dplasso.gradient_descent.plan import SIGNIFICANT
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE, COUNT_SHARE
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import COUNT_BY_CLASS, COUNT_PRIVATE, rounded_up
from dplasso.privacy.wording import rounded_down as down
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
    feature_bound: float = 1.0,
    rows_per_person: int | None = None,
    n_records: int | None = None,
    features: int | None = None,
    n_classes: int = 2,
    target_bounds: str | None = None,
    row_entries: float = 1.0,
    method: str | None = None,
    n_iter: int | None = None,
    explain: bool = False,
) -> output.Result:
    """Say what a fit would cost and what it could find, without any data.

    Model
    -----
    n_records, rows : N >= 1
        Number of rows, where it is public; with --columns, also say what can be found.
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
    dplasso budget --epsilon 0.5 --method lasso --n-iter 300 --columns 1000000
    dplasso budget --epsilon 1 --n-classes 10
    dplasso budget --epsilon 1 --target-bounds 0,100
    dplasso budget --epsilon 1 --neighbors replace-one --json
    """
    method = method or default_method(target_bounds is not None)
    settings: dict[str, Any] = {
        "method": method,
        "neighbors": neighbors,
        "n_classes": n_classes,
        "target_bounds": None if target_bounds is None else parse_target_bounds(target_bounds),
        "rows_per_person": 1 if rows_per_person is None else rows_per_person,
        **({} if feature_bound == 1.0 else {"feature_bound": feature_bound}),
    }

    def cost(epsilon: float, steps: int | None) -> PrivacyStatement:
        return privacy_cost(epsilon, delta, steps, n_records=n_records, **settings)

    asked, draws = cost(epsilon, n_iter), method == "lasso"
    shown = sorted({*EPSILONS_SHOWN, epsilon})
    if draws:
        counts = sorted({*ITERATIONS_SHOWN, *([] if n_iter is None else [n_iter])})
        rows = [_draws_row(cost(epsilon, count), features) for count in counts]
        mine = counts.index(n_iter or ITERATIONS_SHOWN[2])
    else:
        rows = [_noise_row(cost(one, n_iter), n_records, n_iter) for one in shown]
        mine = shown.index(epsilon)
    noise = rows[mine]["noise_scale"]
    report: dict[str, Any] = {"privacy": asked.to_dict(), "noise_scale": noise, "table": rows}
    if n_records is not None and features is not None:
        size = n_records, features
        extent = {"n_iter": n_iter, "row_entries": row_entries, **settings}
        report["findable"] = [
            {"epsilon": one, **asdict(weakest_association(one, delta, *size, **extent))}
            for one in shown
        ]

    def show() -> None:
        output.text("A fit with these settings would be:\n")
        output.promise(asked, explain=explain)
        output.text()
        if "findable" in report:
            among = f"Of {features:,} columns in {n_records:,} rows"
            _print_findable(report["findable"], shown.index(epsilon), asked, among, draws=draws)
        if draws and (n_iter is not None or "findable" not in report):
            share = asked.residual_bound * feature_bound
            _print_draws(rows, None if n_iter is None else mine, features, share)
        if not draws and "findable" not in report:
            _print_noise(rows, mine, asked)
        if draws and "findable" not in report:
            output.text("With --rows N and --columns D: what such a fit can find.")

    return output.Result(report, show)


def _draws_row(statement: PrivacyStatement, features: int | None) -> dict[str, Any]:
    """Say what the noise of a draw is: the scale of its Gumbel noise; 0 without privacy."""
    private = not math.isinf(statement.eps0)
    scale = 2.0 * statement.sensitivity / statement.eps0 if private else 0.0
    row = {"n_iter": statement.steps, "eps0": statement.eps0, "noise_scale": scale}
    if features is not None:
        # The largest of 2D Gumbel noises of scale s is about s ln(2D), 2KD for K classes.
        outputs = statement.n_classes if statement.n_classes > 2 else 1
        row["findable_gradient"] = scale * math.log(2 * outputs * features)
    return row


def _noise_row(
    statement: PrivacyStatement, n_records: int | None, n_iter: int | None
) -> dict[str, Any]:
    """Say what the noise of a dense fit is, from public numbers."""
    mu = statement.mu if statement.mechanism == "gaussian" else math.inf
    mu *= math.sqrt(1.0 - CALIBRATION_SHARE)
    if statement.records in {COUNT_BY_CLASS, COUNT_PRIVATE} and n_records is None:
        mu *= math.sqrt(1.0 - COUNT_SHARE)
    schedule = dense_schedule(
        n_records or 1, mu, statement.sensitivity, n_iter, statement.n_classes
    )
    return {
        "epsilon": statement.epsilon_requested,
        "mu": mu,
        "noise_scale": schedule.noise_scale,
        "standard_error": schedule.standard_error,
        "findable_gradient": SIGNIFICANT * schedule.standard_error / schedule.reach(),
    }


def _print_findable(
    found: list[dict[str, Any]], mine: int, asked: PrivacyStatement, among: str, *, draws: bool
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
    reached = "is drawn rather than noise" if draws else "is beyond 3 standard errors"
    sides = _SIDES[asked.n_classes > 0]
    output.text(f"{among}: one that occurs in so many more rows {sides} {reached}.")


def _print_draws(
    rows: list[dict[str, Any]], mine: int | None, features: int | None, share: float
) -> None:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">steps": lambda row: f"{row['n_iter']:,}",
        ">eps0 per step": lambda row: rounded_up(row["eps0"], 5),
        ">noise scale on a gradient": lambda row: f"{row['noise_scale']:,.1f}",
    }
    if features is not None:
        heading = f">gradient that stands out\namong {features:,} columns"
        columns[heading] = lambda row: f"{row['findable_gradient']:,.0f}"
    output.listing(columns, rows, strong={} if mine is None else {mine: "bold"})
    output.text(
        f"A column's gradient is a sum over records, each giving at most {share:g}. At noise scale "
        "s, a column whose gradient is larger by s is about e times as likely to be chosen."
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
        f"Rows have length 1, so the standard error is also that of any row's margin ({unit}): "
        "training stops there, whatever the epsilon. What a budget buys is finer signal. A "
        "column's gradient is a sum over records: with R entries of equal size in a row, each "
        f"that speaks for the column gives at most {asked.residual_bound:.3g}/sqrt(R)."
    )


def plan(
    rows: int,
    epsilon: float | None = None,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    method: str | None = None,
    n_iter: int | None = None,
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
        What everything may spend together. May be left out where only --workers is asked for.

    Model
    -----
    n_classes : K >= 2
        Number of classes.

    Options
    -------
    rows : N >= 1
        About how many rows there are; public.
    columns : D >= 1
        About how many columns there are.
    row_entries : R
        About how many entries a row has: of a table its parts, of a text its different words.
    entries : C
        Entries of all rows, in place of --row-entries.
    workers : W >= 1
        Say what a fit on so many partitions takes: time, and memory of each worker.
    worker_threads : N >= 1
        Cores of each worker.
    score : S
        Share of a private score.
    encoding : S
        Share of a private encoding of the columns.
    refit : S
        Share of a second fit.
    tries : M
        Search, with so many tries expected, in place of the fit.

    Examples
    --------
    dplasso plan --epsilon 2 --rows 30000
    dplasso plan --epsilon 2 --rows 30000 --columns 120 --row-entries 14
    dplasso plan --epsilon 2 --rows 30000 --tries 3
    dplasso plan --epsilon 2 --rows 30000 --target-bounds 0,100
    dplasso plan --rows 1000000000 --columns 1000000 --entries 2e10 --workers 100

    Shares are of zCDP, which adds up; the epsilons of the parts sum to more than the whole. What a
    fit by noisy gradients finds is right to within a factor of two where columns are about alike.
    """
    method = method or default_method(target_bounds is not None)
    row_entries = row_entries if entries is None else entries / rows
    bounds = None if target_bounds is None else parse_target_bounds(target_bounds)
    fit: dict[str, Any] = {"method": method, "n_iter": n_iter, "n_classes": n_classes}
    fit |= {"target_bounds": bounds, "rows_per_person": rows_per_person}
    report: dict[str, Any] = {}
    takes = ""
    if workers is not None:
        settings = dict(fit, delta=delta, neighbors=neighbors)
        steps = privacy_cost(1.0 if epsilon is None else epsilon, **settings).steps
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
    whole: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    shares: dict[str, Any] = {"score": score, "encoding": encoding, "refit": refit, "tries": tries}
    extent = {"row_entries": row_entries, "neighbors": neighbors, **fit}
    found = {
        part: _finds(part, rows, columns, extent) for part in plan_budget(**whole, **fit, **shares)
    }
    told = [
        {name: getattr(part, name) for name in ("name", "share", "epsilon", "delta")}
        | {"try_epsilon": part.try_epsilon or None, "finds": finds}
        for part, finds in found.items()
    ]
    asked = whole | fit | {"target_bounds": target_bounds}

    def show() -> None:
        _print_plan(asked, found, tries)
        if takes:
            output.text("\n" + takes)

    return output.Result({**whole, "parts": told, **report}, show)


def _print_plan(asked: dict[str, Any], found: dict[Part, str], tries: float) -> None:
    headings: dict[str, Callable[[Part], str]] = {
        "part": lambda part: part.name,
        ">share": lambda part: f"{part.share:.0%}",
        ">epsilon": lambda part: down(part.epsilon),
        "what it finds": lambda part: found[part],
    }
    output.listing(headings, found)
    output.text("\nA ledger takes the plan:")
    given = {"neighbors": "add-remove", "rows_per_person": 1, "n_iter": None, "target_bounds": None}
    told = {
        name: f" {option_name(name)} {asked[name]}" if asked[name] != usual else ""
        for name, usual in given.items()
    }
    if asked["method"] == "linear" and not told["target_bounds"]:
        told["target_bounds"] = " --target-bounds LOW,HIGH"
    delta = f"--delta {asked['delta']:g}"
    people = told["neighbors"] + told["rows_per_person"]
    output.text(
        f"  dplasso ledger init L --epsilon {asked['epsilon']:g} {delta}{people}", wrap=False
    )
    method = f" DATA --method {asked['method']}{told['target_bounds']}"
    search = f"tune{method} --grid NAME=V,V --tries {tries:g} --law poisson{told['neighbors']}"
    who = " --person-column NAME" if told["rows_per_person"] else ""
    commands = dict.fromkeys(("fit", "refit"), f"fit{method}{told['n_iter']}{people}{who}")
    commands |= {"search": search, "score": "evaluate model.npz DATA"}
    for part in found:
        if part.epsilon and part.name in commands:
            kept = "" if part.name == "score" else " --model model.npz"
            spent = f"--epsilon {down(part.epsilon)} {delta} --ledger L{kept}"
            line = f"dplasso {commands[part.name]} {spent}"
            if part.name == "score" and who:
                line = (
                    f"in Python: private_score(model, X, y, {down(part.epsilon)}, "
                    f"{asked['delta']:g}, groups=people, rows_per_person={asked['rows_per_person']}"
                    ', ledger="L")'
                )
            output.text(f"  {line}", wrap=False)


def _finds(part: Part, rows: int, columns: int, extent: dict[str, Any]) -> str:
    """Say what a part can tell from so many rows."""
    if part.mechanism is None:
        return "nothing: the share is too small"
    classes = extent["method"] != "linear" and extent["target_bounds"] is None
    if part.name in ("score", "encoding"):
        sigma = part.mechanism.sensitivity / part.mechanism.mu
        if part.name == "encoding":
            return f"a count of rows to within {2.0 * sigma:,.0f}"
        low, high = (0.0, 1.0) if classes else extent["target_bounds"] or (0.0, 1.0)
        within = 2.0 * sigma / rows * (high - low)
        if not classes:
            return f"a mean absolute error to within {within:.2g}, and chance"
        # Right and wrong rows, each with this noise, near an accuracy of 0 or 1 at the worst.
        return f"an accuracy over all rows to within {within:.2g}, and chance"
    budget = part.try_epsilon or part.epsilon, part.delta
    found = weakest_association(*budget, rows, columns, **extent)
    told = "nothing"
    if found.part <= 1.0:
        told = f"columns in {found.rows:,.0f} more rows {_SIDES[classes]}"
    if part.name == "search":
        return f"{told}, by each try (epsilon about {down(part.try_epsilon)})"
    return told
