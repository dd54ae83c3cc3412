"""``dplasso budget`` and ``plan``: what a privacy budget buys, before any data is touched."""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from dplasso import privacy_cost, weakest_association
from dplasso.cli import output
from dplasso.cli.training import parse_target_bounds
from dplasso.fit.cost import dense_schedule
from dplasso.gradient_descent.plan import SIGNIFICANT
from dplasso.ledger.refusal import rounded_down as down
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE, COUNT_SHARE
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import COUNT_BY_CLASS, COUNT_PRIVATE, rounded_up
from dplasso.tuning.plan import Part, plan_budget

ITERATIONS_SHOWN = (10, 30, 100, 300, 1000, 4000)
EPSILONS_SHOWN = (0.1, 0.3, 1.0, 3.0, 10.0)


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
    method: str = "lasso",
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
    dplasso budget --epsilon 0.5 --n-iter 300 --columns 1000000
    dplasso budget --epsilon 1 --method logistic --n-classes 10
    dplasso budget --epsilon 1 --method linear
    dplasso budget --epsilon 1 --neighbors replace-one --json
    """
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
    """Say what the noise of a draw is: 1/c of the exponential mechanism exp(c alpha).

    That is the scale of its Gumbel noise, too; 0 without privacy.
    """
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
        "findable_gradient": SIGNIFICANT * schedule.standard_error / schedule.reach,
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
    sides = "of one class than of the other"
    if asked.n_classes == 0:
        sides = "far above what the others predict than far below"
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
    epsilon: float,
    rows: int,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    method: str = "lasso",
    n_iter: int | None = None,
    columns: int = 100_000,
    score: float = 0.1,
    encoding: float = 0.0,
    refit: float = 0.0,
    tries: float = 0.0,
) -> output.Result:
    """Divide a budget among encoding, fit or search, second fit and score.

    Privacy
    -------
    epsilon : E
        What everything may spend together.

    Options
    -------
    rows : N >= 1
        About how many rows there are; public.
    columns : D >= 1
        About how many columns there are.
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
    dplasso plan --epsilon 2 --rows 30000 --method logistic --tries 3

    Shares are of zCDP, which adds up; the epsilons of the parts sum to more than the whole.
    """
    shares: dict[str, Any] = {"score": score, "encoding": encoding, "refit": refit, "tries": tries}
    fit: dict[str, Any] = {"method": method, "n_iter": n_iter}
    whole: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    found = {
        part: _finds(part, rows, columns, fit) for part in plan_budget(**whole, **fit, **shares)
    }
    told = [
        {name: getattr(part, name) for name in ("name", "share", "epsilon", "delta")}
        | {"try_epsilon": part.try_epsilon or None, "finds": finds}
        for part, finds in found.items()
    ]
    search = f"tune DATA --method {method} --grid NAME=V,V --tries {tries:g} --law poisson"
    commands = dict.fromkeys(("fit", "refit"), f"fit DATA --method {method}")
    commands |= {"search": search, "score": "evaluate model.npz DATA"}
    return output.Result({**whole, "parts": told}, partial(_print_plan, whole, found, commands))


def _print_plan(whole: dict[str, Any], found: dict[Part, str], commands: dict[str, str]) -> None:
    headings: dict[str, Callable[[Part], str]] = {
        "part": lambda part: part.name,
        ">share": lambda part: f"{part.share:.0%}",
        ">epsilon": lambda part: down(part.epsilon),
        "what it finds": lambda part: found[part],
    }
    output.listing(headings, found)
    output.text("\nA ledger takes the plan:")
    neighbors, delta = whole["neighbors"], f"--delta {whole['delta']:g}"
    relation = "" if neighbors == "add-remove" else f" --neighbors {neighbors}"
    init = f"  dplasso ledger init L --epsilon {whole['epsilon']:g} {delta}{relation}"
    output.text(init, wrap=False)
    for part in found:
        if part.epsilon and part.name in commands:
            kept = "" if part.name == "score" else " --model model.npz"
            spent = f"--epsilon {down(part.epsilon)} {delta} --ledger L{kept}"
            output.text(f"  dplasso {commands[part.name]} {spent}", wrap=False)


def _finds(part: Part, rows: int, columns: int, fit: dict[str, Any]) -> str:
    """Say what a part can tell from so many rows."""
    if part.mechanism is None:
        return "nothing: the share is too small"
    if part.name in ("score", "encoding"):
        sigma = part.mechanism.sensitivity / part.mechanism.mu
        if part.name == "encoding":
            return f"a count of rows to within {2.0 * sigma:,.0f}"
        # Right and wrong rows, each with this noise, near an accuracy of 0 or 1 at the worst.
        return f"an accuracy over all rows to within {2.0 * sigma / rows:.4f}, and chance"
    budget = part.try_epsilon or part.epsilon, part.delta
    neighbors = part.mechanism.neighbors
    found = weakest_association(*budget, rows, columns, neighbors=neighbors, **fit)
    told = "nothing"
    if found.part <= 1.0:
        told = f"columns in {found.rows:,.0f} more rows of one class than of the other"
    if part.name == "search":
        return f"{told}, by each try (epsilon about {down(part.try_epsilon)})"
    return told
