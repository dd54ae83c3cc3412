"""Whether weights scatter by the standard error that is printed: many fits of the same records.

Columns stand in groups by how far signal can bend the path: tau H, where tau = T h / (1 - beta) is
the length of the path and H = sum z^2 / 4 over the unit rows z is the largest curvature.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.cells import Advance, Cell
from evidence.datasets import binarized
from evidence.items import Item, Settings, Table
from evidence.utility.competitors import with_constant
from evidence.utility.fits import DELTA, EPSILONS, split

TITLE = "Spread of weights over fits, over the standard error that is printed"
_EDGES = (0.1, 0.3, 1.0, 3.0)
_NEAR = 0.1


def options(*, epsilons: list[float] = EPSILONS[::2], fits: int = 200) -> None:
    """Name the options."""


@dataclass(frozen=True)
class Scatter:
    """Fit the same records with fresh noise, and compare spreads with the standard error."""

    epsilon: float
    fits: int
    own_test: int
    n_jobs: int

    def __call__(self, X: Any, y: NDArray[Any], advance: Advance) -> dict[str, Any]:
        from dplasso import DPLogisticRegression
        from dplasso.gradient_descent.schedule import schedule_for
        from dplasso.privacy.gaussian import calibrate_mu

        training, _ = split(X.shape[0], self.own_test)
        rows, labels = binarized(X[training]), y[training]
        n_columns = X.shape[1]
        total, squares, printed = np.zeros(n_columns), np.zeros(n_columns), 0.0
        first = np.zeros(n_columns)
        for draw in range(self.fits):
            model = DPLogisticRegression(self.epsilon, DELTA, classes=(0, 1), n_jobs=self.n_jobs)
            model.set_params(random_state=draw).fit(rows, labels)
            # In printed errors, since the slope of a fit stretches both. Around the first fit, so
            # that sums of squares keep their digits.
            scores = model.coef_.ravel() / model.coef_standard_error_
            first = scores if draw == 0 else first
            weights = scores - first
            total += weights
            squares += weights**2
            printed += model.coef_standard_error_ / self.fits
            advance((draw + 1) / self.fits)
        ratio = np.sqrt((squares - total**2 / self.fits) / (self.fits - 1))
        schedule = schedule_for(training.size, calibrate_mu(self.epsilon, DELTA), 0.5)
        path = schedule.n_steps * schedule.step_size / (1.0 - schedule.momentum)
        unit = with_constant(rows, unit=True)
        unit.data **= 2
        bend = path * np.asarray(unit.sum(axis=0)).ravel()[:-1] / 4.0
        groups = np.digitize(bend, _EDGES)
        return {
            "printed": printed,
            "groups": [_group(ratio[groups == k]) for k in range(len(_EDGES) + 1)],
            "all": _group(ratio),
        }


def _group(ratio: NDArray[np.float64]) -> dict[str, Any]:
    if not ratio.size:
        return {"columns": 0}
    return {
        "columns": int(ratio.size),
        "root_mean_square": float(np.sqrt(np.mean(ratio**2))),
        "near": float(np.mean(np.abs(ratio - 1.0) <= _NEAR)),
        "largest": float(ratio.max()),
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
    names = ("below 0.1", "0.1 to 0.3", "0.3 to 1", "1 to 3", "above 3", "all")
    rows = [
        (
            str(about["label"]),
            f"{about['epsilon']:g}",
            f"{about['fits']}",
            name,
            f"{group['columns']:,}",
            f"{group['root_mean_square']:.3f}",
            f"{100 * group['near']:.1f} %",
            f"{group['largest']:.2f}",
        )
        for about, result in measured
        for name, group in zip(names, (*result["groups"], result["all"]), strict=True)
        if group["columns"]
    ]
    fits = max((about["fits"] for about, _ in measured), default=0)
    head = (
        "data",
        "epsilon",
        "fits",
        "tau H",
        "columns",
        "spread / printed",
        "within 10 %",
        "largest",
    )
    # The standard deviation of n draws scatters by 1 / sqrt(2 (n - 1)) of itself.
    chance = math.erf(_NEAR * math.sqrt(max(fits - 1, 0)))
    about = (
        f"{fits} fits of the same records. Spread over printed: root mean square over the columns. "
        f"So few draws put {chance:.0%} of the columns within 10 % where the error is right."
    )
    return Item("standard-errors", TITLE, (about, Table(head, rows)))
