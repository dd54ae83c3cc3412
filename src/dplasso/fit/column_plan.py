"""The settings that a LASSO chooses for itself, from public facts and from what was released.

With t columns drawn, the t-th best one's gradient has fallen to about ``theta N / (2 sqrt(t))``,
and the exponential mechanism at ``eps0 = sqrt(8 rho / T)`` finds it where ``eps0`` times that
exceeds the ``ln 2D`` of the largest of 2D noises. So T grows linearly with
``sqrt(rho) N / ln 2D``.
"""

import math
from dataclasses import dataclass

from dplasso.fit.task import Task
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE

# The most columns drawn unless more are asked for; data with no more columns keep all of them.
MOST_COLUMNS = 200
# Gradients of the refit.
REFIT_STEPS = 100
# Steps of constant size, not shrinking ones: as if this many had been taken before.
LATE_START = 2**20
# theta: how strong the best column is.
_STRENGTH = 0.35
# Share of the budget for the refit; the second where half of all columns are drawn.
_REFIT_SHARE, _REFIT_SHARE_OF_FEW = 0.3, 0.6
# Where fewer columns can be found, all of the budget is spent on finding them.
_FEWEST_REFITTED = 8


@dataclass(frozen=True)
class LassoPlan:
    """What a fit does once the classes are counted; shares are of what the counts leave.

    `n_vertices`: vertices to draw; 0 where all columns are taken.
    `refit_share`: share of the refit; 0 for none.
    `late_start`: t0 of the step sizes.
    `calibration_share`: share that calibrates the margins of the vertices where there is no refit.
    `refit_calibration`: part of the refit's share that calibrates its margins.
    `start_share`: share that finds the slope of a public start for the vertices.
    `refit_start`: part of the refit's share that finds it for the refit.
    """

    n_vertices: int
    refit_share: float
    l1_radius: float
    late_start: int
    calibration_share: float = 0.0
    refit_calibration: float = 0.0
    start_share: float = 0.0
    refit_start: float = 0.0


def most_vertices(n_iter: int | None, l1_radius: float | None, n_features: int) -> int:
    """Return the most vertices that a fit draws, from public numbers.

    Without a radius every column is drawn at most once, and at most half of them are; where there
    are no more columns than may be drawn, all are taken and none is drawn.
    """
    asked = MOST_COLUMNS if n_iter is None else n_iter
    if l1_radius is not None:
        return asked
    return 0 if n_features <= asked else min(asked, max(1, n_features // 2))


def columns_to_be_found(rho: float, n_records: float, n_coordinates: int) -> int:
    """Return how many columns vertices of this zCDP can tell from noise, in typical data."""
    if math.isinf(rho):
        return MOST_COLUMNS
    found = _STRENGTH * math.sqrt(2.0 * rho) * n_records / math.log(2.0 * n_coordinates)
    return int(min(found, 2.0**31))


def plan_lasso(
    task: Task,
    mechanism: StagedSteps,
    n_records: float,
    n_features: int,
    *,
    n_iter: int | None = None,
    l1_radius: float | None = None,
    refit: float | None = None,
) -> LassoPlan:
    """Choose what the parameters leave open (None); N is public or was counted privately."""
    most, rho = mechanism.n_vertices, mechanism.rho_left
    start = CALIBRATION_SHARE if mechanism.from_prior else 0.0
    calibration = start or task.calibration
    if most == 0:
        return LassoPlan(0, 1.0, 0.0, LATE_START, refit_calibration=calibration, refit_start=start)
    few = l1_radius is None and n_iter is None and n_features <= 2 * MOST_COLUMNS
    share = (_REFIT_SHARE_OF_FEW if few else _REFIT_SHARE) if refit is None else refit
    start = min(start, 0.5 * (1.0 - share))
    n_coordinates = mechanism.n_outputs * n_features
    found = columns_to_be_found(rho * (1.0 - share - start), n_records, n_coordinates)
    if refit is None and found < _FEWEST_REFITTED:
        share = 0.0
        found = columns_to_be_found(rho * (1.0 - calibration - start), n_records, n_coordinates)
    n_vertices = most if few or n_iter is not None else max(1, min(most, found))
    ends = (0.0, min(0.5, calibration / share)) if share else (calibration, 0.0)
    shares = *ends, start, min(0.25, start / share) if share else 0.0
    if l1_radius is not None:
        return LassoPlan(n_vertices, share, l1_radius, 0, *shares)
    # A vertex weighs radius * 2 / (t0 + ...) each.
    radius = task.column_step / math.sqrt(n_vertices) * (n_vertices + LATE_START) / 2.0
    return LassoPlan(n_vertices, share, radius, LATE_START, *shares)
