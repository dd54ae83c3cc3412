"""Bars from a common zero, with whiskers: the one way to draw them, as HTML and by matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of the Okabe-Ito palette: told apart by colour-blind readers and in grey print.
BLUE, ORANGE, RED, GREY = "#0072B2", "#E69F00", "#D55E00", "#999999"
QUIET = "#666666"
GRID: dict[str, Any] = {"color": "#dddddd", "linewidth": 0.6}
_LONGEST_NAME = 68


@dataclass(frozen=True)
class Bar:
    """One bar: from 0 to `value`, with a whisker from `low` to `high`.

    `told`: the figures in words.
    `remark`: what makes it doubtful; such a bar is grey.
    `expected`: where it should end, if that is known.
    """

    name: str
    value: float
    low: float
    high: float
    told: str
    remark: str = ""
    expected: tuple[float, float] | None = None


def reach_of(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return the ends of an axis on which all bars and whiskers are seen."""
    ends = [0.0, *(end for bar in bars for end in (bar.value, bar.low, bar.high))]
    return min(ends), max(ends)


def bars_as_html(bars: Sequence[Bar], reach: tuple[float, float] | None = None) -> str:
    """Return bars as rows of a table: name, bar, figures. `reach`: the ends of their axis."""
    low, high = reach or reach_of(bars)
    scale = 200.0 / (high - low or 1.0)

    def place(value: float) -> float:
        return (min(max(value, low), high) - low) * scale

    def drawn(bar: Bar) -> str:
        left, right = sorted((place(0.0), place(bar.value)))
        sign = "doubtful" if bar.remark else "negative" if bar.value < 0 else "positive"
        band, whisker = "", ""
        if bar.expected is not None:
            first, last = map(place, bar.expected)
            band = (
                f'<rect class="expected" x="{first:.1f}" width="{last - first:.1f}" height="12"/>'
            )
        if bar.low < bar.high:
            whisker = f'<path d="M{place(bar.low):.1f} 6H{place(bar.high):.1f}"/>'
        return (
            '<svg viewBox="0 0 200 12" preserveAspectRatio="none" aria-hidden="true">'
            f'{band}<rect class="{sign}" x="{left:.1f}" y="2" width="{right - left:.1f}" '
            f'height="8"/>{whisker}<path class="zero" d="M{place(0.0):.1f} 0V12"/></svg>'
        )

    rows = []
    for bar in bars:
        remark = f' <i class="noise">{escape(bar.remark)}</i>' if bar.remark else ""
        rows.append(
            f"<tr><th>{escape(bar.name)}</th><td>{drawn(bar)}</td>"
            f"<td>{escape(bar.told)}{remark}</td></tr>"
        )
    return f'<table class="bars"><tbody>{"".join(rows)}</tbody></table>'


def draw_bars(axes: "Axes", bars: Sequence[Bar], color: str | None = None) -> None:
    """Draw bars below their names, in one color, or blue and, below 0, red."""
    places, values = np.arange(len(bars)), np.array([bar.value for bar in bars])
    ends = np.array([(bar.low, bar.high) for bar in bars]).reshape(len(bars), 2)
    sides = [color or (BLUE if bar.value >= 0 else RED) for bar in bars]
    colors = [GREY if bar.remark else side for bar, side in zip(bars, sides, strict=True)]
    axes.barh(places + 0.2, values, height=0.36, color=colors)
    if (ends[:, 0] < ends[:, 1]).any():
        reach = np.abs(ends.T - values)
        look: dict[str, Any] = {"fmt": "none", "ecolor": "black", "elinewidth": 1.2, "capsize": 3}
        axes.errorbar(values, places + 0.2, xerr=reach, **look)
    axes.axvline(0, color=QUIET, linewidth=0.8)
    low, high = reach_of(bars)
    margin = 0.04 * (high - low or 1.0)
    axes.set_xlim(low - margin, high + margin)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for place, bar in zip(places.tolist(), bars, strict=True):
        name = bar.name
        name = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        axes.text(low - margin, place - 0.2, name, fontsize=8.5, va="center", bbox=behind)
    axes.set_ylim(len(bars) - 0.4, -0.5)
    axes.set_yticks([])
    tidy(axes, grid="x")
    axes.spines["left"].set_visible(False)


def tidy(axes: "Axes", grid: Any = "both") -> None:
    """Give axes the look of all pictures: light grid behind, no frame above and right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, **GRID)


def png_of(figure: "Figure") -> bytes:
    """Return a figure as a PNG image."""
    image = BytesIO()
    figure.savefig(image, format="png", dpi=110)
    return image.getvalue()
