"""The picture of an audit: the attack's ROC curve against what the claim allows."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dplasso.audit.black_box import Roc
from dplasso.audit.claims import Finding
from dplasso.report.bars import BLUE, QUIET, RED, png_of, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLAIM, _ATTACK = BLUE, RED
# Rates from fewer runs than this are mostly chance; the logarithmic axes end there.
_FEWEST_RUNS_SHOWN = 30


def allowed_power(rate: NDArray[np.float64], epsilon: float, delta: float) -> NDArray[np.float64]:
    """Return the largest true positive rate that (epsilon, delta)-privacy allows.

    ``min(1, e^epsilon rate + delta, 1 - e^-epsilon (1 - delta - rate))`` for a false positive rate
    (Kairouz, Oh and Viswanath 2015).
    """
    with np.errstate(over="ignore"):
        steep = np.exp(epsilon) * rate + delta
    flat = 1.0 - np.exp(-epsilon) * (1.0 - delta - rate)
    return np.asarray(np.minimum(1.0, np.minimum(steep, flat)))


def audit_picture(roc: Roc, finding: Finding) -> bytes:
    """Return a PNG image of an attack's ROC curve and the region that the claim rules out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 7.4), layout="constrained")
    verdict = "VIOLATION" if finding.violated else "consistent with the claim"
    found = f"audited at least {finding.audited:.3g}: {verdict}"
    if finding.audited == 0:
        found = "the attack found nothing"
    figure.suptitle(
        f"{finding.name}: claimed epsilon {finding.claimed:g} (delta {finding.delta:g}), {found}",
        fontsize=15,
        fontweight="bold",
    )
    left, right = figure.subplots(1, 2)
    _draw(left, roc, finding, np.linspace(0.0, 1.0, 1001))
    left.set_aspect("equal", anchor="N")
    left.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    left.legend(loc="lower right", fontsize=10.5)
    least = _FEWEST_RUNS_SHOWN / min(finding.figures["trials"])
    _draw(right, roc, finding, np.geomspace(least, 1.0, 1001))
    right.set(xscale="log", yscale="log", xlim=(least, 1.1), ylim=(least, 1.1))
    titles = (
        f"{finding.figures['runs']:,} fits; the event was chosen on other runs than these",
        f"the same, logarithmic, down to {_FEWEST_RUNS_SHOWN} runs",
    )
    for axes, title in zip((left, right), titles, strict=True):
        axes.set_title(title, fontsize=12, loc="left")
        axes.set_xlabel("false positive rate (unlikely data set)")
        axes.set_ylabel("true positive rate (likely data set)")
        tidy(axes)
    return png_of(figure)


def _draw(axes: "Axes", roc: Roc, finding: Finding, rate: NDArray[np.float64]) -> None:
    allowed = allowed_power(rate, finding.claimed, finding.delta)
    axes.fill_between(rate, allowed, 1.0, color=_CLAIM, alpha=0.12, linewidth=0)
    axes.plot(rate, allowed, color=_CLAIM, linewidth=2, label="most that the claim allows")
    axes.plot(rate, rate, color=QUIET, linewidth=1, linestyle=":", label="guessing")
    if finding.audited > 0:
        bound = allowed_power(rate, finding.audited, finding.delta)
        label = f"epsilon {finding.audited:.3g}, the audited bound"
        axes.plot(rate, bound, color=_ATTACK, linewidth=1.2, linestyle="--", label=label)
    attack = roc.false_positive_rate, roc.true_positive_rate
    axes.plot(*attack, color=_ATTACK, linewidth=2.2, label="the attack")
    chosen = roc.chosen
    axes.errorbar(
        [chosen["rate"]],
        [chosen["power"]],
        xerr=[[0.0], [chosen["rate_bound"] - chosen["rate"]]],
        yerr=[[chosen["power"] - chosen["power_bound"]], [0.0]],
        color="black",
        marker="o",
        markersize=6,
        capsize=4,
        linewidth=1.4,
        label="the event tested, with its bounds",
        zorder=5,
    )
