"""What the gradient phases of a fit share, once the records are counted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.energies import REACH_SHARE, scale_exponents_of, shrinking
from dplasso.gradient_descent.schedule import CONSTANT, Stage
from dplasso.matrix.geometry import Geometry
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, Scaling
from dplasso.phases.contract import Fit, OneRelease
from dplasso.phases.released import Released
from dplasso.phases.releases import Release
from dplasso.privacy.budget import Budget, Draws


@dataclass(frozen=True)
class Course:
    """What the gradient phases of a fit share, once the records are counted.

    `loss`: with class weights and offset.
    `weight`: what bounds the sum of the records' weights: the number of records, or less where
    classes weigh the same.
    `n_records`: the number of records.
    `share`: of the budget, of all these phases together.
    `stages`: the runs, the first on all columns or on those drawn; None for one that is left out.
    `calibration`, `start`: parts of `share` for calibration, and for the slope of a public model.
    `learnt`: records times mu up to which a start is taken whole, see `prior_slopes.part_taken`.
    `constant`, shape (K,): the margins that the first run starts from.
    """

    loss: Any
    weight: float
    n_records: float
    share: float
    stages: tuple[Stage | None, ...]
    calibration: float
    start: float = 0.0
    learnt: float = 0.0
    constant: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def runs(self) -> list[Stage]:
        """The stages that are run."""
        return [stage for stage in self.stages if stage is not None]


# ``choose(released, budget)``: None where no gradients are taken.
ChooseCourse = Callable[[Released, Budget], Course | None]


@dataclass(frozen=True)
class Descent:
    """The public parameters of the gradient phases of a fit, and what they choose by the count.

    `fit_intercept`: whether rows have a constant entry.
    `norm_bound`: what longer rows are scaled down to and all divided by; None makes unit rows.
    `significant`: whether only significant weights are kept in the end.
    `from_prior`: whether the fit starts from a public model.
    `n_columns`, `n_outputs`: D and K.
    `residual_bound`: bound on the length of a record's residuals.
    `geometry`: latent directions of public rows; None for none, and until they are known.
    """

    course: ChooseCourse
    fit_intercept: bool
    norm_bound: float | None
    significant: bool
    from_prior: bool
    n_columns: int
    n_outputs: int
    residual_bound: float
    geometry: Geometry | None = None

    def bounds(self, budget: Budget) -> dict[str, float]:
        """Return the bound on a record's residuals, and how far a gradient can move, in L2."""
        return bounds(budget, self.residual_bound)

    @property
    def constant(self) -> float:
        """The constant entry of every row; 0 for none."""
        return CONSTANT if self.fit_intercept else 0.0

    def rows(self, fit: Fit, course: Course, released: Released) -> Any:
        """Return the records in the columns drawn, or in all, with the loss of the course."""
        if "descent" not in fit.layouts:
            rows, drawn = fit.layouts.pop("gradients", None), released.drawn_columns
            # All columns of a store are in its own order already.
            kept = None if drawn is None or drawn.size == fit.n_features else drawn
            if rows is None or kept is not None:
                layout = fit.layouts.pop("vertices", fit.records)
                rows = layout.gradients(course.loss, fit.threads, kept, fit.prior)
            fit.layouts["descent"] = rows.with_loss(course.loss)
        return fit.layouts["descent"]

    def scaling(self, fit: Fit, released: Released) -> Scaling:
        """Return how the rows of the next gradients are scaled."""
        kept, energies = released.kept_columns, released.energies
        own = energies[kept] if energies.size and kept.size else energies
        norm_bound = self.norm_bound
        if norm_bound is not None:
            norm_bound *= shrinking(energies if fit.prior is not None else own)
        # From a prior, rows have their length in all columns, and the start its margins.
        around = NO_SCALE_EXPONENTS if fit.prior is None else scale_exponents_of(energies)
        length = released.length
        return Scaling(kept, self.constant, norm_bound, scale_exponents_of(own), around, length)


def bounds(budget: Budget, residual_bound: float) -> dict[str, float]:
    """Return what a statement says of gradients whose residuals have a bound on their length."""
    return {"residual_bound": residual_bound, "sensitivity": budget.moved(residual_bound)}


def length_share(course: Course, descent: Descent) -> float:
    """Return the part of the share for lengths: rows have the length of all columns of a prior."""
    some = descent.from_prior and any(one.n_columns < descent.n_columns for one in course.runs)
    return REACH_SHARE if some else 0.0


Applies = Callable[[Course, Released, Budget], bool]
Make = Callable[[Fit, Course, Released, float], Release | None]


def course_phase(
    descent: Descent,
    name: str,
    draws: float,
    part: Callable[[Course, Budget], float],
    make: Make,
    applies: Applies = lambda course, released, budget: True,  # noqa: ARG005
    **stated: Any,
) -> OneRelease:
    """Return a phase with a part of the course's share, which is left out where nothing applies."""

    def course_of(budget: Budget, released: Released) -> Course | None:
        course = descent.course(released, budget)
        return course if course is not None and applies(course, released, budget) else None

    def share(budget: Budget, released: Released) -> float:
        course = course_of(budget, released)
        return 0.0 if course is None else course.share * part(course, budget)

    def made(fit: Fit, released: Released, mu: float) -> Release | None:
        course = course_of(fit.budget, released)
        return None if course is None else make(fit, course, released, mu)

    return OneRelease(name, Draws(gaussian=draws), share, made, **stated)
