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


_Group = dict[str, Trajectory]
_Groups = dict[str, _Group]


def _by_source(found: Sequence[Trajectory]) -> _Groups:
    """Sort the trajectories by data set and method."""
    sorted_: _Groups = {}
    for run in found:
        sorted_.setdefault(run.source.label, {})[run.method] = run
    return sorted_


def _item(settings: Settings, name: str, title: str, about: str, table: Table, **more: Any) -> Item:
    """Put what the paper says, and how it was measured, before the table."""
    n_iter = settings.iterations or ITERATIONS
    methods = "; ".join(f"`{method}`: {MEANING[method]}" for method in METHODS)
    parts = (
        f"The paper: {FIGURES[name]} (The data of its figure are not published.)",
        f"No privacy, radius {RADIUS:g}, T {n_iter:,}, no intercept. {methods}.",
        about,
        table,
    )
    return Item(name, title, parts, **more)


def _panels(groups: _Groups, ylabel: str, fill: Callable[["Axes", _Group], None]) -> dict[str, Any]:
    """Return the picture, and its size, of one panel for each data set."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(1, max(1, len(groups)), squeeze=False)[0]
        for axis, (label, group) in zip(axes, groups.items(), strict=False):
            fill(axis, group)
            plain(axis, label, grid=True)
        axes[0].set_ylabel(ylabel)
        axes[0].legend(frameon=False, fontsize=7)

    return {"draw": draw, "size": (max(4.5, 3.2 * len(groups)), 3.6)}


def _gaps(groups: _Groups, xlabel: str, x: Callable[[Trajectory], Any]) -> dict[str, Any]:
    """Draw reported and true gaps over `x` of the steps kept."""

    def fill(axis: "Axes", group: _Group) -> None:
        for method, run in group.items():
            colour, width = COLOURS[method], _LINES[method]
            faint = _FAINT.get(method, 1.0)
            axis.loglog(x(run), run.gap, color=colour, linewidth=width, alpha=faint, label=method)
            at = x(run)[np.isin(run.steps, run.marks)]
            axis.loglog(at, run.marked_gap, "o", color=colour, markersize=3)
        axis.set_xlabel(xlabel)

    return _panels(groups, "gap (line: reported, dots: true)", fill)


def _marked(run: Trajectory) -> dict[int, float]:
    return dict(zip(run.marks.tolist(), run.marked_gap.tolist(), strict=True))


def parting(group: dict[str, Trajectory], method: str) -> int | None:
    """Return the first step whose vertex is not Algorithm 1's; None if all are the same."""
    ours, standard = group[method], group["algorithm-1"]
    differs = (ours.vertex != standard.vertex) | (ours.sign != standard.sign)
    return int(differs.argmax()) + 1 if differs.any() else None


