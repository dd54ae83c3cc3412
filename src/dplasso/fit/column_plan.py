"""The settings that a LASSO chooses for itself, and warnings of fits that can find nothing.

Both depend on the records only through public numbers and the noisy count.

With t columns drawn, the t-th best one's gradient has fallen to about ``theta N / (2 sqrt(t))``.
The exponential mechanism at ``eps0 = sqrt(8 rho / T)`` finds it if ``eps0`` times that exceeds
``ln 2D``, the largest of 2D noises. So T grows linearly with ``sqrt(rho) N / ln 2D``.

The noise of T draws grows with sqrt(T). The noise of one gradient of all columns does not depend on
how many are kept by it; in units of a draw's it grows with the root of the entries n of a row. It
is the smaller one if ``n < T ln(2D) / 2``, so if ``n < theta sqrt(2 rho) N / 2``. If this bound is
`_LONGEST_ROWS` or more, noisy gradients keep the columns.
"""

import math
from dataclasses import dataclass

from dplasso.fit.task import Task
from dplasso.gradient_descent.schedule import CALIBRATION_SHARE, Stage, steps_that_pay
from dplasso.privacy.budget import Budget

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
class Shape:
    """The public facts that a plan follows from besides the budget and the number of records.

    `asked`: the most columns that the model may have; None for the default.
    `longer`: how much longer a record's gradient may be than that of a draw.
    """

    task: Task
    n_features: int
    asked: int | None
    longer: float
    from_prior: bool

    @property
    def n_coordinates(self) -> int:
        """Columns of all outputs."""
        return self.task.n_outputs * self.n_features

    @property
    def is_narrow(self) -> bool:
        """Whether half of the columns, or all, are no more than may be drawn by default."""
        return self.asked is None and self.n_features <= 2 * MOST_COLUMNS

    @property
    def most_vertices(self) -> int:
        """The most vertices that a fit draws.

        Every column is drawn at most once, and at most half of them are; where there are no more
        columns than may be drawn, all are taken and none is drawn.
        """
        most = MOST_COLUMNS if self.asked is None else self.asked
        return 0 if self.n_features <= most else min(most, max(1, self.n_features // 2))

    @property
    def most_kept(self) -> int:
        """The most columns that gradients keep; 0 where none do."""
        if self.asked is not None or self.is_narrow or self.n_coordinates > _MOST_COORDINATES:
            return 0
        return min(MOST_KEPT, self.n_features // 2)

    @property
    def stages(self) -> list[tuple[int, int]]:
        """The most gradients of each stage, and the most columns that they are of."""
        screening = (SCREENING_STEPS, self.n_features) if self.most_kept else (0, 0)
        most = max(self.most_kept, self.most_vertices) or self.n_features
        return [screening, (REFIT_STEPS, most)]


@dataclass(frozen=True)
class LassoPlan:
    """What a fit does once the classes are counted; shares are of what the counts leave.

    `n_vertices`: vertices to draw; 0 where gradients keep columns, or all columns are taken.
    `refit_share`: share of gradients; 0 for none.
    `l1_radius`, `late_start`: lambda and t0 of the step sizes.
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
    late_start: int = LATE_START
    calibration_share: float = 0.0
    refit_calibration: float = 0.0
    start_share: float = 0.0
    refit_start: float = 0.0
    n_kept: int = 0
    kept_share: float = 0.0

    @property
    def vertex_share(self) -> float:
        """Share of the vertices."""
        return 1.0 - self.refit_share - self.calibration_share - self.start_share

    def stages(self, kappa: float, n_columns: int, told: float) -> tuple[Stage | None, ...]:
        """Return the runs of gradient descent, of which the first is on `n_columns`.

        Where columns were drawn, the run that would keep some is left out.

        `told`: how much all records, public or counted, bend the loss at most, times mu of the
        refit over its sensitivity.
        """
        if not self.n_kept:
            most = REFIT_STEPS
            if self.n_vertices:
                most = steps_that_pay(kappa * told, _FEWEST_STEPS, most)
            return None, Stage(most, 1.0, kappa, n_columns)
        first = Stage(SCREENING_STEPS, 1.0 - self.kept_share, kappa * _SCREENING_KAPPA, n_columns)
        return first, Stage(REFIT_STEPS, self.kept_share, kappa, self.n_kept)


def columns_to_be_found(rho: float, n_records: float, n_coordinates: int) -> int:
    """Return how many columns vertices of this zCDP can tell from noise, in typical data."""
    if math.isinf(rho):
        return MOST_COLUMNS
    found = _STRENGTH * math.sqrt(2.0 * rho) * n_records / math.log(2.0 * n_coordinates)
    return int(min(found, 2.0**31))


def worth_gradients(shape: Shape, rho: float, n_records: float) -> bool:
    """Return whether noisy gradients tell more of typical rows than draws of the same zCDP do."""
    if math.isinf(rho):
        return False
    longest = _LONGEST_ROWS * shape.longer * shape.longer
    return _STRENGTH * math.sqrt(2.0 * rho) * n_records / 2.0 > longest


def plan_lasso(shape: Shape, rho: float, n_records: float) -> LassoPlan:
    """Choose how columns are found and refitted.

    `rho`: the zCDP that the counts leave.
    """
    most, task = shape.most_vertices, shape.task
    start = CALIBRATION_SHARE if shape.from_prior else 0.0
    calibration = start or task.calibration
    if most == 0:
        return LassoPlan(0, 1.0, 0.0, refit_calibration=calibration, refit_start=start)
    share = _REFIT_SHARE_OF_FEW if shape.is_narrow else _REFIT_SHARE
    start = min(start, 0.5 * (1.0 - share))
    found = columns_to_be_found(rho * (1.0 - share - start), n_records, shape.n_coordinates)
    if shape.most_kept and worth_gradients(shape, rho * (1.0 - share), n_records):
        return LassoPlan(
            n_vertices=0,
            refit_share=1.0,
            l1_radius=0.0,
            refit_calibration=calibration,
            refit_start=start,
            n_kept=max(1, min(shape.most_kept, found)),
            kept_share=share,
        )
    # From a public start, weights are of unit rows, as the start is, however few are corrected.
    if found < FEWEST_REFITTED and not shape.from_prior:
        share = 0.0
        left = rho * (1.0 - calibration - start)
        found = columns_to_be_found(left, n_records, shape.n_coordinates)
    all_asked = shape.is_narrow or shape.asked is not None
    n_vertices = most if all_asked else max(1, min(most, found))
    return LassoPlan(
        n_vertices,
        refit_share=share,
        # A vertex weighs radius * 2 / (t0 + ...) each.
        l1_radius=task.column_step / math.sqrt(n_vertices) * (n_vertices + LATE_START) / 2.0,
        calibration_share=0.0 if share else calibration,
        refit_calibration=min(0.5, calibration / share) if share else 0.0,
        start_share=start,
    )


# Of rows whose words tell the class about as well as in texts, a dense fit is right rarely more
# often than guessing below this signal (docs/logistic.md).
_LEAST_SIGNAL = 5.0


def findable_columns(
    rho: float, n_vertices: int, n_records: float, n_outputs: int, n_features: int
) -> float:
    """Return how many of the columns drawn can be expected to stand out, from public numbers.

    At the noise of T draws the t-th best column still does where its gradient exceeds the largest
    of 2D noises. Of K classes a column tells one from the others, and its gradient is 2/K of what
    it is of two.
    """
    found = columns_to_be_found(rho, n_records, n_outputs * n_features)
    strong = 2.0 * found / max(2, n_outputs)
    return min(float(n_vertices), strong * strong / n_vertices)


def columns_warning(
    findable: float, n_iter: int | None, n_records: float, n_features: int, epsilon: float
) -> str:
    """Warn if almost no column can be found; `n_iter` were asked for."""
    fewest = min(FEWEST_REFITTED, n_iter or FEWEST_REFITTED, max(1, n_features // 2))
    if findable >= fewest:
        return ""
    return (
        f"with {n_records:,.0f} records, {n_features:,} columns and epsilon={epsilon:g}, about "
        f"{findable:.2g} columns can be told from noise, and only if they tell the label well: the "
        "model may be no better than chance; more records, fewer columns or a larger epsilon help, "
        "or logistic (linear) regression in place of the LASSO"
    )


def gradients_warning(budget: Budget, mu: float, n_records: float, n_outputs: int) -> str:
    """Say that noise outweighs what so many records can tell, where that is so.

    The signal is what N rows that agree add to a gradient, in units of the noise of all steps; of
    K classes each has its part of the rows.

    `mu`: what the gradients spend.
    """
    told = n_records * mu / budget.moved(1.0)
    if told / max(2, n_outputs) >= _LEAST_SIGNAL:
        return ""
    of = f" of {n_outputs:,} classes" if n_outputs > 2 else ""
    return (
        f"with {n_records:,.0f} records{of} and epsilon={budget.epsilon:g}, the noise outweighs "
        "what the records can tell: the model may be no better than chance; more records or a "
        "larger epsilon help"
    )
