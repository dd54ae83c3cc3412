"""``dplasso budget``: what a privacy budget buys, before any data is touched."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplasso.cli import options
from dplasso.cli.methods import LASSO, LINEAR, parse_target_bounds
from dplasso.cli.options import MODEL, option
from dplasso.cli.output import print_json, print_promise, print_table, print_text

if TYPE_CHECKING:
    from dplasso.privacy.statement import PrivacyStatement

EXAMPLES = options.examples(
    "dplasso budget --epsilon 1",
    "dplasso budget --epsilon 1 --rows 30000 --columns 100000",
    "dplasso budget --epsilon 0.5 --n-iter 300 --columns 1000000",
    "dplasso budget --epsilon 1 --method logistic --n-classes 10",
    "dplasso budget --epsilon 1 --method linear",
    "dplasso budget --epsilon 1 --neighbors replace-one --json",
)

ITERATIONS_SHOWN = (10, 30, 100, 300, 1000, 4000)
EPSILONS_SHOWN = (0.1, 0.3, 1.0, 3.0, 10.0)


def budget(
    epsilon: options.Epsilon,
    delta: options.Delta = 1e-6,
    neighbors: options.Neighbors = "add-remove",
    feature_bound: options.FeatureBound = 1.0,
    rows_per_person: options.RowsPerPerson = None,
    n_records: Annotated[
        int | None,
        typer.Option(
            "--rows",
            "--n-records",
            help="Number of rows, where it is public; with --columns, also say what can be found.",
            metavar="N",
            rich_help_panel=MODEL,
            min=1,
        ),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--columns",
            "--features",
            help="Number of columns.",
            metavar="D",
            rich_help_panel=MODEL,
            min=1,
        ),
    ] = None,
    n_classes: Annotated[int, option("--n-classes", "Number of classes.", "K", MODEL, min=2)] = 2,
    target_bounds: options.TargetBounds = None,
    row_entries: Annotated[
        float, option("--row-entries", "logistic, linear: entries of a row, about.", "R", MODEL)
    ] = 1.0,
    method: options.Method = "lasso",
    n_iter: options.Steps = None,
    explain: options.Explain = False,
    as_json: options.AsJson = False,
) -> None:
    """Say what a fit would cost and what it could find, without any data."""
    from dplasso import privacy_cost

    bounds: dict[str, Any] = {"rows_per_person": rows_per_person or 1}
    if method == LASSO:
        bounds["feature_bound"] = feature_bound
    elif feature_bound != 1.0:
        raise ValueError(f"feature_bound does not go with method={method}")
    settings: dict[str, Any] = {
        "method": method,
        "neighbors": neighbors,
        "n_classes": n_classes,
        "target_bounds": None if target_bounds is None else parse_target_bounds(target_bounds),
        **bounds,
    }

    def cost(epsilon: float, steps: int | None) -> "PrivacyStatement":
        return privacy_cost(epsilon, delta, steps, n_records=n_records, **settings)

    asked = cost(epsilon, n_iter)
    report: dict[str, Any] = {"privacy": asked.to_dict()}
    if n_records is not None and features is not None:
        report["findable"] = _findable(
            epsilon, delta, n_records, features, n_iter=n_iter, row_entries=row_entries, **settings
        )
    if method != LASSO:
        shown = sorted({*EPSILONS_SHOWN, epsilon})
        rows = [_noise_row(cost(one, n_iter), n_records) for one in shown]
        mine = rows[shown.index(epsilon)]
    else:
        counts = sorted({*ITERATIONS_SHOWN, *([] if n_iter is None else [n_iter])})
        rows = [_row(cost(epsilon, count), features) for count in counts]
        mine = rows[counts.index(n_iter or ITERATIONS_SHOWN[2])]
    report |= {"noise_scale": mine["noise_scale"], "table": rows}
    if as_json:
        print_json(report)
        return
    print_text("A fit with these settings would be:\n")
    print_promise(asked, explain=explain)
    print_text()
    if "findable" in report:
        _print_findable(
            report["findable"],
            epsilon,
            n_records or 1,
            features or 1,
            method,
            regression=asked.n_classes == 0,
        )
    elif method != LASSO:
        _print_noise(rows, rows.index(mine), asked.residual_bound, method)
    if method != LASSO:
        return
    if n_iter is not None or "findable" not in report:
        strong = None if n_iter is None else rows.index(mine)
        _print_table(rows, strong, features)
        print_text(
            "A column's gradient is a sum over records, each giving at most "
            f"{asked.residual_bound * feature_bound:g}. At noise scale s, a column whose gradient "
            "is larger by s is about e times as likely to be chosen."
        )
    if "findable" not in report:
        print_text("With --rows N and --columns D: what such a fit can find.")


def _findable(
    epsilon: float, delta: float, n_records: int, features: int, **settings: Any
) -> list[dict[str, Any]]:
    """Say for several epsilons how strong a column must be, as JSON says it."""
    from dataclasses import asdict

    from dplasso import weakest_association

    return [
        {"epsilon": one} | asdict(weakest_association(one, delta, n_records, features, **settings))
        for one in sorted({*EPSILONS_SHOWN, epsilon})
    ]


def _print_findable(
    found: list[dict[str, Any]],
    epsilon: float,
    n_records: int,
    features: int,
    method: str,
    *,
    regression: bool,
) -> None:
    cells = [
        [
            f"{one['epsilon']:g}",
            f"{one['n_weights']:,}",
            f"{math.ceil(one['rows']):,}",
            f"{100 * one['part']:.2g} %" if one["part"] <= 1 else "nothing can be found",
        ]
        for one in found
    ]
    headings = [">epsilon", ">weights", ">weakest column,\nin rows", ">of all rows"]
    asked = [one["epsilon"] for one in found].index(epsilon)
    print_table(headings, cells, strong={asked: "bold"})
    stands = "is drawn rather than noise" if method == LASSO else "is beyond 3 standard errors"
    sides = "of one class than of the other"
    if regression:
        sides = "far above what the others predict than far below"
    print_text(
        f"Of {features:,} columns in {n_records:,} rows: one that occurs in so many more rows "
        f"{sides} {stands}."
    )


def noise_scale(statement: "PrivacyStatement") -> float:
    """Return the scale of the selection's noise on one coordinate of the summed gradient.

    1/c of the exponential mechanism exp(c alpha), which is the scale of its Gumbel noise too; 0
    without privacy.
    """
    return 0.0 if math.isinf(statement.eps0) else 2.0 * statement.sensitivity / statement.eps0


def _row(statement: "PrivacyStatement", features: int | None) -> dict[str, Any]:
    scale = noise_scale(statement)
    row = {"n_iter": statement.steps, "eps0": statement.eps0, "noise_scale": scale}
    if features is not None:
        # The largest of 2D Gumbel noises of scale s is about s ln(2D), 2KD for K classes.
        outputs = statement.n_classes if statement.n_classes > 2 else 1
        row["findable_gradient"] = scale * math.log(2 * outputs * features)
    return row


def _noise_row(statement: "PrivacyStatement", n_records: int | None) -> dict[str, Any]:
    """Say what the noise of a dense fit is, from public numbers."""
    from dplasso.fit.cost import dense_schedule
    from dplasso.gradient_descent.plan import SIGNIFICANT
    from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE, COUNT_SHARE
    from dplasso.privacy.wording import COUNT_PRIVATE

    mu = statement.mu if statement.mechanism == "gaussian" else math.inf
    mu *= math.sqrt(1.0 - CALIBRATION_SHARE)
    if statement.records == COUNT_PRIVATE and n_records is None:
        mu *= math.sqrt(1.0 - COUNT_SHARE)
    schedule = dense_schedule(
        n_records or 1, mu, statement.sensitivity, statement.steps, statement.n_classes
    )
    error = schedule.standard_error
    return {
        "epsilon": statement.epsilon_requested,
        "mu": mu,
        "noise_scale": schedule.noise_scale,
        "standard_error": error,
        "findable_gradient": SIGNIFICANT * error / schedule.reach,
    }


def _print_table(rows: list[dict[str, Any]], asked: int | None, features: int | None) -> None:
    from dplasso.privacy.wording import rounded_up

    headings = [">steps", ">eps0 per step", ">noise scale on a gradient"]
    cells = [
        [f"{row['n_iter']:,}", rounded_up(row["eps0"], 5), f"{row['noise_scale']:,.1f}"]
        for row in rows
    ]
    if features is not None:
        headings.append(f">gradient that stands out\namong {features:,} columns")
        for line, row in zip(cells, rows, strict=True):
            line.append(f"{row['findable_gradient']:,.0f}")
    print_table(headings, cells, strong={} if asked is None else {asked: "bold"})


def _print_noise(
    rows: list[dict[str, Any]], asked: int, residual_bound: float, method: str
) -> None:
    headings = [
        ">epsilon",
        ">noise on one gradient\n(standard deviation)",
        ">standard error\nof a weight",
        ">gradient beyond\n3 standard errors",
    ]
    cells = [
        [
            f"{row['epsilon']:g}",
            f"{row['noise_scale']:,.1f}",
            f"{row['standard_error']:.3f}",
            f"{row['findable_gradient']:,.1f}",
        ]
        for row in rows
    ]
    print_table(headings, cells, strong={asked: "bold"})
    unit = "log-odds" if method != LINEAR else "in halves of the targets' interval"
    print_text(
        f"Rows have length 1, so the standard error is also that of any row's margin ({unit}): "
        "training stops there, whatever the epsilon. What a budget buys is finer signal. A "
        "column's gradient is a sum over records: with R entries of equal size in a row, each that "
        f"speaks for the column gives at most {residual_bound:.3g}/sqrt(R)."
    )
