"""``dplasso plan --infer``: predicted intervals."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import typer

from dplasso.cli import output
from dplasso.estimators.cost import PlannedIntervals, plan_intervals
from dplasso.tuning.plan import Part


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
        own_part = next((part for part in parts if part.name == "fit"), None)
        if own_part is None:
            raise typer.BadParameter("--infer is for one fit, not for a search: leave --tries out")
        known = {name: fit[name] for name in ("target_bounds", "rows_per_person", "neighbors")}
        own = {name: value for name, value in asdict(self).items() if name != "infer"}
        own["share"] = own.pop("infer_share")
        return plan_intervals(own_part.epsilon, own_part.delta, rows, columns, **own, **known)

    def sentences(self, found: PlannedIntervals) -> str:
        """Return the predicted intervals in words."""
        if found.identified:
            without = f"without privacy {found.without_privacy:.2g}"
            said = (
                f"95 % intervals of the fit with --infer all: about {found.width:.2g} wide "
                f"(standard error {found.standard_error:.2g}, {without})."
            )
        else:
            said = (
                "With --infer all, so few rows identify almost no coefficient. Use fewer columns."
            )
        if self.effect is None:
            return said
        if found.rows_needed is None:
            return f"{said} No number of rows would detect an effect of {self.effect:g}."
        return (
            f"{said} Detecting an effect of {self.effect:g} with probability {self.power:g} takes "
            f"about {found.rows_needed:,.0f} rows."
        )


def intervals_text(options: IntervalOptions, found: PlannedIntervals | None) -> None:
    """Print the predicted intervals, if asked for."""
    if found is not None:
        output.text("\n" + options.sentences(found))
