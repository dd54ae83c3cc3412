"""Slopes and constants of margins after a fit (Platt scaling), by noisy gradient descent.

Noise stops training before the margins s reach the scale that fits the records. The fit therefore
replaces them by ``a s + b``, and learns a and b by noisy gradient descent from (1, 0). Each record
gets the weight ``1 / sqrt(|s|^2 + c^2)``. Its gradient in (a, b / c) is then at most as long as its
residual, so the sensitivity is that of every gradient. With K outputs there is one slope and one
constant per output. In multi-label fits each label has its own slope, and its residual is divided
by the length of its own margin.

With a public prior the margin is ``a.s + b``, with s the margins of the prior and of the learnt
model. A slope may fall to 0, which discards a prior that does not fit the records. A fit that
learns much by itself starts from a part of the prior, and the final slopes restore the rest.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.margins import CONSTANT, LONGEST, LinearModel
from dplasso.gradient_descent.noisy_descent import gradient_unit, noise_of
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS, schedule_for
from dplasso.matrix.scaling import Scaling
from dplasso.privacy.parameters import share_bits
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.privacy.release import release

# Kappa, the bound on how far noise moves a parameter: one slope, and one slope per label.
_KAPPA, _LABEL_KAPPA = 1.0, 0.5
# The curvature of the weighted loss is at most c / 4 along a constant and 0.224 / a along the slope
# (the maximum of x sigma'(x)), which is below twice the curvature of the loss.
_BEND = 2.0
# A positive slope keeps the order of the records.
_SMALLEST_SLOPE = 0.2
# The closed form of the standard error is an upper bound, about twice too large for a curved loss.
_ERROR = 0.5
# The same of a slope where there is a prior.
_PRIOR_KAPPA = 0.5
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


# The fields of a `Calibrated` release.
Calibration = tuple[float, NDArray[np.float64], float, NDArray[np.float64]]


def calibrate_margins(
    margins: Any,
    loss: Any,
    stream: RandomStream,
    *,
    fit_intercept: bool,
    centre: NDArray[np.float64] | float = 0.0,
    **budget: float,
) -> Calibration:
    """Learn slope and constants; `margins` has the method `sums`, `budget` is as in `descend`.

    `centre`: released constants that the margins do not include. The slope scales margins about
    them, because slope and constant are nearly collinear about 0 if one class is rare.
    """
    n_labels = loss.n_labels
    parameters, _ = descend(
        margins,
        loss,
        stream,
        np.concatenate([np.ones(n_labels), np.zeros(loss.n_outputs) + centre / CONSTANT]),
        fixed=None if fit_intercept else slice(n_labels, None),
        kappa=_KAPPA if n_labels == 1 else _LABEL_KAPPA,
        bend=_BEND * loss.curvature,
        **budget,
    )
    slopes = np.maximum(_SMALLEST_SLOPE, parameters[:n_labels])
    shift = CONSTANT * parameters[n_labels:] - slopes * centre
    each = slopes / slopes.max() if n_labels > 1 else np.zeros(0)
    return float(slopes.max()), shift, 1.0, each


def descend(
    margins: Any,
    loss: Any,
    stream: RandomStream,
    start: NDArray[np.float64],
    *,
    n_records: float,
    mu: float,
    sensitivity: float,
    fixed: slice | None,
    kappa: float,
    bend: float,
) -> tuple[NDArray[np.float64], float]:
    """Find parameters of margins by noisy gradient descent; return them and their standard error.

    `fixed`: parameters that do not change. `kappa`: bound on how far noise may move a parameter.
    `bend`: upper bound on the curvature of the weighted loss.
    """
    schedule = schedule_for(n_records, mu, sensitivity, CALIBRATION_STEPS, kappa, bend)
    bits = share_bits(n_records)
    unit = gradient_unit(loss.residual_bound, float(schedule.noise_scales.max()), bits)
    noise = noise_of(schedule, unit, word_buffers(stream, 1)[0])
    parameters, velocity, total = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(1, schedule.n_steps + 1):
        sums = release(margins.sums(parameters, unit), sensitivity * unit, noise[step - 1])
        if fixed is not None:
            sums[fixed] = 0
        velocity = schedule.momentum * velocity + sums / unit
        parameters = parameters - schedule.step_size * velocity
        if step >= schedule.first_averaged:
            total += parameters
    average = total / (schedule.n_steps - schedule.first_averaged + 1)
    moved = average - start
    # Shrink each move by its noise variance: a move that noise explains is undone.
    error, squares = _ERROR * schedule.standard_error, moved * moved
    signal = np.maximum(0.0, squares - error * error)
    return start + moved * signal / np.where(squares > 0.0, squares, 1.0), error


def find_slopes(
    margins: Any,
    loss: Any,
    stream: RandomStream,
    begin: tuple[float, ...],
    shift: NDArray[np.float64],
    *,
    fit_intercept: bool,
    **budget: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Learn a slope for each part of the margins, and constants, from `begin` and `shift`."""
    # For any number of slopes the curvature is at most that of the loss times |s|^2 + c^2, and the
    # weight of a record limits this product to `LONGEST`.
    n_parts = len(begin)
    parameters, error = descend(
        margins,
        loss,
        stream,
        np.concatenate([begin, shift / CONSTANT]),
        fixed=None if fit_intercept else slice(n_parts, None),
        kappa=_PRIOR_KAPPA,
        bend=LONGEST * loss.curvature,
        **budget,
    )
    return np.maximum(_LEAST * error, parameters[:n_parts]), CONSTANT * parameters[n_parts:]


def find_start(
    records: Any, scaling: Scaling, stream: RandomStream, **options: Any
) -> NDArray[np.float64]:
    """Return the slope and constants of the public prior, shape (1 + K,)."""
    # Only weights get the slope. Rows may be longer or shorter than those that the prior was made
    # for, which does not change the meaning of its intercept.
    prior = records.prior
    loud = prior.useful_slope
    intercept = loud * prior.intercept
    shift = np.clip(intercept, -_USEFUL, _USEFUL)
    n_outputs = records.loss.n_outputs
    nothing = LinearModel(np.zeros((0, n_outputs)), np.zeros(n_outputs), scaling)
    margins = records.margins(nothing, prior.stretched(loud, -intercept))
    slopes, shift = find_slopes(margins, records.loss, stream, (1.0,), shift, **options)
    slope = loud * slopes[0]
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        constants = np.clip(shift - slope * prior.intercept, -largest, largest)
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
    **options: Any,
) -> Calibration:
    """Learn the final slopes of the learnt model and of the prior that it started from.

    `start`: slope and constants that the fit started from, `part` times those of `find_start`.
    """
    # Margins of the whole prior, because its slope could not recover from a small part.
    whole = start / part
    margins = records.margins(model, records.prior.stretched(whole[0], whole[1:]))
    begin, none = (part, 1.0) if len(model.weights) else (part,), np.zeros(records.loss.n_outputs)
    slopes, shift = find_slopes(margins, records.loss, stream, begin, none, **options)
    own, learnt = [*slopes.tolist(), 1.0][:2]
    return learnt, own * whole[1:] + shift, own * float(whole[0]), np.zeros(0)
