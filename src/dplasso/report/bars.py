"""Bars from a common zero, and curves with a band: as HTML and by matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.model.curves import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe-Ito colours, distinct for colour-blind readers and in grey print.
BLUE, RED, GREY = "#0072B2", "#D55E00", "#999999"
QUIET = "#666666"
GRID: dict[str, Any] = {"color": "#dddddd", "linewidth": 0.6}
_LONGEST_NAME = 68
# The size of a curve in HTML.
_WIDTH, _HEIGHT = 240.0, 90.0


@dataclass(frozen=True)
class Bar:
    """One bar from 0 to `value`, with a whisker from `low` to `high`.

    `figures` has the numbers as text. A bar with a `remark` is grey.
    """

    name: str
    value: float
    low: float
    high: float
    figures: str
    remark: str = ""


def reach_of(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return the ends of an axis that shows all bars and whiskers."""
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
        whisker = ""
        if bar.low < bar.high:
            whisker = f'<path d="M{place(bar.low):.1f} 6H{place(bar.high):.1f}"/>'
        return (
            '<svg viewBox="0 0 200 12" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="{sign}" x="{left:.1f}" y="2" width="{right - left:.1f}" '
            f'height="8"/>{whisker}<path class="zero" d="M{place(0.0):.1f} 0V12"/></svg>'
        )

    rows = []
    for bar in bars:
        remark = f' <i class="noise">{escape(bar.remark)}</i>' if bar.remark else ""
        rows.append(
            f"<tr><th>{escape(bar.name)}</th><td>{drawn(bar)}</td>"
            f"<td>{escape(bar.figures)}{remark}</td></tr>"
        )
    return f'<table class="bars"><tbody>{"".join(rows)}</tbody></table>'


def draw_bars(axes: "Axes", bars: Sequence[Bar]) -> None:
    """Draw bars below their names: blue, below 0 red, doubtful ones grey."""
    places, values = np.arange(len(bars)), np.array([bar.value for bar in bars])
    ends = np.array([(bar.low, bar.high) for bar in bars]).reshape(len(bars), 2)
    colors = [GREY if bar.remark else BLUE if bar.value >= 0 else RED for bar in bars]
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
        if len(name) > _LONGEST_NAME:
            name = name[: _LONGEST_NAME - 1] + "…"
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


def draw_curve(axes: "Axes", curve: Curve) -> None:
    """Draw a curve in steps, and its band."""
    low, high = curve.band
    if curve.standard_error is not None:
        look: dict[str, Any] = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "step": "post"}
        axes.fill_between(curve.edges, _ended(low), _ended(high), **look)
    axes.stairs(curve.effect, curve.edges, baseline=None, color=BLUE, linewidth=1.5)
    axes.axhline(0, color=QUIET, linewidth=0.8)
    if curve.log_scale:
        smallest = float(np.abs(curve.edges[curve.edges != 0.0]).min())
        axes.set_xscale("symlog", linthresh=smallest)
    else:
        axes.locator_params("x", nbins=4)
        axes.xaxis.set_major_formatter(lambda value, _: _number(value))
    axes.set_xlim(float(curve.edges[0]), float(curve.edges[-1]))
    axes.set_title(curve.name, fontsize=9)
    axes.set_ylabel("target" if curve.label is None else "margin", fontsize=8)
    tidy(axes)


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"


def _ended(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(values, values[-1])


def curves_as_html(curves: Sequence[Curve]) -> str:
    """Return curves as rows of a table: name, curve with its band, and the range of its effect."""
    rows = []
    for curve in curves:
        low, high = curve.band
        bottom, top = min(0.0, float(low.min())), max(0.0, float(high.max()))
        scale = (_HEIGHT - 4.0) / (top - bottom or 1.0)
        width = _WIDTH / curve.effect.size

        def up(value: float, top: float = top, scale: float = scale) -> float:
            return 2.0 + (top - value) * scale

        def steps(values: NDArray[np.float64], width: float = width, up: Any = up) -> list[str]:
            places = enumerate(values.tolist())
            return [f"{x * width:.1f} {up(v):.1f}H{(x + 1) * width:.1f}" for x, v in places]

        back = [f"{(x + 1) * width:.1f} {up(v):.1f}H{x * width:.1f}" for x, v in enumerate(low)]
        band = "M" + "L".join([*steps(high), *back[::-1]]) + "Z"
        picture = (
            f'<svg class="curve" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" '
            f'aria-hidden="true"><path class="band" d="{band}"/>'
            f'<path class="zero" d="M0 {up(0.0):.1f}H{_WIDTH:g}"/>'
            f'<path d="M{"L".join(steps(curve.effect))}"/></svg>'
        )
        least, most = int(curve.effect.argmin()), int(curve.effect.argmax())
        effects = " to ".join(
            f"{curve.effect[place]:+.2f} "
            f"({_number(curve.edges[place])} to {_number(curve.edges[place + 1])})"
            for place in (least, most)
        )
        ends = f"{_number(curve.edges[0])} to {_number(curve.edges[-1])}"
        steps_grow = ", steps grow" if curve.log_scale else ""
        rows.append(
            f"<tr><th>{escape(curve.name)}<br><small>{ends}{steps_grow}</small></th>"
            f"<td>{picture}</td><td>{escape(effects)}</td></tr>"
        )
    return f'<table class="bars curves"><tbody>{"".join(rows)}</tbody></table>'
