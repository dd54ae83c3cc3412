"""Weights of a public prior and of the learnt model: one slope each, and constants.

The margin of a record is ``a.s + b``, with s the margins of the prior and, at the end, of the
learnt model. Noisy gradient descent learns a and b as in `dplasso.gradient_descent.calibration`. A
slope may fall to 0, which discards a prior that does not fit the records. The full slope of the
prior is too large for a fit that learns much by itself and has to unlearn its errors. Such a fit
starts from a part of it, and the final slopes restore the rest. A record has the weight
``1 / sqrt(|s|^2 + c^2)``, and less for long s, so that steps are stable for any margins. Its
gradient in (a, b / c) is therefore at most as long as its residual.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.calibration import Calibration, descend
from dplasso.gradient_descent.margin_counts import CONSTANT
from dplasso.gradient_descent.slopes import LONGEST, LinearModel
from dplasso.matrix.scaling import Scaling
from dplasso.privacy.randomness import RandomStream

# Standard deviation that the noise may give a slope.
_KAPPA = 0.5
# A fit starts from at least this part of the prior.
_LEAST_PART = 0.125
# Intercepts of the prior are clipped to this bound.
_USEFUL = 8.0
# A fit starts from the whole prior if N mu is at most this number, and from a part in inverse
# proportion to N mu above it. The number differs because a short list leaves errors of the prior in
# other columns uncorrected, and latent directions learn faster.
LEARNT, LEARNT_OF_FEW, LEARNT_WITH_DIRECTIONS = 56.0, 10.0, 10.0
# Smallest slope, in standard errors.
_LEAST = 0.2


class Slopes(NamedTuple):
    """A slope for each part of the margins, and a constant for each of K outputs."""

    slopes: tuple[float, ...]
    shift: tuple[float, ...]


def find_slopes(
    margins: Any,
    loss: Any,
    stream: RandomStream,
    begin: tuple[float, ...],
    *,
    n_records: float,
    mu: float,
    sensitivity: float,
    fit_intercept: bool,
    shift: NDArray[np.float64] | None = None,
) -> Slopes:
    """Learn slopes and constants with the budget `mu`, from `begin` and `shift` (default 0).

    `margins` has the method `sums`; other parameters are those of `calibrate_margins`.
    """
    # For any number of slopes the curvature is at most that of the loss times |s|^2 + c^2, and the
    # weight of a record limits this product to `LONGEST`.
    constants = np.zeros(loss.n_outputs) if shift is None else shift / CONSTANT
    n_parts = len(begin)
    start = np.concatenate([begin, constants])
    found, error = descend(
        margins,
        loss,
        stream,
        start,
        n_records=n_records,
        mu=mu,
        sensitivity=sensitivity,
        fixed=None if fit_intercept else slice(n_parts, None),
        kappa=_KAPPA,
        bend=LONGEST * loss.curvature,
    )
    slopes = np.maximum(_LEAST * error, found[:n_parts])
    return Slopes(tuple(slopes.tolist()), tuple((CONSTANT * found[n_parts:]).tolist()))


def find_start(
    records: Any, scaling: Scaling, stream: RandomStream, **known: Any
) -> NDArray[np.float64]:
    """Return the slope and constants of the public prior, shape (1 + K,).

    `scaling`: how rows are scaled to unit length.
    `known`: keyword arguments of `find_slopes`.
    """
    # Only weights get the slope. Rows may be longer or shorter than those that the prior was made
    # for, which does not change the meaning of its intercept.
    prior = records.prior
    loud = prior.useful_slope
    given = loud * prior.intercept
    shift = np.clip(given, -_USEFUL, _USEFUL)
    n_outputs = records.loss.n_outputs
    nothing = LinearModel(np.zeros((0, n_outputs)), np.zeros(n_outputs), scaling)
    margins = records.margins(nothing, prior.stretched(loud, -given))
    found = find_slopes(margins, records.loss, stream, (1.0,), **known, shift=shift)
    slope = loud * found.slopes[0]
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        constants = np.clip(found.shift - slope * prior.intercept, -largest, largest)
    return np.array([slope, *constants])


def part_taken(n_records: float, mu: float, learnt: float) -> float:
    """Return the part of the prior that a fit starts from; `mu`: budget of its slope."""
    return max(_LEAST_PART, min(1.0, learnt / (n_records * mu)))


def weigh(
    records: Any,
    model: LinearModel,
    stream: RandomStream,
    start: NDArray[np.float64],
    part: float,
    **known: Any,
) -> Calibration:
    """Learn the final slopes of the learnt model and of the prior that it started from.

    `start`: slope and constants that the fit started from, `part` times those of `find_start`.
    `known`: keyword arguments of `find_slopes`.
    """
    # Margins of the whole prior, because its slope could not recover from a small part.
    whole = start / part
    margins = records.margins(model, records.prior.stretched(whole[0], whole[1:]))
    begin = (part, 1.0) if len(model.weights) else (part,)
    return with_prior_slopes(find_slopes(margins, records.loss, stream, begin, **known), whole)


def with_prior_slopes(found: Slopes, start: NDArray[np.float64]) -> Calibration:
    """Combine final slopes with `start`, the slope and constants of the prior.

    `found` has one slope if the fit learnt no weights.
    """
    own, learnt = (*found.slopes, 1.0)[:2]
    shift = own * start[1:] + found.shift
    return Calibration(learnt, tuple(shift.tolist()), own * float(start[0]))
