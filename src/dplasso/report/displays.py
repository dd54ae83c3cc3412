"""Pictures of a model in Python, as scikit-learn's display classes.

Each is made by `from_estimator`, which draws it, and drawn again by ``plot(ax=)``; ``ax_`` and
``figure_`` are what it was drawn on. All need matplotlib.
"""

import os
import re
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, Self

import numpy as np

from dplasso.errors import need
from dplasso.ledger import Budget, Ledger, as_ledger, entry_of, read_budgets, share_of
from dplasso.model.curves import Curve
from dplasso.model.weights import BY_NOISE, Weights, row_name
from dplasso.privacy.wording import rounded_up
from dplasso.report.bars import BLUE, GREY, QUIET, Bar, axes_for, draw_bars, draw_curve, tidy

_BAR_HEIGHT = 0.38
_MOST_ENTRIES = 12


class _Display:
    """The base of all displays."""

    bars: Sequence[Bar] = ()

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _axes(self) -> Any:
        from matplotlib import pyplot

        height = 1.2 + _BAR_HEIGHT * max(2, len(self.bars)) if self.bars else 4.8
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

    @classmethod
    def from_estimator(cls, estimator: Any, count: int = 20, ax: Any = None) -> Self:
        """Draw the largest weights of a fitted model, with their standard errors.

        Parameters
        ----------
        estimator : estimator
            Fitted; of this package.
        count : int, default=20
            How many weights, at most.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on.

        Returns
        -------
        WeightsDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        MissingExtraError
            If matplotlib is not installed.
        """
        return cls(estimator.top_features(count)).plot(ax)

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
                "curves are drawn of numbers that a schema has in bins on several levels "
                '("kind": "levels"), and this model has none'
            )
        self.curves = list(curves)

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> Self:
        """Draw the effect of each number that a schema has in bins on several levels.

        Parameters
        ----------
        estimator : estimator
            Fitted; of this package.
        ax : sequence of matplotlib.axes.Axes, default=None
            Axes to draw on, one for each curve; None makes a figure.

        Returns
        -------
        CurvesDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            If the model has no such numbers.
        MissingExtraError
            If matplotlib is not installed.
        """
        return cls(estimator.curves()).plot(ax)

    def _axes(self) -> Any:
        return axes_for(len(self.curves))

    def _draw(self, ax: Any) -> None:
        for own, curve in zip(ax, self.curves, strict=True):
            draw_curve(own, curve)


class CalibrationDisplay(_Display):
    """The share of the second class among rows with similar predicted probabilities.

    Drawn from a private score, so it may be shown to whom the score may be shown.

    Parameters
    ----------
    score : PrivateScore
        Of ``private_score(model, X, y, metric="calibration")``.
    """

    def __init__(self, score: Any) -> None:
        if not getattr(score, "curve", ()):
            raise ValueError(
                "a calibration curve is drawn from a private score, of "
                'private_score(model, X, y, metric="calibration"), which a ledger can pay for'
            )
        self.score = score

    @classmethod
    def from_estimator(cls, estimator: Any, score: Any, ax: Any = None) -> Self:
        """Draw the calibration of a fitted model, as a private score has released it.

        Parameters
        ----------
        estimator : estimator
            The model that was scored.
        score : PrivateScore
            Of ``private_score(estimator, X, y, metric="calibration")``: what it costs is accounted
            there, and drawing it costs nothing.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on.

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ValueError
            If the score is of another metric or another model.
        MissingExtraError
            If matplotlib is not installed.
        """
        digest, display = _digest_of(estimator), cls(score)
        if score.model != digest:
            raise ValueError("the score is of another model than the one to be drawn")
        return display.plot(ax)

    def _draw(self, ax: Any) -> None:
        points = self.score.curve
        middles = [(one.predicted_low + one.predicted_high) / 2 for one in points]
        values = [min(max(one.observed, 0.0), 1.0) for one in points]
        lows = [value - min(value, one.low) for value, one in zip(values, points, strict=True)]
        highs = [max(value, one.high) - value for value, one in zip(values, points, strict=True)]
        ax.plot([0, 1], [0, 1], color=QUIET, linewidth=1, linestyle=":", label="calibrated")
        label = f"{self.score.confidence:.0%} intervals, noise included"
        look = {"fmt": "o", "color": BLUE, "ecolor": GREY, "capsize": 3}
        ax.errorbar(middles, values, yerr=[lows, highs], label=label, **look)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted probability")
        ax.set_ylabel("share of the second class")
        ax.legend(frameon=False)
        tidy(ax)


