"""Table 1: complexity of prior methods, beside ours with measured exponents."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dplasso.errors import PrivacyLeakWarning
from evidence.paper.cells import Advance, Cell
from evidence.paper.items import Item, Settings
from evidence.paper.published import COMPLEXITY_SPARSE, COMPLEXITY_STANDARD, TABLE1
from evidence.paper.table3 import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITERATIONS = 4000
TIMED = ("algorithm-1", "algorithm-2+4", "dplasso")
SERIES = {
    "columns": "D, with rows and columns of fixed length",
    "rows": "N, with D and the length of rows fixed, so that columns grow with N",
    "touched": "S_r S_c, the entries a step touches, with N and D fixed",
}


@dataclass(frozen=True)
class Point:
    """One matrix of a series: rows all alike, columns equally popular; x is what is varied."""

    series: str
    x: int
    n_rows: int
    n_columns: int
    row: int


POINTS = (
    *(Point("columns", d, d // 4, d, 16) for d in (20_000, 200_000, 2_000_000)),
    *(Point("rows", n, n, 100_000, 16) for n in (10_000, 100_000, 1_000_000)),
    *(Point("touched", length**2, 50_000, 50_000, length) for length in (4, 16, 64)),
)


@dataclass(frozen=True)
class _Growth:
    """Time a step of each method on one matrix."""

    point: Point
    settings: Settings

    def __call__(self, _X: Any, _y: Any, advance: Advance) -> dict[str, Any]:
        import warnings

        from dplasso.datasets.synthetic.generate import Shape, generate
        from evidence.paper.timing import LoopTime, interleave, middle, time_fit

        point = self.point
        shape = Shape(
            point.n_rows, point.n_columns, point.row, row_spread=0.0, exponent=0.0, shift=1.0
        )
        data = generate(shape, seed=self.settings.seed, n_jobs=self.settings.n_jobs)
        y = (data.y > 0).astype(np.int8)
        few = data.X[: min(50, point.n_rows)]
        common = {
            "n_iter": self.settings.iterations or ITERATIONS,
            "l1_radius": 50.0,
            "fit_intercept": False,
            "classes": (0, 1),
            "n_jobs": self.settings.n_jobs,
        }
        turns, done = len(TIMED) * self.settings.repeats, 0

        def run(name: str) -> LoopTime:
            nonlocal done
            found = time_fit(data.X, y, self.settings.limit, **common, **METHODS[name])[0]
            done += 1
            advance(done / turns)
            return found

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            for name in TIMED:
                labels = np.arange(few.shape[0]) % 2
                time_fit(few, labels, 0.0, **{**common, "n_iter": 4}, **METHODS[name])
            timed = interleave({name: partial(run, name) for name in TIMED}, self.settings.repeats)
        steps = {}
        for name, times in timed.items():
            one = middle(times)
            steps[name] = one["loop"] / one["n_steps"]
        return steps


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
            f"{point.series}-{point.x}",
            None,
            {**parameters, "shape": [point.n_rows, point.n_columns, point.row]},
            settings.repeats * (2e7 * point.n_rows**0.25 + 1e9 * min(1.0, settings.limit)),
            _Growth(point, settings),
            machine=True,
        )
        for point in POINTS
    ]


def exponents(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Fit log time of a step against log x, by method and series."""
    found: dict[str, dict[str, float]] = {name: {} for name in TIMED}
    for series in SERIES:
        ones = [
            (point.x, one)
            for point, one in zip(POINTS, results, strict=True)
            if point.series == series
        ]
        x = np.log([point for point, _ in ones])
        for name in TIMED:
            found[name][series] = float(np.polyfit(x, np.log([one[name] for _, one in ones]), 1)[0])
    return found


def present(_settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the complexities and the exponents."""
    slopes = exponents(results)
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
    data = [
        (point.series, point.x, point.n_rows, point.n_columns, point.row, name, 1e6 * one[name])
        for point, one in zip(POINTS, results, strict=True)
        for name in TIMED
    ]
    return Item(
        name="table1",
        title="Table 1: complexity, and how the time of a step grows",
        paragraphs=(
            "The first rows are the paper's list of prior methods, all of which read dense data. "
            "The last columns are exponents of power laws fitted to the time of one step, set-up "
            "apart, measured on generated matrices at epsilon 1: "
            + "; ".join(f"`{name}`: {meaning}" for name, meaning in SERIES.items())
            + ". An exponent of 0 means that the step does not notice. Cache misses "
            "show as growth of a step with D.",
        ),
        head=("from", "method", "complexity", "in D", "in N", "in S_r S_c"),
        rows=tuple(rows),
        data_head=("series", "x", "rows", "columns", "row_length", "method", "step_microseconds"),
        data_rows=tuple(data),
        draw=lambda figure: _draw(figure, data, slopes),
        size=(9.5, 3.6),
    )


def _draw(
    figure: "Figure", data: list[tuple[Any, ...]], slopes: dict[str, dict[str, float]]
) -> None:
    axes = figure.subplots(1, len(SERIES), sharey=True)
    colours = {"algorithm-1": "#000000", "algorithm-2+4": "#D55E00", "dplasso": "#0072B2"}
    for axis, series in zip(axes, SERIES, strict=True):
        for name in TIMED:
            own = [row for row in data if row[0] == series and row[5] == name]
            label = f"{name}: {slopes[name][series]:.2f}"
            axis.loglog(
                [row[1] for row in own],
                [row[6] for row in own],
                "o-",
                color=colours[name],
                label=label,
                markersize=3,
            )
        axis.set_xlabel({"columns": "D", "rows": "N", "touched": "S_r S_c"}[series])
        axis.legend(frameon=False, fontsize=7)
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("microseconds a step")
