"""The demo's picture: how good each method is, and its heaviest weights by name."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dplasso.cli.demo import Trained

# Blue, orange and grey of the Okabe-Ito palette: told apart by colour-blind readers and in print.
COLORS = ("#E69F00", "#0072B2", "#999999")
QUIET = "#666666"
GRID: dict[str, Any] = {"color": "#dddddd", "linewidth": 0.6}
LONGEST_NAME = 68
# Where bars of AUC begin: guessing.
GUESSING = 0.5


def demo_picture(trained: "Sequence[Trained]", title: str) -> bytes:
    """Draw AUC bars (left) and the heaviest weights of each private model, as a PNG image."""
    from matplotlib.figure import Figure

    private = [one for one in trained if one.heaviest]
    statement = private[-1].model.privacy_
    title += f": epsilon {private[-1].model.epsilon:g}, delta {statement.delta:g}"
    figure = Figure(figsize=(17, 8.4), layout="constrained")
    title += "" if statement.is_private else " (not private: see the statement)"
    figure.suptitle(title, fontsize=15, fontweight="bold")
    left, *panels = figure.subplots(
        1, 1 + len(private), width_ratios=(0.62, *(1.0,) * len(private))
    )
    _draw_areas(left, trained)
    for axes, one, color in zip(panels, private, COLORS, strict=False):
        _draw_weights(axes, one, color)
    for axes in (left, *panels):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=110)
    return image.getvalue()


def _draw_areas(axes: "Axes", trained: "Sequence[Trained]") -> None:
    places = np.arange(len(trained))
    values = np.array([one.scores.auc or 0.0 for one in trained])
    axes.bar(places, values - GUESSING, bottom=GUESSING, width=0.6, color=COLORS[: len(trained)])
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        axes.text(place, value + 0.004, f"{value:.3f}", ha="center", va="bottom", fontsize=12)
    axes.set_xticks(places, [one.name.replace(", ", ",\n") for one in trained], fontsize=10)
    axes.set_ylim(min(GUESSING, float(values.min())), 1.0)
    axes.set_title("AUC on the test rows (0.5: guessing)", fontsize=12, loc="left")
    axes.grid(axis="y", **GRID)


def _draw_weights(axes: "Axes", trained: "Trained", color: str) -> None:
    # Each feature owns one unit of height: its name on top, the bar below it. Names have the
    # whole width of the panel that way, however long they are.
    rows = np.arange(len(trained.heaviest), dtype=np.float64)
    weights = np.array([one["weight"] for one in trained.heaviest])
    # A LASSO of too little budget for a refit has none.
    error = 2.0 * (trained.heaviest[0]["standard_error"] or 0.0)
    whiskers = {"ecolor": "black", "elinewidth": 1.2, "capsize": 3}
    bars: dict[str, Any] = {
        "xerr": np.full(rows.size, error) if error else None,
        "error_kw": whiskers,
    }
    axes.barh(rows + 0.2, weights, height=0.36, color=color, **bars)
    axes.axvline(0, color=QUIET, linewidth=0.8)
    low = min(0.0, float(weights.min(initial=0.0)) - error)
    high = max(0.0, float(weights.max(initial=0.0)) + error)
    margin = 0.04 * (high - low or 1.0)
    axes.set_xlim(low - margin, high + margin)
    for row, one in zip(rows.tolist(), trained.heaviest, strict=True):
        label = axes.text(
            low - margin, row - 0.2, _shortened(one["name"]), fontsize=8.5, va="center"
        )
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    axes.set_ylim(len(rows) - 0.4, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("weight (positive: towards income above 50,000 dollars)")
    remark = "the largest, \u00b1 2 standard errors" if error else "the largest weights"
    axes.set_title(f"{trained.name}: {remark}", fontsize=12, loc="left")
    axes.grid(axis="x", **GRID)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
