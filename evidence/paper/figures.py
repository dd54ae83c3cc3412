"""Figures 1 to 4: gap, operations and heap pops over the iterations, without privacy."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.items import Item, Settings, Table
from evidence.paper.trajectories import (
    ITERATIONS,
    MEANING,
    METHODS,
    RADIUS,
    Trajectory,
    trajectories,
    trajectory_cells,
)
from evidence.published import FIGURES
from evidence.report import COLOURS, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Algorithm 1 lies beneath what agrees with it.
_LINES = {"algorithm-1": 3.0, "algorithm-2+3": 0.8, "dplasso": 0.9}
_FAINT = {"algorithm-1": 0.35}
cells = trajectory_cells


def _by_source(found: Sequence[Trajectory]) -> dict[str, dict[str, Trajectory]]:
    """Sort the trajectories by data set and method."""
    sorted_: dict[str, dict[str, Trajectory]] = {}
    for run in found:
        sorted_.setdefault(run.source.label, {})[run.method] = run
    return sorted_


def _about(settings: Settings) -> str:
    n_iter = settings.iterations or ITERATIONS
    methods = "; ".join(f"`{name}`: {MEANING[name]}" for name in METHODS)
    return f"No privacy, radius {RADIUS:g}, T {n_iter:,}, no intercept. {methods}."


def _says(name: str) -> str:
    return f"The paper: {FIGURES[name]} (The data of its figure are not published.)"


def _panels(
    figure: "Figure", groups: dict[str, dict[str, Trajectory]], fill: Callable[["Axes", Any], None]
) -> None:
    """Draw one panel for each data set."""
    axes = figure.subplots(1, max(1, len(groups)), squeeze=False)[0]
    for axis, (label, group) in zip(axes, groups.items(), strict=False):
        fill(axis, group)
        plain(axis, label, grid=True)


def _line(axis: "Axes", x: Any, run: Trajectory) -> None:
    """Draw the gap that a method reports."""
    axis.loglog(
        x,
        run.gap,
        color=COLOURS[run.method],
        linewidth=_LINES[run.method],
        alpha=_FAINT.get(run.method, 1.0),
        label=run.method,
    )


def _width(groups: dict[str, Any]) -> tuple[float, float]:
    return (max(4.5, 3.2 * len(groups)), 3.6)


def parting(group: dict[str, Trajectory], method: str) -> int | None:
    """Return the first step whose vertex is not Algorithm 1's; None if all are the same."""
    ours, standard = group[method], group["algorithm-1"]
    differs = (ours.vertex != standard.vertex) | (ours.sign != standard.sign)
    return int(differs.argmax()) + 1 if differs.any() else None


