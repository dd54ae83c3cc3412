"""The settings that a LASSO chooses for itself, from public facts and from what was released.

With t columns drawn, the t-th best one's gradient has fallen to about ``theta N / (2 sqrt(t))``,
and the exponential mechanism at ``eps0 = sqrt(8 rho / T)`` finds it where ``eps0`` times that
exceeds the ``ln 2D`` of the largest of 2D noises. So T grows linearly with
``sqrt(rho) N / ln 2D``.

The noise of T draws grows with sqrt(T). That of one gradient of all columns does not depend on how
many are kept by it; in units of a draw's it grows with the root of the entries n of a row, and is
the smaller where ``n < T ln(2D) / 2``, so where ``n < theta sqrt(2 rho) N / 2``. So many columns as
can be found where that bound is `_LONGEST_ROWS` are kept by noisy gradients instead of drawn.
"""

import math
from dataclasses import dataclass

from dplasso.fit.task import Task
from dplasso.gradient_descent.plan import Stage
from dplasso.gradient_descent.schedule import steps_that_pay
from dplasso.privacy.mechanisms import StagedSteps
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_SHARE

# The most columns drawn unless more are asked for; data with no more columns keep all of them.
MOST_COLUMNS = 200
# The most columns kept by gradients, and the coordinates of all outputs that have any.
MOST_KEPT, _MOST_COORDINATES = 2**16, 2**24
# Gradients of all columns that keep some; the most and the fewest of the refit of columns drawn.
SCREENING_STEPS, REFIT_STEPS, _FEWEST_STEPS = 16, 100, 40
# How far the noise of the first may move the margin of a unit row: they only rank the columns.
_SCREENING_KAPPA = 0.1
# Steps of constant size, not shrinking ones: as if this many had been taken before.
LATE_START = 2**20
# theta: how strong the best column is.
_STRENGTH = 0.35
# Entries of rows up to which gradients are taken to tell more than draws.
_LONGEST_ROWS = 800.0
# Share of the budget for the refit; the second where half of all columns are drawn.
_REFIT_SHARE, _REFIT_SHARE_OF_FEW = 0.3, 0.6
# Where fewer columns can be found, all of the budget is spent on finding them.
FEWEST_REFITTED = 8


@dataclass(frozen=True)
class LassoPlan:
    """What a fit does once the classes are counted; shares are of what the counts leave.

    `n_vertices`: vertices to draw; 0 where gradients keep columns, or all columns are taken.
    `refit_share`: share of gradients; 0 for none.
    `late_start`: t0 of the step sizes.
    `calibration_share`: share that calibrates the margins of the vertices where there is no refit.
    `refit_calibration`: part of the refit's share that calibrates its margins.
    `start_share`: share that finds the slope of a public start for vertices and refit.
    `refit_start`: part of the refit's share that finds it where no vertex is drawn.
    `n_kept`: columns that gradients of all columns keep; 0 where they keep none.
    `kept_share`: part of the gradients' share for those on the columns kept.
    """

    n_vertices: int
    refit_share: float
    l1_radius: float
    late_start: int
    calibration_share: float = 0.0
    refit_calibration: float = 0.0
    start_share: float = 0.0
    refit_start: float = 0.0
    n_kept: int = 0
    kept_share: float = 0.0

    def stages(
        self, mechanism: StagedSteps, kappa: float, n_columns: int, told: float
    ) -> tuple[Stage, ...]:
        """Return the runs of gradient descent, of which the last begins with `n_columns` or all.

        `told`: how much all records, public or counted, bend the loss at most, times mu of the
        refit over its sensitivity.
        """
        if not self.n_kept:
            most = mechanism.n_gradients
            if self.n_vertices:
                most = steps_that_pay(kappa * told, min(most, _FEWEST_STEPS), most)
            return (Stage(most, 1.0, kappa, n_columns),)
        first = Stage(
            mechanism.n_screening, 1.0 - self.kept_share, kappa * _SCREENING_KAPPA, n_columns
        )
        return first, Stage(mechanism.n_gradients, self.kept_share, kappa, self.n_kept)


def most_kept(
    n_iter: int | None,
    l1_radius: float | None,
    refit: float | None,
    n_outputs: int,
    n_features: int,
) -> int:
    """Return the most columns that gradients keep, from public numbers; 0 where none do.

    Where the number of steps, a radius or no refit is asked for, columns are drawn.
    """
    chosen = n_iter is None and l1_radius is None and refit != 0.0
    if not chosen or n_features <= 2 * MOST_COLUMNS or n_outputs * n_features > _MOST_COORDINATES:
        return 0
    return min(MOST_KEPT, n_features // 2)


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


def worth_gradients(mechanism: StagedSteps, rho: float, n_records: float) -> bool:
    """Return whether noisy gradients tell more of typical rows than draws of the same zCDP do."""
    if math.isinf(rho):
        return False
    # Of several outputs, a record's gradient may be longer than that of a draw.
    longer = mechanism.norm_bound / mechanism.residual_bound
    return _STRENGTH * math.sqrt(2.0 * rho) * n_records / 2.0 > _LONGEST_ROWS * longer * longer


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
    if mechanism.vertices_alone and l1_radius is not None:
        return LassoPlan(most, 0.0, l1_radius, 0)
    start = CALIBRATION_SHARE if mechanism.from_prior else 0.0
    calibration = start or task.calibration
    if most == 0:
        return LassoPlan(0, 1.0, 0.0, LATE_START, refit_calibration=calibration, refit_start=start)
    few = l1_radius is None and n_iter is None and n_features <= 2 * MOST_COLUMNS
    share = (_REFIT_SHARE_OF_FEW if few else _REFIT_SHARE) if refit is None else refit
    start = min(start, 0.5 * (1.0 - share))
    n_coordinates = mechanism.n_outputs * n_features
    found = columns_to_be_found(rho * (1.0 - share - start), n_records, n_coordinates)
    if mechanism.most_kept and worth_gradients(mechanism, rho * (1.0 - share), n_records):
        n_kept = max(1, min(mechanism.most_kept, found))
        ends = 0.0, calibration, 0.0, start
        return LassoPlan(0, 1.0, 0.0, LATE_START, *ends, n_kept, share)
    # From a public start, weights are of unit rows, as the start is, however few are corrected.
    if refit is None and found < FEWEST_REFITTED and not mechanism.from_prior:
        share = 0.0
        found = columns_to_be_found(rho * (1.0 - calibration - start), n_records, n_coordinates)
    n_vertices = most if few or n_iter is not None else max(1, min(most, found))
    one, other = (0.0, min(0.5, calibration / share)) if share else (calibration, 0.0)
    shares = one, other, start
    if l1_radius is not None:
        return LassoPlan(n_vertices, share, l1_radius, 0, *shares)
    # A vertex weighs radius * 2 / (t0 + ...) each.
    radius = task.column_step / math.sqrt(n_vertices) * (n_vertices + LATE_START) / 2.0
    return LassoPlan(n_vertices, share, radius, LATE_START, *shares)
