"""Calibrate probabilities after a fit (Platt scaling), by noisy gradient descent.

Noise stops training before the margins s reach the scale that fits the records. The fit therefore
replaces them by ``a s + b``, and learns a and b by noisy gradient descent from (1, 0). Each record
gets the weight ``1 / sqrt(|s|^2 + c^2)``. Its gradient in (a, b / c), which is ``q s`` and ``c q``
times that weight, is then at most as long as its residual q for any margin. So the sensitivity is
that of every gradient. With K outputs there is one slope, and one constant per output.

In multi-label fits each label has its own slope. The residual of a label is divided by the length
of its own margin, so the gradient is at most as long as the vector of residuals.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.margin_counts import CONSTANT
from dplasso.gradient_descent.noisy_descent import gradient_unit, noise_of
from dplasso.gradient_descent.schedule import CALIBRATION_STEPS, schedule_for
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


class Calibration(NamedTuple):
    """The slope of the margins, and the constant of each of K outputs.

    `prior_slope`: slope of the margins of the public prior, if the fit has one.
    `label_slopes`: with several labels, the slope of each divided by the largest, `slope`.
    """

    slope: float
    shift: tuple[float, ...]
    prior_slope: float = 1.0
    label_slopes: tuple[float, ...] = ()


def calibrate_margins(
    margins: Any,
    loss: Any,
    stream: RandomStream,
    *,
    n_records: float,
    mu: float,
    sensitivity: float,
    fit_intercept: bool,
    centre: NDArray[np.float64] | float = 0.0,
) -> Calibration:
    """Learn slope and constants with the budget `mu`; `margins` has the method `sums`.

    `centre`: released constants that the margins do not include. The slope scales margins about
    them, because slope and constant are nearly collinear about 0 if one class is rare.
    `n_records`: N, public or counted privately.
    `sensitivity`: how far a summed gradient can move between neighbours, in L2.
    """
    found, _ = descend(
        margins,
        loss,
        stream,
        np.concatenate([np.ones(loss.n_labels), np.zeros(loss.n_outputs) + centre / CONSTANT]),
        n_records=n_records,
        mu=mu,
        sensitivity=sensitivity,
        fixed=None if fit_intercept else slice(loss.n_labels, None),
        kappa=_KAPPA if loss.n_labels == 1 else _LABEL_KAPPA,
        bend=_BEND * loss.curvature,
    )
    slopes = np.maximum(_SMALLEST_SLOPE, found[: loss.n_labels])
    shift = tuple((CONSTANT * found[loss.n_labels :] - slopes * centre).tolist())
    each = () if loss.n_labels == 1 else tuple((slopes / slopes.max()).tolist())
    return Calibration(float(slopes.max()), shift, label_slopes=each)


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
    """Find the parameters of some margins by noisy gradient descent from `start`.

    `fixed`: parameters that are not changed.
    `kappa`: bound on how far noise may move a parameter.
    `bend`: upper bound on the curvature of the weighted loss.

    Returns: the parameters, and the standard error of each due to the noise.
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
    told = np.maximum(0.0, squares - error * error)
    return start + moved * told / np.where(squares > 0.0, squares, 1.0), error
