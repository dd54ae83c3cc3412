"""``dplasso budget`` and ``plan``: what a privacy budget buys, without any data."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import typer

from dplasso import privacy_cost, weakest_association
from dplasso.cli import output
from dplasso.cli.training import default_method, parse_target_bounds
from dplasso.estimators.cost import PlannedIntervals, plan_intervals
from dplasso.privacy.statement import PrivacyStatement
from dplasso.privacy.wording import rounded_down as down
from dplasso.tuning.plan import Part, plan_budget

EPSILONS_SHOWN = (0.1, 0.3, 1.0, 3.0, 10.0)
# The rows in which a column must occur more often: of a class, or of a regression.
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
    row_entries: float = 30.0,
    method: str | None = None,
    n_iter: int | None = None,
    explain: bool = False,
) -> output.Result:
    """Compute what a fit would cost and what it could find, without any data.

    Model
    -----
    rows : N >= 1
        Approximate number of rows; with --columns, the command also says what can be found.
    features, columns : D >= 1
        Number of columns.
    n_classes : K >= 2
        Number of classes.
    row_entries : R
        Approximate number of non-zero entries in a row. The longer rows are, the stronger a column
        must be to be found. Not for frank-wolfe.

    Examples
    --------
    dplasso budget --epsilon 1 --rows 30000 --columns 100000
    dplasso budget --epsilon 1
    dplasso budget --epsilon 0.5 --method frank-wolfe --n-iter 300
    dplasso budget --epsilon 1 --rows 30000 --columns 100000 --n-classes 10
    dplasso budget --epsilon 1 --rows 30000 --columns 100000 --target-bounds 0,100
    dplasso budget --epsilon 1 --neighbors replace-one --json
    """
    bounds = None if target_bounds is None else parse_target_bounds(target_bounds)
    method = method or default_method(bounds is not None)
    asked: dict[str, Any] = {"rows_per_person": rows_per_person, "n_iter": n_iter}
    asked |= {"feature_bound": feature_bound, "target_bounds": bounds}
    fit: dict[str, Any] = {"neighbors": neighbors, "method": method, "n_classes": n_classes}
    fit |= {name: value for name, value in asked.items() if value is not None}
    statement = privacy_cost(epsilon, delta, **fit)
    report: dict[str, Any] = {"privacy": statement.to_dict()}
    epsilons = sorted({*EPSILONS_SHOWN, epsilon})
    if rows is not None and features is not None and method != "frank-wolfe":
        size: dict[str, Any] = {"n_records": rows, "n_features": features}
        size["row_entries"] = row_entries
        report["findable"] = [
            {"epsilon": each, **asdict(weakest_association(each, delta, **size, **fit))}
            for each in epsilons
        ]

    def show() -> None:
        output.text("A fit with these settings would be:\n")
        output.promise(statement, explain=explain)
        output.text()
        if "findable" in report:
            output.text(f"What it can find among {features:,} columns in {rows:,} rows:")
            _print_findable(report["findable"], epsilons.index(epsilon), statement, method)
        elif method != "frank-wolfe":
            output.text("Give --rows N and --columns D to see what such a fit can find.")

    return output.Result(report, show)


def _print_findable(
    findable: list[dict[str, Any]], asked: int, statement: PrivacyStatement, method: str
) -> None:
    """Print the weakest column that a fit finds at each epsilon; the one `asked` for is bold."""

    def part(row: dict[str, Any]) -> str:
        return f"{100 * row['part']:.2g} %" if row["part"] <= 1 else "nothing can be found"

    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        ">epsilon": lambda row: f"{row['epsilon']:g}",
        ">weights": lambda row: f"{row['n_weights']:,}",
        ">weakest column,\nin rows": lambda row: f"{math.ceil(row['rows']):,}",
        ">of all rows": part,
    }
    output.listing(columns, findable, strong={asked: "bold"})
    reached = (
        "is selected before noise alone would select another one"
        if method == "lasso"
        else "gets a weight beyond 3 standard errors"
    )
    sides = _SIDES[statement.n_classes > 0]
    output.text(f"A column that occurs in so many more rows {sides} {reached}.")


@dataclass(frozen=True)
class IntervalOptions:
    """Options for intervals.

    Intervals
    ---------
    infer
        Predict the width of the intervals of a fit with --infer all, for similar, unrelated
        columns.
    infer_share : S
        Part of the budget for intervals.
    row_norm : R
        Bound on the length of a row. Default: the square root of --columns, for columns from -1 to
        1.
    spread : S
        Standard deviation of a column.
    positive : P
        Part of the rows in the second class.
    effect : B
        Compute how many rows are needed to detect a coefficient of this size.
    power : P
        Probability of detecting it at p < 0.05.
    """

    infer: bool = False
    infer_share: float = 0.5
    row_norm: float | None = None
    spread: float = 0.5
    positive: float = 0.5
    effect: float | None = None
    power: float = 0.8

    def planned(
        self, parts: Iterable[Part], rows: int, columns: int, fit: dict[str, Any]
    ) -> PlannedIntervals | None:
        """Return the predicted intervals if asked for; refuse fits that have none."""
        if not self.infer:
            if self.effect is not None:
                raise typer.BadParameter("--effect is for intervals: give --infer too")
            return None
        if fit["method"] == "lasso" or fit["n_classes"] > 2:
            raise typer.BadParameter(
                "--infer is for the methods logistic, with two classes, and linear"
            )
        own_part = next(part for part in parts if part.name == "fit")
        settings = {name: value for name, value in asdict(self).items() if name != "infer"}
        settings["share"] = settings.pop("infer_share")
        settings |= {name: fit[name] for name in ("target_bounds", "rows_per_person", "neighbors")}
        return plan_intervals(own_part.epsilon, own_part.delta, rows, columns, **settings)

    def sentences(self, planned: PlannedIntervals) -> str:
        """Return the predicted intervals in words."""
        words = "With --infer all, so few rows identify almost no coefficient. Use fewer columns."
        if planned.identified:
            without = f"without privacy {planned.without_privacy:.2g}"
            words = (
                f"95 % intervals of the fit with --infer all: about {planned.width:.2g} wide "
                f"(standard error {planned.standard_error:.2g}, {without})."
            )
        if self.effect is None:
            return words
        if planned.rows_needed is None:
            return f"{words} No number of rows would detect an effect of {self.effect:g}."
        return (
            f"{words} Detecting an effect of {self.effect:g} with probability {self.power:g} takes "
            f"about {planned.rows_needed:,.0f} rows."
        )


def plan(
    rows: int,
    intervals: IntervalOptions,
    epsilon: float,
    delta: float = 1e-6,
    neighbors: str = "add-remove",
    rows_per_person: int = 1,
    method: str | None = None,
    columns: int = 100_000,
    row_entries: float = 30.0,
    n_classes: int = 2,
    target_bounds: str | None = None,
    score: float = 0.1,
) -> output.Result:
    """Divide a budget between a fit and a score of it.

    Privacy
    -------
    epsilon : E
        The whole budget.

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
    score : S
        Share of a private score.

    Examples
    --------
    dplasso plan --epsilon 2 --rows 30000
    dplasso plan --epsilon 2 --rows 30000 --columns 120 --row-entries 14
    dplasso plan --epsilon 2 --rows 30000 --columns 12 --infer --effect 0.3
    dplasso plan --epsilon 2 --rows 30000 --target-bounds 0,100

    Shares are of zCDP, which adds up; the epsilons of the parts sum to more than the whole. What a
    fit can find is accurate within a factor of two if columns are similar.
    """
    bounds = None if target_bounds is None else parse_target_bounds(target_bounds)
    method = method or default_method(bounds is not None)
    fit: dict[str, Any] = {"method": method, "n_classes": n_classes, "target_bounds": bounds}
    fit |= {"rows_per_person": rows_per_person, "neighbors": neighbors}
    whole: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    finds = {
        part: _finds(part, rows, columns, {"row_entries": row_entries, **fit})
        for part in plan_budget(**whole, **fit, score=score)
    }
    planned = intervals.planned(finds, rows, columns, fit)
    parts = [
        {name: getattr(part, name) for name in ("name", "share", "epsilon", "delta")}
        | {"finds": words}
        for part, words in finds.items()
    ]
    report = {**whole, "neighbors": neighbors, "parts": parts}
    if planned is not None:
        report["intervals"] = asdict(planned)

    def show() -> None:
        headings: dict[str, Callable[[Part], str]] = {
            "part": lambda part: part.name,
            ">share": lambda part: f"{part.share:.0%}",
            ">epsilon": lambda part: down(part.epsilon),
            "what it finds": lambda part: finds[part],
        }
        output.listing(headings, finds)
        if planned is not None:
            output.text("\n" + intervals.sentences(planned))

    return output.Result(report, show)


def _finds(part: Part, rows: int, columns: int, settings: dict[str, Any]) -> str:
    if not part.epsilon:
        return "nothing: the share is too small"
    classes = settings["method"] != "linear" and settings["target_bounds"] is None
    if part.name == "score":
        low, high = (0.0, 1.0) if classes else settings["target_bounds"] or (0.0, 1.0)
        within = 2.0 * part.noise / rows * (high - low)
        # Right and wrong rows, each with this noise, near an accuracy of 0 or 1 at the worst.
        what = "an accuracy over all rows" if classes else "a mean absolute error"
        return f"{what} to within {within:.2g}, and chance"
    weakest = weakest_association(part.epsilon, part.delta, rows, columns, **settings)
    if weakest.part > 1.0:
        return "nothing"
    return f"columns in {weakest.rows:,.0f} more rows {_SIDES[classes]}"
