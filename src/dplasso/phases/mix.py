"""How much of the latent directions of public rows a fit uses: one small release decides.

The noise ends training before a direction is learnt whose eigenvalue is small beside 1 / (N mu). So
the number of directions follows from N mu. Whether they help depends on the labels: on the part of
the gradient at zero weights that lies in the leading directions. The fit releases this gradient.
The noisier it is, the less it counts. A fit of so many records that directions do not matter
releases nothing here. All constants were chosen on public data (docs/public-rows.md).
"""

import math

import numpy as np

from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.matrix.geometry import FEWEST_DIRECTIONS, Geometry
from dplasso.matrix.scaling import Mix, Scaling
from dplasso.phases.contract import Fit, OneRelease
from dplasso.phases.course import Course, Descent, course_phase
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Mixed
from dplasso.privacy.budget import Budget
from dplasso.privacy.parameters import share_bits

# Share of the budget, and the directions whose gradient is released.
MIX_SHARE = 0.03
_LEADING = 30
# The relevance that is expected, and the standard deviation around it; the largest that is used.
_EXPECTED, _AROUND, _LARGEST = 0.02, 0.02, 0.1
# A direction is learnt if its eigenvalue times N mu is at least this.
_LEARNT = 1.6
# The squared length of latent entries: this times the relevance, over the last eigenvalue times
# N mu, up to the largest; below the least, directions are left out.
_STRENGTH, _LARGEST_PART, _LEAST_PART = 200.0, 0.94, 0.05


def signal_to_noise(course: Course, budget: Budget) -> float:
    """Return N mu: in how many standard deviations of the noise all records pull together."""
    return course.weight * budget.mu_of(course.share) / budget.moved(1.0)


def directions_of(geometry: Geometry, snr: float) -> int:
    """Return how many directions are learnt before noise ends training."""
    most = geometry.n_directions
    counts = range(min(FEWEST_DIRECTIONS, most), most + 1)
    learnt = [one for one in counts if snr * geometry.eigenvalue(one) >= _LEARNT]
    return max(learnt, default=counts[0])


def part_of(geometry: Geometry, snr: float, relevance: float) -> Mix:
    """Return how much of which directions a fit uses; of none if that is almost nothing."""
    count = directions_of(geometry, snr)
    part = _STRENGTH * relevance / max(snr * geometry.eigenvalue(count), 1e-30)
    return Mix(count, min(_LARGEST_PART, part)) if part >= _LEAST_PART else Mix(0, 0.0)


def _noise_of_relevance(n_leading: int, n_outputs: int, snr: float) -> float:
    """Return the standard deviation of a relevance by the noise."""
    return math.sqrt(2.0 * n_leading * n_outputs) / (snr * snr * MIX_SHARE)


def mix(descent: Descent) -> OneRelease:
    """Release how much the labels have to do with the directions, and decide on their use."""

    def applies(course: Course, released: Released, budget: Budget) -> bool:  # noqa: ARG001
        geometry = descent.geometry
        if geometry is None or math.isinf(snr := signal_to_noise(course, budget)):
            return False
        return part_of(geometry, snr, _LARGEST).n_directions > 0

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Mixed:
        geometry, snr = descent.geometry, signal_to_noise(course, fit.budget)
        assert geometry is not None, "directions are used where they are known"
        leading = min(_LEADING, geometry.n_directions)
        rows = descent.rows(fit, course, released)
        # Latent rows alone, shortened to the length that most of them have.
        scaling = Scaling(NO_COLUMNS, 0.0, 1.0)
        latent = rows.mixed(scaling, geometry, Mix(leading, 1.0))
        bound, n_outputs = course.loss.residual_bound, course.loss.n_outputs
        deviation = fit.deviation(bound, mu)
        unit = gradient_unit(bound, deviation, share_bits(course.n_records))
        totals = latent.part(scaling, unit).whole(np.zeros(leading * n_outputs))
        gradient = fit.release(totals, bound, mu, unit) / unit
        squares = float(gradient @ gradient) - totals.size * deviation**2
        found = squares / (course.weight * bound) ** 2
        certain = _AROUND**2 / (_AROUND**2 + _noise_of_relevance(leading, n_outputs, snr) ** 2)
        relevance = certain * found + (1.0 - certain) * _EXPECTED
        relevance = min(_LARGEST, max(0.0, relevance))
        return Mixed(relevance, *part_of(geometry, snr, relevance))

    return course_phase(
        descent,
        "public rows",
        _LEADING * float(descent.n_outputs),
        lambda *_: MIX_SHARE,
        make,
        applies,
        said="a noisy gradient that says how much the latent directions of public rows matter",
        stated=descent.bounds,
    )
