"""Curves of numbers with the band of the noise: as HTML and by matplotlib."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dplasso.model.curves import Curve
from dplasso.report.bars import BLUE, QUIET, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BESIDE = 3
_WIDTH, _HEIGHT = 240.0, 90.0


def axes_for(count: int) -> list["Axes"]:
    """Return axes of a new figure for so many curves."""
    from matplotlib import pyplot

    beside = min(count, _BESIDE)
    rows = math.ceil(count / beside)
    figure = pyplot.figure(figsize=(3.6 * beside, 2.6 * rows), layout="constrained")
    return [figure.add_subplot(rows, beside, place + 1) for place in range(count)]


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
    axes.set_xlim(float(curve.edges[0]), float(curve.edges[-1]))
    axes.set_title(curve.name, fontsize=9)
    axes.set_ylabel("target" if curve.label is None else "margin", fontsize=8)
    tidy(axes)


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
        told = " to ".join(
            f"{curve.effect[place]:+.2f} ({curve.edges[place]:.4g} to {curve.edges[place + 1]:.4g})"
            for place in (least, most)
        )
        ends = f"{curve.edges[0]:g} to {curve.edges[-1]:g}"
        steps_grow = ", steps grow" if curve.log_scale else ""
        rows.append(
            f"<tr><th>{escape(curve.name)}<br><small>{ends}{steps_grow}</small></th>"
            f"<td>{picture}</td><td>{escape(told)}</td></tr>"
        )
    return f'<table class="bars curves"><tbody>{"".join(rows)}</tbody></table>'
