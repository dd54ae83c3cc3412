"""How the time of a step grows: matrices in series, and exponents of power laws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.report import COLOURS, plain
from evidence.timing import race
from evidence.twins.generate import Shape, generate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = {
    "columns": "D, with rows and columns of fixed length",
    "rows": "N, with D and the length of rows fixed, so that columns grow with N",
    "touched": "S_r S_c, the entries a step touches, with N and D fixed",
}
_AXES = {"columns": "D", "rows": "N", "touched": "S_r S_c"}


@dataclass(frozen=True)
class Point:
    """One matrix of a series: rows all alike, columns equally popular; x is what is varied."""

    series: str
    x: int
    n_rows: int
    n_columns: int
    row: int

    @property
    def name(self) -> str:
        return f"{self.series}-{self.x}"


def time_steps(
    point: Point,
    methods: Mapping[str, Mapping[str, Any]],
    limit: float,
    repeats: int,
    seed: int,
    n_jobs: int,
    advance: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the seconds of a step by method."""
    shape = Shape(point.n_rows, point.n_columns, point.row, row_spread=0.0, exponent=0.0, shift=1.0)
    data = generate(shape, seed=seed, n_jobs=n_jobs)
    timed = race(methods, data.X, (data.y > 0).astype(np.int8), limit, repeats, advance)
    return {name: one["loop"] / one["n_steps"] for name, one in timed.items()}


def exponents(
    points: Sequence[Point], results: Sequence[Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Fit log time of a step against log x, by method and series."""
    found: dict[str, dict[str, float]] = {name: {} for name in results[0]}
    for series in SERIES:
        ones = [
            (point.x, one)
            for point, one in zip(points, results, strict=True)
            if point.series == series
        ]
        if len(ones) < 2:
            continue
        x = np.log([x for x, _ in ones])
        for name, slopes in found.items():
            slopes[series] = float(np.polyfit(x, np.log([one[name] for _, one in ones]), 1)[0])
    return found


def draw(figure: "Figure", points: Sequence[Point], results: Sequence[Any]) -> None:
    """Draw the series."""
    slopes = exponents(points, results)
    axes = figure.subplots(1, len(SERIES), sharey=True)
    for axis, series in zip(axes, SERIES, strict=True):
        own = [k for k, point in enumerate(points) if point.series == series]
        for name, slope in slopes.items():
            label = f"{name}: {slope[series]:.2f}" if series in slope else name
            x, y = [points[k].x for k in own], [1e6 * results[k][name] for k in own]
            axis.loglog(x, y, "o-", color=COLOURS.get(name), label=label, markersize=3)
        axis.set_xlabel(_AXES[series])
        plain(axis, grid=True, legend={} if own else None)
    axes[0].set_ylabel("microseconds a step")