def figure1(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the gap against the iterations."""
    groups = _by_source(trajectories(settings, results))
    rows, data = [], []
    for label, group in groups.items():
        for method, run in group.items():
            marked, last = _marked(run), int(run.marks[-1])
            parted = None if method == "algorithm-1" else parting(group, method)
            gaps = f"{run.gap[-1]:.2e}", f"{marked[last]:.2e}", f"{marked[last] / run.gap[-1]:.3g}"
            other = "-" if method == "algorithm-1" else "none" if parted is None else f"{parted:,}"
            rows.append((label, method, *gaps, other, f"{np.unique(run.vertex).size:,}"))
            data.extend(
                (label, method, step, gap, marked.get(step))
                for step, gap in zip(run.steps.tolist(), run.gap.tolist(), strict=True)
            )
    head = ("data set", "method", "last gap, reported", "last gap, true", "true / reported")
    return _item(
        settings,
        "figure1",
        "Figure 1: gap against iterations",
        "Reported: by the gradients the method works with. True: recomputed from the weights "
        "in float64, at the dots. Other choice: the first step that is not Algorithm 1's.",
        Table((*head, "other choice at", "weights"), rows),
        data_head=("data", "method", "iteration", "gap_reported", "gap_true"),
        data_rows=tuple(data),
        **_gaps(groups, "iteration", lambda run: run.steps),
    )


def figure2(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the ratio of operations against the iterations."""
    groups = _by_source(trajectories(settings, results))
    rows, data = [], []
    fast = [method for method in METHODS if method != "algorithm-1"]
    for label, group in groups.items():
        above = group["algorithm-1"].operations
        for method in fast:
            run = group[method]
            total, last = above / run.operations, int(run.steps[-1])
            kept = (np.searchsorted(run.steps, max(1, last // part)) for part in (100, 10, 1))
            ratios = (f"{total[place]:.3g}" for place in kept)
            rows.append((label, method, f"{above[-1]:.2e}", f"{run.operations[-1]:.2e}", *ratios))
            counts = zip(above.tolist(), run.operations.tolist(), total.tolist(), strict=True)
            data.extend(
                (label, method, step, *count)
                for step, count in zip(run.steps.tolist(), counts, strict=True)
            )

    def fill(axis: "Axes", group: _Group) -> None:
        for method in fast:
            ratio = group["algorithm-1"].operations / group[method].operations
            axis.loglog(group[method].steps, ratio, color=COLOURS[method], label=method)
        axis.axhline(1.0, color="black", linewidth=0.6)
        axis.set_xlabel("iteration")

    head = ("data set", "method", "Alg. 1, all", "method, all", "ratio at T/100", "T/10", "T")
    return _item(
        settings,
        "figure2",
        "Figure 2: how many times fewer operations",
        "Operations up to and with an iteration, counted as the algorithms are written: set-up,"
        " updates, and the selection's own. Ratio of running totals, as the paper's.",
        Table(head, rows),
        data_head=("data", "method", "iteration", "algorithm_1", "operations", "ratio"),
        data_rows=tuple(data),
        **_panels(groups, "operations of Alg. 1 / of the method", fill),
    )


def figure3(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the heap's pops over the number of non-zero weights."""
    groups = _by_source(trajectories(settings, results))
    rows, data, lines = [], [], {}
    for label, group in groups.items():
        run = group["algorithm-2+3"]
        nonzeros = np.unique(run.vertex).size
        ratio = run.pops / nonzeros
        lines[label] = run.steps, ratio
        most = f"{run.pops.max():,}", f"{ratio.max():.3g}", "yes" if ratio.max() <= 3 else "no"
        rows.append((label, f"{nonzeros:,}", f"{run.pops.mean():.2f}", *most))
        data.extend(
            (label, step, pops, nonzeros, pops / nonzeros)
            for step, pops in zip(run.steps.tolist(), run.pops.tolist(), strict=True)
        )

    def draw(figure: "Figure") -> None:
        axis = figure.subplots()
        for label, line in lines.items():
            axis.loglog(*line, linewidth=0.9, label=label)
        axis.axhline(3.0, color="black", linewidth=0.8, linestyle=":", label="the paper's bound")
        axis.set_xlabel("iteration")
        axis.set_ylabel("pops of the iteration / non-zero weights")
        plain(axis, legend={"loc": "center right"})

    head = ("data set", "non-zero weights", "pops, mean", "pops, most", "ratio, most", "<= 3")
    return _item(
        settings,
        "figure3",
        "Figure 3 (appendix): pops of the heap over non-zero weights",
        "Pops of one iteration over the number of columns that the whole run chose, as in the "
        "paper's appendix. Mean and most are over the iterations kept in the CSV file.",
        Table(head, rows),
        data_head=("data", "iteration", "pops", "nonzero_weights", "ratio"),
        data_rows=tuple(data),
        draw=draw,
        size=(6.0, 3.6),
    )


def figure4(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the gap against the operations spent."""
    groups = _by_source(trajectories(settings, results))
    rows, data = [], []
    for label, group in groups.items():
        # A gap that all of them truly reach.
        goal = max(float(run.marked_gap.min()) for run in group.values())
        for method, run in group.items():
            marked = _marked(run)
            reported = _first(run.operations, run.gap <= goal)
            spent = run.operations[np.isin(run.steps, run.marks)]
            true = _first(spent, run.marked_gap <= goal)
            rows.append((label, method, f"{goal:.2e}", reported, true))
            kept = zip(run.steps.tolist(), run.operations.tolist(), run.gap.tolist(), strict=True)
            data.extend((label, method, *one, marked.get(one[0])) for one in kept)
    head = ("data set", "method", "goal", "operations, reported", "operations, true")
    return _item(
        settings,
        "figure4",
        "Figure 4 (appendix): gap against operations",
        "Goal: the largest of the methods' smallest true gaps, so that all of them reach it. "
        "Operations until the reported gap, and until the true gap at a mark, is at the goal.",
        Table(head, rows),
        data_head=("data", "method", "iteration", "operations", "gap_reported", "gap_true"),
        data_rows=tuple(data),
        **_gaps(groups, "operations", lambda run: run.operations),
    )


def _first(operations: Any, reached: Any) -> str:
    return f"{operations[int(np.argmax(reached))]:.2e}" if np.any(reached) else "-"
