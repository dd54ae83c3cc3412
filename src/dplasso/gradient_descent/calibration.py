"""Margins stretched and shifted after a fit, so that probabilities mean what they say.

Noise ends a run before its margins are as large as the records would have them, so they are
replaced by ``a s + b`` (Platt's scaling), a and b found by noisy gradient descent from (1, 0). A
record counts ``1 / sqrt(|s|^2 + c^2)``: then its share of the gradient in (a, b / c), ``q s`` and
``c q`` times that weight, is no longer than its residual q, however large its margin s. The
sensitivity is the one of every gradient. With K outputs there is one slope and a constant for each.

Many labels have a slope each: every label's residual is divided by the length of its own margin, so
that together they are no longer than all residuals.
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

# How far noise may move the slope, and each of many.
_KAPPA, _LABEL_KAPPA = 1.0, 0.5
# The weighted loss bends by at most c / 4 along a constant, and by at most .224 / a along the slope
# (the largest of x sigma'(x)): in all by less than twice the bend of the loss.
_BEND = 2.0
# The slope never turns the order of the records round.
_SMALLEST_SLOPE = 0.2
# The closed form of the standard error is an upper bound; where the loss bends it is about twice
# too large.
_ERROR = 0.5


class Calibration(NamedTuple):
    """A slope for margins, and what is added to each of K.

    `prior_slope`: that of the margins of a public start, where a fit has one.
    `label_slopes`: where each of many labels has a slope, what part of the largest, `slope`, it is.
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
    """Find slope and constants with a budget of `mu`; `margins` answer `sums` as `Margins` do.

    `centre`: released constants that the margins lack; the slope turns them around these. Around 0,
    slope and constant would be hard to tell apart where a class is rare.
    `n_records`: N, given as public or counted privately.
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

    `fixed`: parameters that stay as they are.
    `kappa`: how far noise may move one.
    `bend`: how much the weighted loss bends at most.

    Returns: the parameters, and the standard error of each by the noise alone.
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
    # What noise alone would have moved is taken off: what cannot be told from it stays as it was.
    error, squares = _ERROR * schedule.standard_error, moved * moved
    told = np.maximum(0.0, squares - error * error)
    return start + moved * told / np.where(squares > 0.0, squares, 1.0), error
