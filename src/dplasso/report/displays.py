"""Pictures of a model in Python, as scikit-learn's displays. All need matplotlib."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from dplasso.errors import need
from dplasso.ledger import Budget, share_of
from dplasso.model.curves import Curve
from dplasso.model.weights import BY_NOISE, Weights, row_name
from dplasso.privacy.wording import percent, rounded_up
from dplasso.report.bars import Bar, draw_bars, draw_curve

_BAR_HEIGHT = 0.38
_MOST_ENTRIES = 12
# Pictures of curves in a row.
_BESIDE = 3


class _Display:
    """The base of all displays."""

    bars: Sequence[Bar] = ()

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _axes(self) -> Any:
        from matplotlib import pyplot

        height = 1.2 + _BAR_HEIGHT * max(2, len(self.bars))
        return pyplot.figure(figsize=(6.4, height), layout="constrained").subplots()

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on, for curves one for each; None makes a figure.

        Returns
        -------
        display
            Itself. `ax_` and `figure_` are the axes and the figure that it was drawn on last.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        need("matplotlib", "The picture")
        self.ax_ = self._axes() if ax is None else ax
        self._draw(self.ax_)
        self.figure_ = np.ravel(self.ax_)[0].figure
        return self


class WeightsDisplay(_Display):
    """The largest weights of a model, with three standard errors of the noise where it has them.

    Weights that noise alone could have picked are grey.

    Parameters
    ----------
    weights : Weights
        As `top_features` returns them.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.bars = weight_bars(weights.rows())

    def _draw(self, ax: Any) -> None:
        draw_bars(ax, self.bars)
        error = self.weights.standard_error is not None
        ax.set_xlabel("weight, ± 3 standard errors of the noise" if error else "weight")


class CurvesDisplay(_Display):
    """The effect of each number on the margin, with three standard errors of the noise.

    Parameters
    ----------
    curves : list of Curve
        As an estimator's `curves` returns them; one picture for each.
    """

    def __init__(self, curves: Sequence[Curve]) -> None:
        if not curves:
            raise ValueError(
                "the model has no curves: its schema has no number in bins on several levels "
                '("kind": "levels")'
            )
        self.curves = list(curves)

    def _axes(self) -> Any:
        from matplotlib import pyplot

        beside = min(len(self.curves), _BESIDE)
        rows = math.ceil(len(self.curves) / beside)
        figure = pyplot.figure(figsize=(3.6 * beside, 2.6 * rows), layout="constrained")
        return [figure.add_subplot(rows, beside, k + 1) for k in range(len(self.curves))]

    def _draw(self, ax: Any) -> None:
        for own, curve in zip(ax, self.curves, strict=True):
            draw_curve(own, curve)


def weight_bars(rows: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Return what `Weights.rows` lists as bars, with three standard errors."""
    bars = []
    for row in rows:
        value, error = row["weight"], row["standard_error"] or 0.0
        figures = f"{value:+.3f}"
        figures += f" ± {error:.3f}" if error else ""
        figures += f" (corrected by {row['correction']:+.3f})" if "correction" in row else ""
        if row["steps"] is not None:
            figures += f", {row['steps']:,} step{'' if abs(row['steps']) == 1 else 's'}"
        name = row_name(row, f"column {row['column']:,}")
        remark = BY_NOISE if row["clear"] is False else ""
        bars.append(Bar(name, value, value - 3 * error, value + 3 * error, figures, remark))
    return bars


def budget_bars(budget: Budget, release: str) -> list[Bar]:
    """Return the entries of a budget as bars, that of `release` marked, and what is left.

    Early entries share one bar if there are many.
    """
    early, bars = 0.0, []
    many = len(budget.entries) - _MOST_ENTRIES
    for place, entry in enumerate(budget.entries):
        share, charge = share_of(budget, entry.charge), entry.charge
        paid = entry.release == release
        if place < many and not paid:
            early += share
            continue
        mark = " (this model)" if paid else ""
        name = f"{charge.kind} {entry.number}{mark}"
        epsilon = f"epsilon {rounded_up(charge.epsilon)} by itself"
        bars.append(Bar(name, share, share, share, f"{percent(share)}, {epsilon}"))
    if early:
        bars.insert(0, Bar("earlier entries", early, early, early, percent(early)))
    rest = max(0.0, 1.0 - sum(bar.value for bar in bars))
    return [*bars, Bar("left", rest, rest, rest, percent(1.0 - rest, left=True), "not spent")]
