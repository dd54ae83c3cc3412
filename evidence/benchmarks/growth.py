"""How the time of an iteration grows with the columns, the rows, and the entries touched."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dplasso.datasets.synthetic.generate import Shape, generate
from evidence.benchmarks.competitors import Training, own_parameters
from evidence.benchmarks.config import Growth
from evidence.benchmarks.datasets import Context, describe
from evidence.benchmarks.tables import seconds_text, table
from evidence.benchmarks.timing import LoopTime, interleave, middle, time_fit

SERIES = {
    "columns": "D, rows and columns of fixed length",
    "rows": "N, at fixed D and length of rows",
    "touched": "entries touched by a step (S_j times R_i), at fixed N and D",
}


@dataclass(frozen=True)
class Point:
    """One matrix of a series: x is what is varied."""

    series: str
    x: int
    n_rows: int
    n_columns: int
    row: int


def points(settings: Growth) -> dict[str, Point]:
    """List the matrices by case name."""
    found = [
        Point("columns", d, max(1, d // settings.column_ratio), d, settings.column_row)
        for d in settings.columns
    ]
    found += [Point("rows", n, n, settings.row_columns, settings.column_row) for n in settings.rows]
    side = settings.touched_columns
    found += [Point("touched", length**2, side, side, length) for length in settings.touched]
    return {f"{point.series}-{point.x}": point for point in found}


def cases(settings: Growth) -> list[str]:
    return list(points(settings))


def measure(case: str, settings: Growth, context: Context) -> dict[str, Any]:
    """Time an iteration on one matrix: all rows alike, all columns equally popular."""
    point = points(settings)[case]
    shape = Shape(point.n_rows, point.n_columns, point.row, row_spread=0.0, exponent=0.0, shift=1.0)
    data = generate(shape, seed=0, n_jobs=context.n_jobs)
    y = (data.y > 0).astype(np.int8)
    training = Training(
        settings.radius,
        settings.n_iter,
        settings.epsilon,
        settings.delta,
        settings.limit,
        context.n_jobs,
    )
    touches = []
    held = np.bincount(data.X.indices, minlength=point.n_columns)

    def run(name: str) -> LoopTime:
        times, model = time_fit(data.X, y, settings.limit, **own_parameters(name, training))
        if model is not None and name == "dplasso":
            # All rows have the same length, but for the rounding of their mean.
            touches.append(float(held[model.transcript_.vertex].mean() * point.row))
        return times

    for name in settings.competitors:
        few = data.X[: min(point.n_rows, 50)]
        time_fit(few, np.arange(few.shape[0]) % 2, 0.0, **own_parameters(name, training))
    timed = interleave(
        {name: partial(run, name) for name in settings.competitors}, settings.repeats
    )
    return {
        "series": point.series,
        "x": point.x,
        "data": describe(data),
        "touched": float(np.median(touches)) if touches else None,
        "times": {name: middle(times) for name, times in timed.items()},
    }


def _series(results: dict[str, dict[str, Any]], series: str) -> list[dict[str, Any]]:
    found = [one for one in results.values() if one["series"] == series]
    return sorted(found, key=lambda one: one["x"])


def _step(one: dict[str, Any], name: str) -> float:
    return float(one["times"][name]["loop"] / one["times"][name]["n_steps"])


def slopes(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Fit log time of an iteration against log x, by series and competitor."""
    found: dict[str, dict[str, float]] = {}
    for series in SERIES:
        ones = _series(results, series)
        if len(ones) < 2:
            continue
        x = np.log([one["x"] for one in ones])
        found[series] = {
            name: float(np.polyfit(x, np.log([_step(one, name) for one in ones]), 1)[0])
            for name in ones[0]["times"]
        }
    return found


def section(results: dict[str, dict[str, Any]]) -> str:
    """Write the comparison's part of the report."""
    parts = [
        "## Growth",
        "Time of an iteration, set-up apart. Matrices with rows all alike and columns equally "
        "popular; `touched` counts the entries in rows that hold the chosen columns, without the "
        "refreshes of drift control.",
    ]
    fitted = slopes(results)
    for series, meaning in SERIES.items():
        ones = _series(results, series)
        if not ones:
            continue
        names = list(ones[0]["times"])
        rows = [
            [
                f"{one['x']:,}",
                f"{one['data']['rows']:,} x {one['data']['columns']:,}",
                "-" if one["touched"] is None else f"{one['touched']:,.0f}",
                *[seconds_text(_step(one, name)) for name in names],
            ]
            for one in ones
        ]
        parts.append(f"Against {meaning}:")
        parts.append(table([series, "rows x columns", "touched a step", *names], rows))
        if series in fitted:
            exponents = ", ".join(f"{name} {value:.2f}" for name, value in fitted[series].items())
            parts.append(f"Exponent of the fitted power law: {exponents}.")
    return "\n\n".join(parts)


def draw(results: dict[str, dict[str, Any]], figure: Any) -> None:
    """Draw the three series."""
    axes = figure.subplots(1, len(SERIES))
    fitted = slopes(results)
    for axis, series in zip(axes, SERIES, strict=True):
        ones = _series(results, series)
        for name in ones[0]["times"] if ones else ():
            slope = fitted.get(series, {}).get(name)
            label = name if slope is None else f"{name}, slope {slope:.2f}"
            x = [one["x"] for one in ones]
            axis.loglog(x, [1e6 * _step(one, name) for one in ones], "o-", label=label)
        axis.set_xlabel({"columns": "D", "rows": "N", "touched": "S R"}[series])
        if ones:
            axis.legend(frameon=False)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds an iteration")