class BudgetDisplay(_Display):
    """The share of a ledger's budget that each release cost, for the curator.

    Shares are of the budget's zCDP: they add up, epsilons do not.

    Parameters
    ----------
    budget : Budget
        Of `dplasso.ledger.read_budgets`.
    release : str, default=""
        Digest of the model whose entry is marked.
    """

    def __init__(self, budget: Budget, release: str = "") -> None:
        self.budget, self.release = budget, release
        self.bars = budget_bars(budget, release)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the budget that has paid for a fitted model.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        ledger : path or Ledger, default=None
            The ledger; None takes the estimator's own. Without the name of a data set, the entry
            that paid for the model says which data set is drawn.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on.

        Returns
        -------
        BudgetDisplay

        Raises
        ------
        ValueError
            If there is no ledger.
        LedgerError
            If the ledger cannot be read, or has no such data set.
        MissingExtraError
            If matplotlib is not installed.
        """
        release = _digest_of(estimator)
        asked = as_ledger(estimator.ledger if ledger is None else ledger)
        if asked is None:
            raise ValueError(
                "no ledger paid for this fit; give the one to draw: plot_budget(ledger=PATH)"
            )
        paid = None if asked.dataset else entry_of(read_budgets(asked.path), release)
        return cls(asked.budget() if paid is None else paid[0], release).plot(ax)

    def _draw(self, ax: Any) -> None:
        draw_bars(ax, self.bars)
        ax.set_xlim(0.0, 1.0)
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        delta = rounded_up(self.budget.delta)
        ax.set_xlabel(
            f"share of epsilon {rounded_up(self.budget.epsilon)} at delta {delta}, by zCDP"
        )


def as_method(display: Any, name: str, module: str) -> Any:
    """Return a method of estimators that draws a display, in the words of `from_estimator`."""
    made = display.from_estimator

    def plot(self: Any, *given: Any, **named: Any) -> Any:
        return made(self, *given, **named)

    _, *parameters = signature(made).parameters.values()
    plot.__name__, plot.__qualname__, plot.__module__ = name, name, module
    plot.__doc__ = re.sub(r" +estimator : estimator\n.*\n", "", made.__doc__ or "")
    vars(plot)["__signature__"] = Signature(
        [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *parameters]
    )
    return plot


def _digest_of(estimator: Any) -> str:
    """Return the digest of the model of an estimator; raise NotFittedError before `fit`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "coef_")
    digest: str = estimator.model_.digest
    return digest


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


def budget_bars(budget: Budget, release: str = "", *, purposes: bool = True) -> list[Bar]:
    """Return the entries of a budget as bars, with their purposes or without, and what is left.

    Of many entries the first are one bar, but for that of `release`.
    """
    early, bars = 0.0, []
    many = len(budget.entries) - _MOST_ENTRIES
    for place, entry in enumerate(budget.entries):
        share, charge = share_of(budget, entry.charge), entry.charge
        paid = bool(release) and entry.release == release
        if place < many and not paid:
            early += share
            continue
        purpose = f": {charge.purpose}" if purposes and charge.purpose else ""
        name = f"{charge.kind} {entry.number}{' (this model)' if paid else ''}{purpose}"
        epsilon = f"epsilon {rounded_up(charge.epsilon)} by itself"
        bars.append(Bar(name, share, share, share, f"{share:.1%}, {epsilon}"))
    if early:
        bars.insert(0, Bar("earlier entries", early, early, early, f"{early:.1%}"))
    rest = max(0.0, 1.0 - sum(bar.value for bar in bars))
    return [*bars, Bar("left", rest, rest, rest, f"{rest:.1%}", "not spent")]


def curve_bars(curve: Sequence[Any]) -> list[Bar]:
    """Return a calibration curve as bars, each beside where it should end."""
    return [
        Bar(
            f"{one['predicted_low']:.0%} to {one['predicted_high']:.0%}",
            one["observed"],
            one["low"],
            one["high"],
            f"{one['observed']:.0%} ({max(0.0, one['low']):.0%} to {min(1.0, one['high']):.0%})",
            expected=(one["predicted_low"], one["predicted_high"]),
        )
        for one in curve
    ]