def figure1(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the gap against the iterations."""
    groups = _by_source(trajectories(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    for label, group in groups.items():
        for method, run in group.items():
            marked = dict(zip(run.marks.tolist(), run.marked_gap.tolist(), strict=True))
            last = int(run.marks[-1])
            parted = None if method == "algorithm-1" else parting(group, method)
            rows.append(
                (
                    label,
                    method,
                    f"{run.gap[-1]:.2e}",
                    f"{marked[last]:.2e}",
                    f"{marked[last] / run.gap[-1]:.3g}",
                    "-" if method == "algorithm-1" else "none" if parted is None else f"{parted:,}",
                    f"{np.unique(run.vertex).size:,}",
                )
            )
            data.extend(
                (label, method, step, gap, marked.get(step))
                for step, gap in zip(run.steps.tolist(), run.gap.tolist(), strict=True)
            )

    def fill(axis: "Axes", group: dict[str, Trajectory]) -> None:
        for method, run in group.items():
            colour = COLOURS[method]
            _line(axis, run.steps, run)
            axis.loglog(run.marks, run.marked_gap, "o", color=colour, markersize=3)
        axis.set_xlabel("iteration")

    def draw(figure: "Figure") -> None:
        _panels(figure, groups, fill)
        figure.axes[0].set_ylabel("gap (line: reported, dots: true)")
        figure.axes[0].legend(frameon=False, fontsize=7)

    return Item(
        "figure1",
        "Figure 1: gap against iterations",
        (
            _says("figure1"),
            _about(settings),
            "Reported: by the gradients the method works with. True: recomputed from the weights "
            "in float64, at the dots. Other choice: the first step that is not Algorithm 1's.",
            Table(
                (
                    "data set",
                    "method",
                    "last gap, reported",
                    "last gap, true",
                    "true / reported",
                    "other choice at",
                    "weights",
                ),
                rows,
            ),
        ),
        ("data", "method", "iteration", "gap_reported", "gap_true"),
        tuple(data),
        draw,
        _width(groups),
    )


def figure2(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the ratio of operations against the iterations."""
    groups = _by_source(trajectories(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    fast = [method for method in METHODS if method != "algorithm-1"]
    for label, group in groups.items():
        standard = group["algorithm-1"]
        for method in fast:
            run = group[method]
            total = standard.operations / run.operations
            rows.append(
                (
                    label,
                    method,
                    f"{standard.operations[-1]:.2e}",
                    f"{run.operations[-1]:.2e}",
                    *(f"{total[np.searchsorted(run.steps, s)]:.3g}" for s in _tenths(run)),
                )
            )
            data.extend(
                (label, method, step, float(above), float(below), float(above / below))
                for step, above, below in zip(
                    run.steps.tolist(), standard.operations, run.operations, strict=True
                )
            )

    def fill(axis: "Axes", group: dict[str, Trajectory]) -> None:
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
        "figure2",
        "Figure 2: how many times fewer operations",
        (
            _says("figure2"),
            _about(settings),
            "Operations up to and with an iteration, counted as the algorithms are written: set-up,"
            " updates, and the selection's own. Ratio of running totals, as the paper's.",
            Table(
                ("data set", "method", "Alg. 1, all", "method, all", "ratio at T/100", "T/10", "T"),
                rows,
            ),
        ),
        ("data", "method", "iteration", "algorithm_1", "operations", "ratio"),
        tuple(data),
        draw,
        _width(groups),
    )


def _tenths(run: Trajectory) -> list[int]:
    """Return the kept steps next to T/100, T/10 and T."""
    last = int(run.steps[-1])
    places = [int(np.searchsorted(run.steps, max(1, last // part))) for part in (100, 10, 1)]
    return [int(run.steps[place]) for place in places]


def figure3(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the heap's pops over the number of non-zero weights."""
    groups = _by_source(trajectories(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    for label, group in groups.items():
        run = group["algorithm-2+3"]
        nonzeros = np.unique(run.vertex).size
        ratio = run.pops / nonzeros
        rows.append(
            (
                label,
                f"{nonzeros:,}",
                f"{run.pops.mean():.2f}",
                f"{run.pops.max():,}",
                f"{ratio.max():.3g}",
                "yes" if ratio.max() <= 3 else "no",
            )
        )
        data.extend(
            (label, step, pops, nonzeros, pops / nonzeros)
            for step, pops in zip(run.steps.tolist(), run.pops.tolist(), strict=True)
        )

    def draw(figure: "Figure") -> None:
        axis = figure.subplots()
        for label, group in groups.items():
            run = group["algorithm-2+3"]
            ratio = run.pops / np.unique(run.vertex).size
            axis.loglog(run.steps, ratio, linewidth=0.9, label=label)
        axis.axhline(3.0, color="black", linewidth=0.8, linestyle=":", label="the paper's bound")
        axis.set_xlabel("iteration")
        axis.set_ylabel("pops of the iteration / non-zero weights")
        plain(axis, legend={"loc": "center right"})

    return Item(
        "figure3",
        "Figure 3 (appendix): pops of the heap over non-zero weights",
        (
            _says("figure3"),
            _about(settings),
            "Pops of one iteration over the number of columns that the whole run chose, as in the "
            "paper's appendix. Mean and most are over the iterations kept in the CSV file.",
            Table(
                ("data set", "non-zero weights", "pops, mean", "pops, most", "ratio, most", "<= 3"),
                rows,
            ),
        ),
        ("data", "iteration", "pops", "nonzero_weights", "ratio"),
        tuple(data),
        draw,
        (6.0, 3.6),
    )


def figure4(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the gap against the operations spent."""
    groups = _by_source(trajectories(settings, results))
    rows: list[tuple[str, ...]] = []
    data: list[tuple[Any, ...]] = []
    for label, group in groups.items():
        # A gap that all of them truly reach.
        goal = max(float(run.marked_gap.min()) for run in group.values())
        for method, run in group.items():
            reported = _first(run.operations, run.gap <= goal)
            spent = run.operations[np.isin(run.steps, run.marks)]
            true = _first(spent, run.marked_gap <= goal)
            rows.append((label, method, f"{goal:.2e}", reported, true))
            marked = dict(zip(run.marks.tolist(), run.marked_gap.tolist(), strict=True))
            data.extend(
                (label, method, step, float(operations), float(gap), marked.get(step))
                for step, operations, gap in zip(
                    run.steps.tolist(), run.operations, run.gap, strict=True
                )
            )

    def fill(axis: "Axes", group: dict[str, Trajectory]) -> None:
        for method, run in group.items():
            colour = COLOURS[method]
            _line(axis, run.operations, run)
            spent = run.operations[np.isin(run.steps, run.marks)]
            axis.loglog(spent, run.marked_gap, "o", color=colour, markersize=3)
        axis.set_xlabel("operations")

    def draw(figure: "Figure") -> None:
        _panels(figure, groups, fill)
        figure.axes[0].set_ylabel("gap (line: reported, dots: true)")
        figure.axes[0].legend(frameon=False, fontsize=7)

    return Item(
        "figure4",
        "Figure 4 (appendix): gap against operations",
        (
            _says("figure4"),
            _about(settings),
            "Goal: the largest of the methods' smallest true gaps, so that all of them reach it. "
            "Operations until the reported gap, and until the true gap at a mark, is at the goal.",
            Table(
                ("data set", "method", "goal", "operations, reported", "operations, true"),
                rows,
            ),
        ),
        ("data", "method", "iteration", "operations", "gap_reported", "gap_true"),
        tuple(data),
        draw,
        _width(groups),
    )


def _first(operations: Any, reached: Any) -> str:
    return f"{operations[int(np.argmax(reached))]:.2e}" if np.any(reached) else "-"
