"""How the time of an iteration grows with the columns, the rows, and the entries touched."""

from typing import Any

from evidence import growth
from evidence.benchmarks.competitors import Training, own_parameters
from evidence.growth import SERIES, Point
from evidence.items import Table
from evidence.report import seconds_text

TITLE = "Growth"


def cases(config: Any) -> dict[str, Point]:
    """List the matrices."""
    points = [
        Point("columns", d, max(1, d // config.column_ratio), d, config.column_row)
        for d in config.columns
    ]
    points += [Point("rows", n, n, config.row_columns, config.column_row) for n in config.rows]
    side = config.touched_columns
    points += [Point("touched", length**2, side, side, length) for length in config.touched]
    return {point.name: point for point in points}


def measure(point: Point, config: Any, settings: Any) -> dict[str, Any]:
    """Time an iteration on one matrix."""
    training = Training.of(config, settings, config.epsilon)
    methods = {name: own_parameters(name, training) for name in config.competitors}
    given = config.limit, config.repeats, 0, settings.n_jobs
    return vars(point) | {"steps": growth.time_steps(point, methods, *given)}


def _split(results: dict[str, Any]) -> tuple[list[Point], list[Any]]:
    points = [
        Point(**{key: one[key] for key in Point.__dataclass_fields__}) for one in results.values()
    ]
    return points, [one["steps"] for one in results.values()]


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the series."""
    parts: list[str | Table] = [
        "Time of an iteration, set-up apart. Matrices with rows all alike and columns equally "
        "popular."
    ]
    fitted = growth.exponents(*_split(results))
    for series, meaning in SERIES.items():
        ones = [one for one in results.values() if one["series"] == series]
        if not ones:
            continue
        rows = [
            [
                f"{one['x']:,}",
                f"{one['n_rows']:,} x {one['n_columns']:,}",
                *map(seconds_text, one["steps"].values()),
            ]
            for one in ones
        ]
        parts += [f"Against {meaning}:", Table([series, "rows x columns", *fitted], rows)]
        if len(ones) > 1:
            told = ", ".join(f"{name} {slopes[series]:.2f}" for name, slopes in fitted.items())
            parts.append(f"Exponent of the fitted power law: {told}.")
    return parts


def draw(results: dict[str, dict[str, Any]], figure: Any) -> None:
    """Draw the series."""
    growth.draw(figure, *_split(results))
