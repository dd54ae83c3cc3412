"""The settings that a LASSO chooses for itself.

Of t columns drawn, the weakest one's gradient is about ``theta N / (2 sqrt(t))``. A draw at ``eps0
= sqrt(8 rho / T)`` finds it if ``eps0`` times that exceeds ``ln 2D``, so T grows with ``sqrt(rho) N
/ ln 2D``. The noise of a gradient of all columns does not depend on T but grows with the length of
a row. It is the smaller one for rows whose squared length is below ``T ln(2D) / 2``.
"""

import math
from dataclasses import dataclass

from dplasso.fit.task import Task
from dplasso.gradient_descent.schedule import (
    CALIBRATION_SHARE,
    MOST_STEPS,
    Stage,
    plan_stages,
    steps_that_pay,
    with_directions,
)
from dplasso.phases.select import LATE_START

# The most columns of a model unless more are asked for or can be found.
MOST_COLUMNS = 200
# The most columns that gradients keep, and the most coordinates that gradients may have.
MOST_KEPT, _MOST_COORDINATES = 2**16, 2**24
# The most and the fewest gradients of the refit of columns drawn.
_MOST_REFIT_STEPS, _FEWEST_REFIT_STEPS = 100, 40
# theta: the strength of the best column.
_STRENGTH = 0.35
# Squared length of rows up to which gradients find more than T draws, over T ln(2D) / 2. Chosen
# on splits of the training rows of Reuters and Farm Ads, and on made-up rows (docs/lasso.md).
_LONGER_ROWS = 8.0
# Share of the budget for the refit of columns drawn.
_REFIT_SHARE = 0.3
# Where fewer columns can be found, all of the budget is spent on finding them.
FEWEST_REFITTED = 8


