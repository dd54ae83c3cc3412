"""How far to trust a public start, and what was learnt from it: a slope for each, and constants.

The margin of a record is ``a.s + b``, with s the margins of the start and, in the end, of what was
learnt. a and b are found by noisy gradient descent, as in `dplasso.gradient_descent.calibration`,
but a slope may fall to 0: a start that does not fit the records is given up, and so is noise. The
slope of the start alone is too large for a fit that learns much of what the start says, and has to
unlearn what is wrong in it, so only a part of it is taken then; the rest comes back in the end. A
record counts ``1 / sqrt(|s|^2 + c^2)``, and beyond a length of s less still, so that steps are
stable however large margins are: its share of the gradient in (a, b / c) is no longer than its
residual.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.gradient_descent.calibration import Calibration, descend
from dplasso.gradient_descent.margin_counts import CONSTANT
from dplasso.gradient_descent.slopes import LONGEST, LinearModel
from dplasso.matrix.scaling import Scaling
from dplasso.privacy.randomness import RandomStream

# How far noise may move a slope.
_KAPPA = 0.5
# Never less of a start is taken.
_LEAST_PART = 0.125
# Intercepts of a start are clipped to it.
_USEFUL = 8.0
# A prior is used unchanged where records times mu are no more than this, and beyond as much
# less of it. Where few columns are corrected, what is wrong in the others stays. Latent directions
# learn faster.
LEARNT, LEARNT_OF_FEW, LEARNT_WITH_DIRECTIONS = 56.0, 10.0, 10.0
# In standard errors: one that cannot be told from 0 by far need not be 0.
_LEAST = 0.2


class Slopes(NamedTuple):
    """A slope for each part of the margins, and what is added to each of K."""

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
    """Find slopes and constants with a budget of `mu`, starting from `begin` and `shift`, or 0.

    `margins` answer `sums` as `Margins` do; the others are as of `calibrate_margins`.
    """
    # Whatever their number: the loss bends by no more than its curvature times |s|^2 + c^2, and
    # that times what a record counts is at most `LONGEST`.
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
    """Return slope and constants of the records' public start, shape (1 + K,).

    `scaling`: how rows are made unit rows.
    `known`: as of `find_slopes`.
    """
    # The slope is of the weights alone: rows may be longer or shorter than those that the prior was
    # made for, and its intercept means the same for both.
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
    """Return what part of a start a fit takes, by the budget that its slope is found with."""
    return max(_LEAST_PART, min(1.0, learnt / (n_records * mu)))


def weigh(
    records: Any,
    model: LinearModel,
    stream: RandomStream,
    start: NDArray[np.float64],
    part: float,
    **known: Any,
) -> Calibration:
    """Weigh a learnt model and the public start that it was learnt from.

    `start`: slope and constants as they were taken, which are `part` of those that were found.
    `known`: as of `find_slopes`.
    """
    # The margins are those of all of the start, or its slope could hardly come back from a part.
    whole = start / part
    margins = records.margins(model, records.prior.stretched(whole[0], whole[1:]))
    begin = (part, 1.0) if len(model.weights) else (part,)
    return with_prior_slopes(find_slopes(margins, records.loss, stream, begin, **known), whole)


def with_prior_slopes(found: Slopes, start: NDArray[np.float64]) -> Calibration:
    """Return what becomes of learnt margins and of a prior whose slope and constants were `start`.

    Where nothing was learnt, `found` has one slope.
    """
    own, learnt = (*found.slopes, 1.0)[:2]
    shift = own * start[1:] + found.shift
    return Calibration(learnt, tuple(shift.tolist()), own * float(start[0]))
