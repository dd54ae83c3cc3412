"""Draw the ROC curve of the canary attack on whole fits, beside what the claim allows.

python -m evidence.audit.picture docs/images/audit-paper.png --mechanism paper --epsilon 0.1
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dplasso.audit import AuditSettings, Plan, builder, run_audits
from dplasso.audit.black_box import Roc
from dplasso.audit.claims import Finding, allowed_power
from dplasso.report.bars import BLUE, QUIET, RED, png_of, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rates from fewer runs than this are mostly chance; the logarithmic axes end there.
_FEWEST_RUNS_SHOWN = 30


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
    axes.fill_between(rate, allowed, 1.0, color=BLUE, alpha=0.12, linewidth=0)
    axes.plot(rate, allowed, color=BLUE, linewidth=2, label="most that the claim allows")
    axes.plot(rate, rate, color=QUIET, linewidth=1, linestyle=":", label="guessing")
    if finding.audited > 0:
        bound = allowed_power(rate, finding.audited, finding.delta)
        label = f"epsilon {finding.audited:.3g}, the audited bound"
        axes.plot(rate, bound, color=RED, linewidth=1.2, linestyle="--", label=label)
    attack = roc.false_positive_rate, roc.true_positive_rate
    axes.plot(*attack, color=RED, linewidth=2.2, label="the attack")
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


def main() -> None:
    """Attack whole fits and draw the attack."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "evidence.audit.picture", description=__doc__, formatter_class=form
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--mechanism", default="exponential")
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    settings = AuditSettings(mechanism=options.mechanism, epsilon=options.epsilon)
    outcome = run_audits(builder(settings), Plan(("canary",)))
    assert outcome.roc is not None
    assert outcome.attack is not None
    options.out.write_bytes(audit_picture(outcome.roc, outcome.attack))


if __name__ == "__main__":
    main()
