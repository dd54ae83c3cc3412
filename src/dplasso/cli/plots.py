"""The demo's picture: ROC curves and named weights, private beside plain."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue and orange of the Okabe-Ito palette: told apart by colour-blind readers and in grey print.
PRIVATE_COLOR = "#0072B2"
PLAIN_COLOR = "#E69F00"
QUIET = "#666666"
LONGEST_NAME = 92


@dataclass(frozen=True)
class RocCurve:
    """One model's ROC curve, its name in the legend, and the area under it."""

    name: str
    false_positive_rate: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]
    auc: float


@dataclass(frozen=True)
class NamedWeights:
    """Weights of the same features in both models, heaviest first."""

    names: Sequence[str]
    private: NDArray[np.float64]
    plain: NDArray[np.float64]


def demo_picture(
    private_curve: RocCurve, plain_curve: RocCurve, weights: NamedWeights, title: str
) -> bytes:
    """Draw ROC curves (left) and the heaviest weights by name (right), as a PNG image."""
    figure = Figure(figsize=(15, 8.4), layout="constrained")
    figure.suptitle(title, fontsize=15, fontweight="bold")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    _draw_curves(left, private_curve, plain_curve)
    _draw_weights(right, weights, private_curve.name, plain_curve.name)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=110)
    return image.getvalue()


def _draw_curves(axes: "Axes", private: RocCurve, plain: RocCurve) -> None:
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1, linestyle=":", label="guessing, AUC 0.500")
    for curve, color, style in ((plain, PLAIN_COLOR, "--"), (private, PRIVATE_COLOR, "-")):
        axes.plot(
            curve.false_positive_rate,
            curve.true_positive_rate,
            color=color,
            linestyle=style,
            linewidth=2.2,
            label=f"{curve.name}, AUC {curve.auc:.3f}",
        )
    axes.set_title("ROC curves on the test rows", fontsize=12, loc="left")
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.set_aspect("equal", anchor="N")
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="lower right", fontsize=11)


def _draw_weights(axes: "Axes", weights: NamedWeights, private: str, plain: str) -> None:
    # Each feature owns one unit of height: its name on top, the two bars below it. Names have the
    # whole width of the panel that way, however long they are.
    rows = np.arange(len(weights.names), dtype=np.float64)
    axes.barh(rows + 0.08, weights.private, height=0.26, color=PRIVATE_COLOR, label=private)
    axes.barh(rows + 0.34, weights.plain, height=0.26, color=PLAIN_COLOR, label=plain)
    axes.axvline(0, color=QUIET, linewidth=0.8)
    low = min(0.0, float(weights.private.min()), float(weights.plain.min()))
    high = max(0.0, float(weights.private.max()), float(weights.plain.max()))
    margin = 0.04 * (high - low or 1.0)
    axes.set_xlim(low - margin, high + margin)
    for row, name in zip(rows, weights.names, strict=True):
        label = axes.text(low - margin, row - 0.22, _shortened(name), fontsize=8.5, va="center")
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    axes.set_ylim(len(rows) - 0.4, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("weight (positive: towards income above 50,000 dollars)")
    axes.set_title(f"The {len(rows)} heaviest weights at {private}", fontsize=12, loc="left")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="best", fontsize=10)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
