"""Figures 1 to 4: gap, operations and heap pops over the iterations, without privacy."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.paper.courses import (
    ITERATIONS,
    MEANING,
    METHODS,
    RADIUS,
    Course,
    course_cells,
    courses,
)
from evidence.paper.items import Item, Settings
from evidence.paper.published import FIGURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"algorithm-1": "#000000", "algorithm-2+3": "#D55E00", "dplasso": "#0072B2"}
# Algorithm 1 lies beneath what agrees with it.
_LINES = {"algorithm-1": 3.0, "algorithm-2+3": 0.8, "dplasso": 0.9}
_FAINT = {"algorithm-1": 0.35}
cells = course_cells


def _by_source(found: Sequence[Course]) -> dict[str, dict[str, Course]]:
    """Sort the courses by data set and method."""
    sorted_: dict[str, dict[str, Course]] = {}
    for course in found:
        sorted_.setdefault(course.source.label, {})[course.method] = course
    return sorted_


def _about(settings: Settings) -> str:
    n_iter = settings.iterations or ITERATIONS
    methods = "; ".join(f"`{name}`: {MEANING[name]}" for name in METHODS)
    return f"No privacy, radius {RADIUS:g}, T {n_iter:,}, no intercept. {methods}."


def _says(name: str) -> str:
    return f"The paper: {FIGURES[name]} (The data of its figure are not published.)"


def _panels(
    figure: "Figure", groups: dict[str, dict[str, Course]], fill: Callable[["Axes", Any], None]
) -> None:
    """Draw one panel for each data set."""
    axes = figure.subplots(1, max(1, len(groups)), squeeze=False)[0]
    for axis, (label, group) in zip(axes, groups.items(), strict=False):
        fill(axis, group)
        axis.set_title(label, fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)


def _line(axis: "Axes", x: Any, course: Course) -> None:
    """Draw the gap that a method reports."""
    axis.loglog(
        x,
        course.gap,
        color=COLOURS[course.method],
        linewidth=_LINES[course.method],
        alpha=_FAINT.get(course.method, 1.0),
        label=course.method,
    )


def _width(groups: dict[str, Any]) -> tuple[float, float]:
    return (max(4.5, 3.2 * len(groups)), 3.6)


def parting(group: dict[str, Course], method: str) -> int | None:
    """Give the first step whose vertex is not Algorithm 1's; None if all are the same."""
    ours, standard = group[method], group["algorithm-1"]
    differs = (ours.vertex != standard.vertex) | (ours.sign != standard.sign)
    return int(differs.argmax()) + 1 if differs.any() else None


