"""Table 1: complexity of prior methods, beside ours with measured exponents."""

from functools import partial
from typing import Any

from evidence.cells import Cell
from evidence.growth import SERIES, Point, draw, exponents, time_steps
from evidence.items import Item, Settings, Table
from evidence.paper.table3 import METHODS
from evidence.published import COMPLEXITY_SPARSE, COMPLEXITY_STANDARD, TABLE1

ITERATIONS = 4000
TIMED = ("algorithm-1", "algorithm-2+4", "dplasso")
POINTS = (
    *(Point("columns", d, d // 4, d, 16) for d in (20_000, 200_000, 2_000_000)),
    *(Point("rows", n, n, 100_000, 16) for n in (10_000, 100_000, 1_000_000)),
    *(Point("touched", length**2, 50_000, 50_000, length) for length in (4, 16, 64)),
)


def _measure(point: Point, settings: Settings, _X: Any, _y: Any, advance: Any) -> dict[str, Any]:
    common = {
        "n_iter": settings.iterations or ITERATIONS,
        "l1_radius": 50.0,
        "fit_intercept": False,
        "classes": (0, 1),
        "n_jobs": settings.n_jobs,
    }
    methods = {name: common | METHODS[name] for name in TIMED}
    given = settings.limit, settings.repeats, settings.seed, settings.n_jobs
    return time_steps(point, methods, *given, advance)


def cells(settings: Settings) -> list[Cell]:
    """List the matrices."""
    parameters = {
        "n_iter": settings.iterations or ITERATIONS,
        "repeats": settings.repeats,
        "limit": settings.limit,
        "n_jobs": settings.n_jobs,
        "seed": settings.seed,
    }
    return [
        Cell(
            "table1",
            point.name,
            partial(_measure, point, settings),
            {**parameters, "shape": [point.n_rows, point.n_columns, point.row]},
            weight=settings.repeats * (2e7 * point.n_rows**0.25 + 1e9 * min(1.0, settings.limit)),
            machine=True,
        )
        for point in POINTS
    ]


def present(_settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the complexities and the exponents."""
    slopes = exponents(POINTS, results)
    stated = {
        "algorithm-1": ("Algorithm 1 (sparse-aware Frank-Wolfe)", COMPLEXITY_STANDARD),
        "algorithm-2+4": ("Algorithms 2 + 4, the paper's", COMPLEXITY_SPARSE),
        "dplasso": ("dplasso", "O(N S_c + D + T (S_r S_c + refreshes))"),
    }
    rows: list[tuple[str, ...]] = [("the paper", *row, "-", "-", "-") for row in TABLE1]
    for name, (title, complexity) in stated.items():
        measured = (f"{slopes[name][series]:.2f}" for series in SERIES)
        where = "here" if name == "dplasso" else "the paper"
        rows.append((where, title, complexity, *measured))
    data = tuple(
        (point.series, point.x, point.n_rows, point.n_columns, point.row, name, 1e6 * one[name])
        for point, one in zip(POINTS, results, strict=True)
        for name in TIMED
    )
    return Item(
        "table1",
        "Table 1: complexity, and how the time of a step grows",
        (
            "The first rows are the paper's list of prior methods, all of which read dense data. "
            "The last columns are exponents of power laws fitted to the time of one step, set-up "
            "apart, measured on generated matrices at epsilon 1: "
            + "; ".join(f"`{name}`: {meaning}" for name, meaning in SERIES.items())
            + ". An exponent of 0 means that the step does not notice. Cache misses "
            "show as growth of a step with D.",
            Table(("from", "method", "complexity", "in D", "in N", "in S_r S_c"), rows),
        ),
        ("series", "x", "rows", "columns", "row_length", "method", "step_microseconds"),
        data,
        lambda figure: draw(figure, POINTS, results),
        (9.5, 3.6),
    )
