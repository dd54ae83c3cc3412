"""Margins stretched and shifted after a fit, so that probabilities mean what they say.

Noise ends a run before its margins are as large as the records would have them, so they are
replaced by ``a s + b`` (Platt's scaling), a and b found by noisy gradient descent from (1, 0). A
record counts ``1 / sqrt(|s|^2 + c^2)``: then its share of the gradient in (a, b / c), ``q s`` and
``c q`` times that weight, is no longer than its residual q, however large its margin s. The
sensitivity is the one of every gradient. With K outputs there is one slope and a constant for each.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dplasso.gradient_descent.schedule import MOMENTUM, Schedule, schedule_for
from dplasso.gradient_descent.solve import gradient_unit
from dplasso.losses.contract import gradient, residual_vector
from dplasso.privacy.gaussian_noise import noise_table, noisy
from dplasso.privacy.mechanisms.gaussian import CALIBRATION_STEPS
from dplasso.privacy.randomness import RandomStream, word_buffers
from dplasso.runtime.threads import Threads, cut

# Weight of the constants beside the slope, c.
_CONSTANT = 0.5
# How far noise may move the slope.
_KAPPA = 1.0
# The weighted loss bends by at most c / 4 along a constant, and by at most .224 / a along the slope
# (the largest of x sigma'(x)): in all by less than twice the bend of the loss.
_BEND = 2.0
# The slope never turns the order of the records round.
_SMALLEST_SLOPE = 0.2
# The closed form of the standard error is an upper bound; where the loss bends it is about twice
# too large.
_ERROR = 0.5
# Of the weights, so that rounding makes no share longer than the residual.
_SLACK = 1.0 - 2.0**-40


class Calibration(NamedTuple):
    """A slope for margins and what is added to each.

    `slope`: a.
    `shift`: b, a number for each of K outputs.
    """

    slope: float
    shift: tuple[float, ...]


UNCHANGED = Calibration(1.0, (0.0,))


def calibrate_margins(
    margins: NDArray[np.float64],
    loss: Any,
    labels: NDArray[Any],
    stream: RandomStream,
    *,
    n_records: float,
    mu: float,
    sensitivity: float,
    fit_intercept: bool,
    threads: Threads,
) -> Calibration:
    """Find slope and constants.

    `margins`, shape (N, K): margins of a released model, with what the loss adds to each.
    `loss`, `labels`: of the fit.
    `stream`: keys the noise.
    `n_records`: N, given as public or counted privately.
    `mu`: Gaussian differential privacy to spend.
    `sensitivity`: how far a summed gradient can move between neighbours, in L2.
    `fit_intercept`: whether there are constants besides the slope.
    `threads`: of the run; the bits do not depend on them.
    """
    n_outputs = loss.n_outputs
    schedule = schedule_for(
        n_records,
        mu,
        sensitivity,
        CALIBRATION_STEPS,
        _KAPPA,
        MOMENTUM,
        _BEND * loss.curvature,
    )
    unit = gradient_unit(loss.residual_bound, schedule.noise_scale)
    edges = cut(0, labels.size, threads.count)
    offset = offset_of(loss)

    def summed(parameters: NDArray[np.float64]) -> NDArray[np.int64]:
        def part(t: int) -> NDArray[np.int64]:
            totals = np.zeros(1 + n_outputs, dtype=np.int64)
            given = loss, labels, margins, parameters, offset, unit, edges[t], edges[t + 1]
            (slope_gradient if n_outputs == 1 else slope_gradient_vectors)(*given, totals)
            return totals

        totals: NDArray[np.int64] = np.sum(threads.run(part), axis=0)
        return totals

    start = np.zeros(1 + n_outputs)
    start[0] = 1.0
    table = noise_table(schedule.noise_scale * unit)
    buffer = word_buffers(stream, 1)[0]
    parameters, velocity, total = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(1, schedule.n_steps + 1):
        sums = summed(parameters)
        noisy(table, buffer, sums)
        if not fit_intercept:
            sums[1:] = 0
        velocity = schedule.momentum * velocity + sums / unit
        parameters = parameters - schedule.step_size * velocity
        if step >= schedule.first_averaged:
            total += parameters
    average = total / (schedule.n_steps - schedule.first_averaged + 1)
    found = start + _shrunken(average - start, schedule)
    shift = tuple((_CONSTANT * found[1:]).tolist())
    return Calibration(max(_SMALLEST_SLOPE, float(found[0])), shift)


def _shrunken(moved: NDArray[np.float64], schedule: Schedule) -> NDArray[np.float64]:
    """Take off what noise alone would have moved: what cannot be told from it stays as it was."""
    error, squares = _ERROR * schedule.standard_error, moved * moved
    told: NDArray[np.float64] = np.maximum(0.0, squares - error * error)
    return moved * told / np.where(squares > 0.0, squares, 1.0)


def offset_of(loss: Any) -> float:
    """Return what a loss adds to every margin."""
    return float(getattr(getattr(loss, "loss", loss), "offset", 0.0))


@njit(cache=True, nogil=True)
def slope_gradient(loss, labels, margins, parameters, offset, unit, first, last, totals):
    """Add up the rows' shares of the gradient in slope and constant, in units, exactly.

    `loss`: the loss.
    `labels`, shape (N,): the targets.
    `margins`, shape (N, 1): margins of the fit.
    `parameters`, shape (2,): a and b / c.
    `offset`: what the loss adds to a margin, and `margins` hold already.
    `unit`: fixed-point units per unit of gradient.
    `first`, `last`: rows.
    `totals`, shape (2,): added to.
    """
    for i in range(first, last):
        s = margins[i, 0]
        margin = parameters[0] * s + _CONSTANT * parameters[1]
        q = gradient(loss, margin - offset, np.float64(labels[i]))
        share = q * (_SLACK / np.sqrt(s * s + _CONSTANT * _CONSTANT)) * unit
        totals[0] += np.int64(share * s)
        totals[1] += np.int64(share * _CONSTANT)


@njit(cache=True, nogil=True)
def slope_gradient_vectors(loss, labels, margins, parameters, offset, unit, first, last, totals):
    """Add up shares as in `slope_gradient`, of K margins with one slope.

    By Cauchy's inequality ``(q.s)^2 + c^2 |q|^2 <= |q|^2 (|s|^2 + c^2)``.
    """
    n_outputs = margins.shape[1]
    stretched, residuals = np.empty(n_outputs), np.empty(n_outputs)
    for i in range(first, last):
        squares = _CONSTANT * _CONSTANT
        for k in range(n_outputs):
            s = margins[i, k]
            squares += s * s
            stretched[k] = parameters[0] * s + _CONSTANT * parameters[1 + k] - offset
        residual_vector(loss, stretched, labels[i], residuals)
        weight = _SLACK / np.sqrt(squares) * unit
        along = 0.0
        for k in range(n_outputs):
            along += residuals[k] * margins[i, k]
            totals[1 + k] += np.int64(residuals[k] * _CONSTANT * weight)
        totals[0] += np.int64(along * weight)