def figure1(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the gap against the iterations."""
    groups = _by_source(courses(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    for label, group in groups.items():
        for method, course in group.items():
            marked = dict(zip(course.marks.tolist(), course.marked_gap.tolist(), strict=True))
            last = int(course.marks[-1])
            parted = None if method == "algorithm-1" else parting(group, method)
            rows.append(
                (
                    label,
                    method,
                    f"{course.gap[-1]:.2e}",
                    f"{marked[last]:.2e}",
                    f"{marked[last] / course.gap[-1]:.3g}",
                    "-" if method == "algorithm-1" else "none" if parted is None else f"{parted:,}",
                    f"{np.unique(course.vertex).size:,}",
                )
            )
            data.extend(
                (label, method, step, gap, marked.get(step))
                for step, gap in zip(course.steps.tolist(), course.gap.tolist(), strict=True)
            )

    def fill(axis: "Axes", group: dict[str, Course]) -> None:
        for method, course in group.items():
            colour = COLOURS[method]
            _line(axis, course.steps, course)
            axis.loglog(course.marks, course.marked_gap, "o", color=colour, markersize=3)
        axis.set_xlabel("iteration")

    def draw(figure: "Figure") -> None:
        _panels(figure, groups, fill)
        figure.axes[0].set_ylabel("gap (line: reported, dots: true)")
        figure.axes[0].legend(frameon=False, fontsize=7)

    return Item(
        name="figure1",
        title="Figure 1: gap against iterations",
        paragraphs=(
            _says("figure1"),
            _about(settings),
            "Reported: by the gradients the method works with. True: recomputed from the weights "
            "in float64, at the dots. Other choice: the first step that is not Algorithm 1's.",
        ),
        head=(
            "data set",
            "method",
            "last gap, reported",
            "last gap, true",
            "true / reported",
            "other choice at",
            "weights",
        ),
        rows=tuple(rows),
        data_head=("data", "method", "iteration", "gap_reported", "gap_true"),
        data_rows=tuple(data),
        draw=draw,
        size=_width(groups),
    )


def figure2(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the ratio of operations against the iterations."""
    groups = _by_source(courses(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    fast = [method for method in METHODS if method != "algorithm-1"]
    for label, group in groups.items():
        standard = group["algorithm-1"]
        for method in fast:
            course = group[method]
            total = standard.operations / course.operations
            rows.append(
                (
                    label,
                    method,
                    f"{standard.operations[-1]:.2e}",
                    f"{course.operations[-1]:.2e}",
                    *(f"{total[np.searchsorted(course.steps, s)]:.3g}" for s in _tenths(course)),
                )
            )
            data.extend(
                (label, method, step, float(above), float(below), float(above / below))
                for step, above, below in zip(
                    course.steps.tolist(), standard.operations, course.operations, strict=True
                )
            )

    def fill(axis: "Axes", group: dict[str, Course]) -> None:
        for method in fast:
            ratio = group["algorithm-1"].operations / group[method].operations
            axis.loglog(group[method].steps, ratio, color=COLOURS[method], label=method)
        axis.axhline(1.0, color="black", linewidth=0.6)
        axis.set_xlabel("iteration")

    def draw(figure: "Figure") -> None:
        _panels(figure, groups, fill)
        figure.axes[0].set_ylabel("operations of Alg. 1 / of the method")
        figure.axes[0].legend(frameon=False, fontsize=7)

    return Item(
        name="figure2",
        title="Figure 2: how many times fewer operations",
        paragraphs=(
            _says("figure2"),
            _about(settings),
            "Operations up to and with an iteration, counted as the algorithms are written: set-up,"
            " updates, and the selection's own. Ratio of running totals, as the paper's.",
        ),
        head=("data set", "method", "Alg. 1, all", "method, all", "ratio at T/100", "T/10", "T"),
        rows=tuple(rows),
        data_head=("data", "method", "iteration", "algorithm_1", "operations", "ratio"),
        data_rows=tuple(data),
        draw=draw,
        size=_width(groups),
    )


def _tenths(course: Course) -> list[int]:
    """Give the kept steps next to T/100, T/10 and T."""
    last = int(course.steps[-1])
    places = [int(np.searchsorted(course.steps, max(1, last // part))) for part in (100, 10, 1)]
    return [int(course.steps[place]) for place in places]


def figure3(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the heap's pops over the number of non-zero weights."""
    groups = _by_source(courses(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    for label, group in groups.items():
        course = group["algorithm-2+3"]
        nonzeros = np.unique(course.vertex).size
        ratio = course.pops / nonzeros
        rows.append(
            (
                label,
                f"{nonzeros:,}",
                f"{course.pops.mean():.2f}",
                f"{course.pops.max():,}",
                f"{ratio.max():.3g}",
                "yes" if ratio.max() <= 3 else "no",
            )
        )
        data.extend(
            (label, step, pops, nonzeros, pops / nonzeros)
            for step, pops in zip(course.steps.tolist(), course.pops.tolist(), strict=True)
        )

    def draw(figure: "Figure") -> None:
        axis = figure.subplots()
        for label, group in groups.items():
            course = group["algorithm-2+3"]
            ratio = course.pops / np.unique(course.vertex).size
            axis.loglog(course.steps, ratio, linewidth=0.9, label=label)
        axis.axhline(3.0, color="black", linewidth=0.8, linestyle=":", label="the paper's bound")
        axis.set_xlabel("iteration")
        axis.set_ylabel("pops of the iteration / non-zero weights")
        axis.legend(frameon=False, fontsize=7, loc="center right")
        axis.spines[["top", "right"]].set_visible(False)

    return Item(
        name="figure3",
        title="Figure 3 (appendix): pops of the heap over non-zero weights",
        paragraphs=(
            _says("figure3"),
            _about(settings),
            "Pops of one iteration over the number of columns that the whole run chose, as in the "
            "paper's appendix. Mean and most are over the iterations kept in the CSV file.",
        ),
        head=("data set", "non-zero weights", "pops, mean", "pops, most", "ratio, most", "<= 3"),
        rows=tuple(rows),
        data_head=("data", "iteration", "pops", "nonzero_weights", "ratio"),
        data_rows=tuple(data),
        draw=draw,
        size=(6.0, 3.6),
    )


def figure4(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the gap against the operations spent."""
    groups = _by_source(courses(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    for label, group in groups.items():
        # A gap that all of them truly reach.
        goal = max(float(course.marked_gap.min()) for course in group.values())
        for method, course in group.items():
            reported = _first(course.operations, course.gap <= goal)
            spent = course.operations[np.isin(course.steps, course.marks)]
            true = _first(spent, course.marked_gap <= goal)
            rows.append((label, method, f"{goal:.2e}", reported, true))
            marked = dict(zip(course.marks.tolist(), course.marked_gap.tolist(), strict=True))
            data.extend(
                (label, method, step, float(operations), float(gap), marked.get(step))
                for step, operations, gap in zip(
                    course.steps.tolist(), course.operations, course.gap, strict=True
                )
            )

    def fill(axis: "Axes", group: dict[str, Course]) -> None:
        for method, course in group.items():
            colour = COLOURS[method]
            _line(axis, course.operations, course)
            spent = course.operations[np.isin(course.steps, course.marks)]
            axis.loglog(spent, course.marked_gap, "o", color=colour, markersize=3)
        axis.set_xlabel("operations")

    def draw(figure: "Figure") -> None:
        _panels(figure, groups, fill)
        figure.axes[0].set_ylabel("gap (line: reported, dots: true)")
        figure.axes[0].legend(frameon=False, fontsize=7)

    return Item(
        name="figure4",
        title="Figure 4 (appendix): gap against operations",
        paragraphs=(
            _says("figure4"),
            _about(settings),
            "Goal: the largest of the methods' smallest true gaps, so that all of them reach it. "
            "Operations until the reported gap, and until the true gap at a mark, is at the goal.",
        ),
        head=("data set", "method", "goal", "operations, reported", "operations, true"),
        rows=tuple(rows),
        data_head=("data", "method", "iteration", "operations", "gap_reported", "gap_true"),
        data_rows=tuple(data),
        draw=draw,
        size=_width(groups),
    )


def _first(operations: Any, reached: Any) -> str:
    return f"{operations[int(np.argmax(reached))]:.2e}" if np.any(reached) else "-"
