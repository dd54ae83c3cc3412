"""How much of the latent directions of public rows a fit uses: two small releases decide.

The number of directions follows from N mu. Whether they help depends on the labels, so the fit
releases the gradient at zero weights in the leading directions. It also counts the records along
them, because public rows of another kind have other directions. The noisier both are, the more
count expected values. All constants were chosen on public data (docs/public-rows.md).
"""

import math
from functools import partial

import numpy as np

from dplasso.matrix.geometry import ALONG, FEWEST_DIRECTIONS, LEADING, Geometry
from dplasso.matrix.scaling import Mix, Scaling
from dplasso.phases.course import Course, Descent, bounds, course_phase
from dplasso.phases.phase import Fit, Phase, deviation_of
from dplasso.phases.released import Released
from dplasso.phases.releases import NO_COLUMNS, Mixed
from dplasso.privacy.budget import Budget

# Shares of the budget for the gradient and, at most, for the count of records along the directions.
# A smaller count share is enough if the overlap has this standard deviation.
_GRADIENT_SHARE, _COUNT_SHARE, _PRECISE = 0.03, 0.05, 0.1
# The expected overlap is 1 with this standard deviation. Up to `_NO_OVERLAP` public rows are of
# another kind, from `_OVERLAP` on of the same; `_LEAST_AROUND` bounds the relative deviation of the
# expected relevance from below.
_OVERLAP_AROUND, _NO_OVERLAP, _OVERLAP, _LEAST_AROUND = 0.5, 0.35, 0.65, 0.2
# A measured relevance counts only as far as an overlap of so many standard deviations more allows.
_DOUBT = 1.5
# The expected relevance, its standard deviation, and the largest relevance that is used.
_EXPECTED, _AROUND, _LARGEST = 0.02, 0.02, 0.1
# A direction is learnt if its eigenvalue times N mu is at least this.
_LEARNT = 1.6
# The squared length of latent entries: this times the relevance, over the last eigenvalue times
# N mu, up to the largest; below the least, directions are left out.
_STRENGTH, _LARGEST_PART, _LEAST_PART = 200.0, 0.94, 0.05


def signal_to_noise(course: Course, budget: Budget) -> float:
    """Return N mu: the largest gradient of all records, in standard deviations of the noise."""
    largest = course.weight * float(course.loss.residual_bound)
    return largest * budget.mu_of(course.share) / budget.moved_by(course.loss)


def part_of(geometry: Geometry, snr: float, relevance: float) -> Mix:
    """Return how much of which directions a fit uses; of none if that is almost nothing."""
    most = geometry.n_directions
    counts = range(min(FEWEST_DIRECTIONS, most), most + 1)
    # Directions that are learnt before noise ends training.
    learnt = [count for count in counts if snr * geometry.eigenvalue(count) >= _LEARNT]
    count = max(learnt, default=counts[0])
    part = _STRENGTH * relevance / max(snr * geometry.eigenvalue(count), 1e-30)
    return Mix(count, min(_LARGEST_PART, part)) if part >= _LEAST_PART else Mix(0, 0.0)


def _count_share(geometry: Geometry, snr: float, budget: Budget) -> float:
    """Return the share of the budget for the count of records along the directions."""
    enough = 1.0 / (_PRECISE * geometry.along * snr) ** 2
    return budget.share_of_features(min(_COUNT_SHARE, enough))


def mix_share(descent: Descent, course: Course, budget: Budget) -> float:
    """Return the share that deciding on the directions has of that of all gradient phases."""
    assert descent.geometry is not None, "directions are used where they are known"
    snr = signal_to_noise(course, budget)
    return _GRADIENT_SHARE + _count_share(descent.geometry, snr, budget)


def _certainty(around: float, noise: float) -> float:
    """Return the weight of a noisy number beside an expected one."""
    return around**2 / (around**2 + noise**2)


def _alike(overlap: float) -> float:
    """Return how far an overlap shows records that are like the public rows, 0 to 1."""
    return min(1.0, max(0.0, (overlap - _NO_OVERLAP) / (_OVERLAP - _NO_OVERLAP)))


def mix(descent: Descent) -> Phase:
    """Release how much the labels have to do with the directions, and decide on their use."""

    def part(course: Course, released: Released, budget: Budget) -> float | None:  # noqa: ARG001
        geometry = descent.geometry
        if geometry is None or math.isinf(snr := signal_to_noise(course, budget)):
            return None
        used = part_of(geometry, snr, _LARGEST).n_directions > 0
        return mix_share(descent, course, budget) if used else None

    def make(fit: Fit, course: Course, released: Released, mu: float) -> Mixed:
        geometry, snr = descent.geometry, signal_to_noise(course, fit.budget)
        assert geometry is not None, "directions are used where they are known"
        leading = min(LEADING, geometry.n_directions)
        rows = descent.rows(fit, course, released)
        # Latent rows alone, shortened to the length that most of them have.
        scaling = Scaling(NO_COLUMNS, 0.0, 1.0)
        latent = rows.mixed(scaling, geometry, Mix(leading, 1.0))
        bound, n_outputs = course.loss.residual_bound, course.loss.n_outputs
        counting = _count_share(geometry, snr, fit.budget) / mix_share(descent, course, fit.budget)
        usual, moved = geometry.along * course.n_records, fit.budget.moved_by_features(1.0)
        own = mu * math.sqrt(counting)
        count = fit.noisy(partial(latent.count_along, ALONG), moved, own, course.n_records)
        overlap, noise = float(count[0]) / usual, deviation_of(moved, own) / usual
        mu *= math.sqrt(1.0 - counting)
        moved, zeros = fit.budget.moved_by(course.loss), np.zeros(leading * n_outputs)
        gradient = fit.noisy(
            lambda unit: latent.part(scaling, unit).sums(zeros), moved, mu, course.n_records, bound
        )
        squares = float(gradient @ gradient) - gradient.size * deviation_of(moved, mu) ** 2
        measured = squares / (course.weight * bound) ** 2
        noise_measured = math.sqrt(2.0 * leading * n_outputs) / (snr * snr * _GRADIENT_SHARE)
        # The part of the usual relevance that is expected at this overlap.
        certain = _certainty(_OVERLAP_AROUND, noise)
        likely = certain * overlap + (1.0 - certain)
        usual = _alike(likely)
        certain = _certainty(_AROUND * max(usual, _LEAST_AROUND), noise_measured)
        relevance = certain * measured + (1.0 - certain) * _EXPECTED * usual
        relevance = _alike(overlap + _DOUBT * noise) * min(_LARGEST, max(0.0, relevance))
        return Mixed(overlap, relevance, *part_of(geometry, snr, relevance))

    return course_phase(
        descent,
        "public rows",
        1.0 + LEADING * float(descent.loss.n_outputs),
        part,
        make,
        words="a noisy count of records like the public rows, and a noisy gradient that says how "
        "much the latent directions of public rows matter",
        numbers=bounds(descent.loss),
    )