@dataclass(frozen=True)
class Shape:
    """The public facts that a plan follows from besides the budget and the number of records.

    `asked`: the most columns of the model, None for the default. `longer`: how much longer a
    record's gradient may be than that of a draw. `mixes`: whether gradients use directions of
    public rows.
    """

    task: Task
    n_features: int
    asked: int | None
    longer: float
    from_prior: bool
    mixes: bool = False

    @property
    def n_coordinates(self) -> int:
        """Columns of all outputs."""
        return self.task.n_outputs * self.n_features

    @property
    def length(self) -> int:
        """Columns of the list, if no more can be found; 0 where all columns are taken."""
        length = self.asked or MOST_COLUMNS
        return 0 if self.n_features <= length else length

    @property
    def most_vertices(self) -> int:
        """The most vertices that a fit draws: each column at most once, and at most half."""
        return 0 if self.mixes else min(self.length, max(1, self.n_features // 2))

    @property
    def most_kept(self) -> int:
        """The most columns that gradients keep; 0 where none do."""
        if self.n_coordinates > _MOST_COORDINATES and not self.mixes:
            return 0
        if self.asked or not self.length:
            return self.length
        return max(self.length, min(MOST_KEPT, self.n_features // 2))

    @property
    def measures_rows(self) -> bool:
        """Whether the length of rows decides between draws and gradients."""
        return self.most_vertices > 0 and self.most_kept > 0

    @property
    def stages(self) -> list[tuple[int, int]]:
        """The most gradients of each stage, and the most columns that they are of."""
        if not self.length:
            return [(MOST_STEPS, self.n_features)]
        if not self.most_kept:
            return [(_MOST_REFIT_STEPS, self.most_vertices)]
        first, *others, last = plan_stages(self.length, self.n_features)
        more = [
            (stage.n_steps, min(self.n_features, stage.n_columns * self.most_kept // self.length))
            for stage in others
        ]
        return [
            (MOST_STEPS if self.mixes else first.n_steps, self.n_features),
            *more,
            (max(last.n_steps, _MOST_REFIT_STEPS), self.most_kept),
        ]


@dataclass(frozen=True)
class LassoPlan:
    """What a fit does once the classes are counted; shares are of what is left of the budget.

    `n_vertices`: vertices to draw; 0 where gradients keep columns, or all columns are taken.
    `calibration_share`: for the margins of vertices that are not refitted.
    `start_share`: for the slope of a public start, if vertices are drawn.
    `refit_calibration`, `refit_start`: parts of `refit_share`.
    `n_kept`: columns that gradients of all columns keep; 0 where they keep none.
    """

    n_vertices: int
    refit_share: float
    l1_radius: float
    calibration_share: float = 0.0
    refit_calibration: float = 0.0
    start_share: float = 0.0
    refit_start: float = 0.0
    n_kept: int = 0

    @property
    def vertex_share(self) -> float:
        """Share of the vertices."""
        return 1.0 - self.refit_share - self.calibration_share - self.start_share

    def stages(
        self, shape: Shape, n_columns: int, bent: float, *, mixed: bool
    ) -> tuple[Stage | None, ...]:
        """Return the runs of gradient descent, as many as `Shape.stages`; None for one left out.

        `n_columns`: of the first run. `bent`: bound on the curvature of the loss, over the noise.
        """
        n_stages = len(shape.stages)
        if self.n_vertices:
            kappa = shape.task.refit_kappa
            most = steps_that_pay(kappa * bent, _FEWEST_REFIT_STEPS, _MOST_REFIT_STEPS)
            return *[None] * (n_stages - 1), Stage(most, 1.0, kappa, n_columns)
        own = plan_stages(self.n_kept or None, n_columns, shape.task.kappa)
        if len(own) == 1:
            return own
        first, *others, last = own
        stages = first, *others, *[None] * (n_stages - len(own)), last
        return tuple(with_directions(stages)) if mixed else stages


def columns_to_be_found(rho: float, n_records: float, n_coordinates: int) -> int:
    """Return how many columns draws of this zCDP can distinguish from noise in typical data."""
    if math.isinf(rho):
        return MOST_COLUMNS
    count = _STRENGTH * math.sqrt(2.0 * rho) * n_records / math.log(2.0 * n_coordinates)
    return int(min(count, 2.0**31))


def row_limit(shape: Shape, n_vertices: int) -> float:
    """Return the squared length of rows, over B^2, up to which gradients find more than draws."""
    draws = n_vertices * math.log(2.0 * shape.n_coordinates) / 2.0
    return _LONGER_ROWS * draws / (shape.longer * shape.longer)


def plan_lasso(shape: Shape, rho: float, n_records: float, *, long_rows: bool) -> LassoPlan:
    """Choose how columns are found and refitted, with `rho` of zCDP left."""
    most, task = shape.most_vertices, shape.task
    start = CALIBRATION_SHARE if shape.from_prior else 0.0
    calibration = start or task.calibration
    share = _REFIT_SHARE
    findable = columns_to_be_found(
        rho * (1.0 - share - min(start, 0.5 * (1.0 - share))), n_records, shape.n_coordinates
    )
    draws = most and (long_rows or math.isinf(rho) or not shape.most_kept)
    if not draws:
        return LassoPlan(
            n_vertices=0,
            refit_share=1.0,
            l1_radius=0.0,
            refit_calibration=calibration,
            refit_start=start,
            n_kept=min(shape.most_kept, max(shape.length, findable)),
        )
    start = min(start, 0.5 * (1.0 - share))
    # With a prior, weights are always refitted on unit rows, as those of the prior are.
    if findable < FEWEST_REFITTED and not shape.from_prior:
        share = 0.0
        left = rho * (1.0 - calibration - start)
        findable = columns_to_be_found(left, n_records, shape.n_coordinates)
    n_vertices = most if shape.asked else max(1, min(most, findable))
    return LassoPlan(
        n_vertices,
        refit_share=share,
        # A vertex weighs radius * 2 / (t0 + ...) each.
        l1_radius=task.column_step / math.sqrt(n_vertices) * (n_vertices + LATE_START) / 2.0,
        calibration_share=0.0 if share else calibration,
        refit_calibration=min(0.5, calibration / share) if share else 0.0,
        start_share=start,
    )
