"""Whether weights scatter by the standard errors that are printed: many fits of the same records.

Columns stand in groups by their energy, sum z^2 over the unit rows z: the more of it, the further
signal bends the path that the noise takes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from evidence.cells import Advance, Cell
from evidence.datasets import binarized
from evidence.items import Item, Settings, Table
from evidence.report import grouped
from evidence.utility.competitors import with_constant
from evidence.utility.fits import DELTA, EPSILONS, split

TITLE = "Spread of weights over fits, over the standard errors that are printed"
_EDGES = (1.0, 10.0, 100.0, 1000.0)
_GROUPS = ("below 1", "1 to 10", "10 to 100", "100 to 1,000", "above 1,000", "all")
_NEAR = 0.1
# Of accusing right errors of being too small.
_ALARM = 1e-3


def options(*, epsilons: list[float] = EPSILONS[::2], fits: int = 200) -> None:
    """Name the options."""


@dataclass(frozen=True)
class Scatter:
    """Fit the same records with fresh noise, and compare spreads with the standard errors."""

    epsilon: float
    fits: int
    own_test: int
    n_jobs: int

    def __call__(self, X: Any, y: NDArray[Any], advance: Advance) -> dict[str, Any]:
        from dplasso import DPLogisticRegression

        training, _ = split(X.shape[0], self.own_test)
        rows, labels = binarized(X[training]), y[training]
        n_columns = X.shape[1]
        total, squares, printed = np.zeros((3, n_columns))
        first = np.zeros(n_columns)
        for draw in range(self.fits):
            model = DPLogisticRegression(self.epsilon, DELTA, classes=(0, 1), n_jobs=self.n_jobs)
            model.set_params(random_state=draw).fit(rows, labels)
            # The slope of a fit stretches weights and errors alike: both in medians of the errors.
            # Around the first fit, so that sums of squares keep their digits.
            errors = np.broadcast_to(model.coef_standard_error_, n_columns)
            unit = np.median(errors)
            weights = model.coef_.ravel() / unit
            first = weights if draw == 0 else first
            total += weights - first
            squares += (weights - first) ** 2
            printed += (errors / unit) ** 2 / self.fits
            advance((draw + 1) / self.fits)
        variance = (squares - total**2 / self.fits) / (self.fits - 1)
        ratio = np.sqrt(variance / printed)
        records = with_constant(rows, unit=True)
        records.data **= 2
        energies = np.asarray(records.sum(axis=0)).ravel()[:-1]
        groups = np.digitize(energies, _EDGES)
        largest = math.sqrt(chi2.isf(_ALARM / n_columns, self.fits - 1) / (self.fits - 1))
        every = _group(ratio, largest)
        return {
            "passed": every["too_small"] == 0,
            "groups": [_group(ratio[groups == k], largest) for k in range(len(_EDGES) + 1)],
            "all": every,
        }


def _group(ratio: NDArray[np.float64], largest: float) -> dict[str, Any]:
    """Sum up spread over printed error; what is beyond `largest` is no chance."""
    if not ratio.size:
        return {"columns": 0}
    return {
        "columns": int(ratio.size),
        "root_mean_square": float(np.sqrt(np.mean(ratio**2))),
        "near": float(np.mean(np.abs(ratio - 1.0) <= _NEAR)),
        "largest": float(ratio.max()),
        "too_small": int(np.count_nonzero(ratio > largest)),
    }


def cells(settings: Settings) -> list[Cell]:
    """List the data sets and budgets."""
    epsilons = settings.options.get("epsilons", EPSILONS[::2])
    fits = settings.options.get("fits", 20 if settings.quick else 200)
    return [
        Cell(
            "standard-errors",
            f"{epsilon:g}",
            Scatter(epsilon, fits, source.own_test, settings.n_jobs),
            {"epsilon": epsilon, "fits": fits, "delta": DELTA, "label": source.label},
            source,
            source.entries * fits,
        )
        for source in settings.sources
        for epsilon in epsilons
    ]


def present(settings: Settings, results: list[Any]) -> Item:
    """Lay out the table."""
    measured = [(one.parameters, r) for one, r in zip(cells(settings), results, strict=True) if r]
    return item([(dict(parameters), result) for parameters, result in measured])


def item(measured: list[tuple[dict[str, Any], dict[str, Any]]]) -> Item:
    """Return the table of cells by their parameters and results."""
    rows = [
        (
            f"{about['label']}, epsilon {about['epsilon']:g}",
            name,
            f"{group['columns']:,}",
            f"{group['root_mean_square']:.3f}",
            f"{100 * group['near']:.1f} %",
            f"{group['largest']:.2f}",
            f"{group['too_small']:,}",
        )
        for about, result in measured
        for name, group in zip(_GROUPS, (*result["groups"], result["all"]), strict=True)
        if group["columns"]
    ]
    fits = max((about["fits"] for about, _ in measured), default=0)
    head = ["data", "energy", "columns", "spread / printed", "within 10 %"]
    head += ["largest", "too small"]
    # The standard deviation of n draws scatters by 1 / sqrt(2 (n - 1)) of itself.
    chance = math.erf(_NEAR * math.sqrt(max(fits - 1, 0)))
    about = (
        f"{fits} fits of the same records. Spread over printed: root mean square over the columns. "
        f"So few draws put {chance:.0%} of the columns within 10 % where the error is right. Too "
        f"small: columns that scatter more than chance allows any (false alarms: {_ALARM:g})."
    )
    return Item("standard-errors", TITLE, (about, Table(head, grouped(rows))))
