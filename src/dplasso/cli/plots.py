"""The demo's picture: how good each method is, and its heaviest weights by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue, orange and grey of the Okabe-Ito palette: told apart by colour-blind readers and in print.
COLORS = ("#E69F00", "#0072B2", "#999999")
QUIET = "#666666"
LONGEST_NAME = 68
# Where bars of AUC begin: guessing.
GUESSING = 0.5


@dataclass(frozen=True)
class NamedWeights:
    """The largest weights of one model, heaviest first; `error` is 0 where it is not known."""

    title: str
    names: Sequence[str]
    weights: NDArray[np.float64]
    error: float = 0.0


def demo_picture(
    areas: Sequence[tuple[str, float]], lists: Sequence[NamedWeights], title: str
) -> bytes:
    """Draw AUC bars (left) and the heaviest weights of each method (right), as a PNG image.

    `areas`: models in the order of `lists`, and others after them.
    `lists`: one panel each.
    `title`: of the whole.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 8.4), layout="constrained")
    figure.suptitle(title, fontsize=15, fontweight="bold")
    left, *panels = figure.subplots(1, 1 + len(lists), width_ratios=(0.62, *(1.0 for _ in lists)))
    _draw_areas(left, areas)
    for axes, weights, color in zip(panels, lists, COLORS, strict=False):
        _draw_weights(axes, weights, color)
    for axes in (left, *panels):
        axes.spines[["top", "right"]].set_visible(False)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=110)
    return image.getvalue()


def _draw_areas(axes: "Axes", areas: Sequence[tuple[str, float]]) -> None:
    places = np.arange(len(areas))
    values = np.array([area for _, area in areas])
    axes.bar(places, values - GUESSING, bottom=GUESSING, width=0.6, color=COLORS[: len(areas)])
    for place, value in zip(places, values, strict=True):
        axes.text(
            float(place),
            float(value) + 0.004,
            f"{value:.3f}",
            ha="center",
            va="bottom",
            fontsize=12,
        )
    axes.set_xticks(places, [name for name, _ in areas], fontsize=10)
    axes.set_ylim(min(GUESSING, float(values.min())), 1.0)
    axes.set_title("AUC on the test rows (0.5: guessing)", fontsize=12, loc="left")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_weights(axes: "Axes", weights: NamedWeights, color: str) -> None:
    # Each feature owns one unit of height: its name on top, the bar below it. Names have the
    # whole width of the panel that way, however long they are.
    rows = np.arange(len(weights.names), dtype=np.float64)
    errors = np.full(rows.size, 2.0 * weights.error) if weights.error else None
    axes.barh(
        rows + 0.2,
        weights.weights,
        height=0.36,
        color=color,
        xerr=errors,
        error_kw={"ecolor": "black", "elinewidth": 1.2, "capsize": 3},
    )
    axes.axvline(0, color=QUIET, linewidth=0.8)
    low = min(0.0, float(weights.weights.min(initial=0.0)) - 2.0 * weights.error)
    high = max(0.0, float(weights.weights.max(initial=0.0)) + 2.0 * weights.error)
    margin = 0.04 * (high - low or 1.0)
    axes.set_xlim(low - margin, high + margin)
    for row, name in zip(rows, weights.names, strict=True):
        label = axes.text(low - margin, row - 0.2, _shortened(name), fontsize=8.5, va="center")
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    axes.set_ylim(len(rows) - 0.4, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("weight (positive: towards income above 50,000 dollars)")
    axes.set_title(weights.title, fontsize=12, loc="left")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
