"""Whether plans of intervals come true: fits of as many records as a plan asks for an effect.

Half of the columns have the effect, with both signs, and the others none. An effect is found if its
coefficient is identified and has p < .05.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from evidence.cells import Advance, Cell
from evidence.items import Item, Settings, Table
from evidence.utility.fits import DELTA
from evidence.utility.intervals import BOUNDS, SPREAD, fitted, labelled

TITLE = "Plans of intervals against fits of as many records"
_LARGEST_P = 0.05
# Parts of the planned rows that are taken.
FACTORS = [0.5, 1.0, 2.0]
# Of each case columns, epsilon and effect; of classes and of numbers.
CASES = {
    "classes": [(5, 1.0, 0.3), (5, 3.0, 0.3), (20, 1.0, 0.3), (20, 3.0, 0.2)],
    "numbers": [(5, 1.0, 0.3), (5, 3.0, 0.2)],
}
# parameters and result of a cell
Found = tuple[Mapping[str, Any], dict[str, Any]]


def options(*, factors: list[float] = FACTORS, fits: int = 200) -> None:
    """Name the options."""


def planned(kind: str, n_rows: float, n_columns: int, epsilon: float, effect: float) -> Any:
    """Return the plan of so many rows."""
    from dplasso.estimators.cost import plan_intervals

    known: dict[str, Any] = {"spread": 3.0**-0.5, "effect": effect}
    if kind == "numbers":
        known |= {"residual": SPREAD / BOUNDS[1], "target_bounds": BOUNDS}
    return plan_intervals(epsilon, DELTA, n_rows, n_columns, **known)


def planned_power(plan: Any, effect: float) -> float:
    """Return the probability of finding an effect with as many rows; 0 if it is not identified."""
    if not plan.identified:
        return 0.0
    return float(ndtr(effect / plan.standard_error - ndtri(1.0 - 0.5 * _LARGEST_P)))


@dataclass(frozen=True)
class Power:
    """Fit fresh records again and again, and count how often the effects are found."""

    kind: str
    n_rows: int
    n_columns: int
    epsilon: float
    effect: float
    fits: int
    n_jobs: int

    def __call__(self, X: Any, y: Any, advance: Advance) -> dict[str, Any]:
        numbers = self.kind == "numbers"
        truth = np.zeros(self.n_columns + 1)
        truth[1:-1:2] = self.effect
        truth[3:-1:4] *= -1.0
        effects = truth[:-1] != 0.0
        identified, found, widths = [], [], []
        for draw in range(self.fits):
            rng = np.random.default_rng([draw, self.n_rows, self.n_columns])
            rows = rng.uniform(-1.0, 1.0, (self.n_rows, self.n_columns))
            labels = labelled(rows, truth, rng, numbers)
            bound = math.sqrt(self.n_columns)
            table = fitted(self.epsilon, rows, labels, bound, numbers, draw, self.n_jobs).inference_
            own = table.identified[:-1] & effects
            identified.append(own[effects])
            found.append(own[effects] & (table.p_value[:-1][effects] < _LARGEST_P))
            widths += (table.high - table.low)[:-1][own].tolist()
            advance((draw + 1) / self.fits)
        return {
            "identified": float(np.mean(identified)),
            "power": float(np.mean(found)),
            "width": float(np.median(widths)) if widths else None,
        }


def cells(settings: Settings) -> list[Cell]:
    """List the cases, at parts of the rows that are planned for them."""
    fits = settings.options.get("fits", 3 if settings.quick else 200)
    factors = settings.options.get("factors", [1.0] if settings.quick else FACTORS)
    found = []
    for kind, cases in CASES.items():
        for n_columns, epsilon, effect in cases[1:2] if settings.quick else cases:
            needed = planned(kind, 1_000, n_columns, epsilon, effect).rows_needed
            for factor in factors:
                n_rows = round(factor * needed)
                case = n_columns, epsilon, effect
                measure = Power(kind, n_rows, *case, fits, settings.n_jobs)
                about = {"kind": kind, "factor": factor, "rows": n_rows, "columns": n_columns}
                about |= {"epsilon": epsilon, "effect": effect, "fits": fits, "delta": DELTA}
                name = f"{kind}-{n_columns}-{epsilon:g}-{effect:g}-{factor:g}"
                weight = float(fits * n_rows * n_columns**2)
                found.append(Cell("interval-power", name, measure, about, None, weight))
    return found


def present(settings: Settings, results: list[Any]) -> Item:
    """Lay out the table."""
    measured = zip(cells(settings), results, strict=True)
    return item([(cell.parameters, result) for cell, result in measured if result])


def item(found: Sequence[Found]) -> Item:
    """Return the table of cells by their parameters and results, with all rows in one line."""
    cases: dict[tuple[Any, ...], list[list[str]]] = {}
    for about, result in sorted(found, key=lambda one: one[0]["rows"]):
        if "power" in result:
            case = tuple(about[name] for name in ("kind", "columns", "epsilon", "effect"))
            plan = planned(about["kind"], about["rows"], *case[1:])
            shown = [f"{about['rows']:,}", f"{result['identified']:.2f}", f"{plan.width:.2f}"]
            shown.append("-" if result["width"] is None else f"{result['width']:.2f}")
            shown += [f"{planned_power(plan, about['effect']):.2f}", f"{result['power']:.2f}"]
            cases.setdefault(case, []).append(shown)
    lines = [
        [case[0], *(f"{one:g}" for one in case[1:]), *map("; ".join, zip(*shown, strict=True))]
        for case, shown in sorted(cases.items())
    ]
    head = ["target", "columns", "epsilon", "effect", "rows", "identified"]
    head += ["planned width", "width", "planned power", "power"]
    return Item("interval-power", TITLE, (Table(head, lines),))
