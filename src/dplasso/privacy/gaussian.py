"""What Gaussian noise costs: the exact trade-off of epsilon and delta.

Noise of standard deviation sigma on what one record moves by at most ``mu sigma`` (in the Euclidean
norm) is mu-Gaussian differentially private, and so are adaptive steps whose mu_i have
``mu^2 = sum mu_i^2``. Its curve (arXiv 1805.06530, theorem 8) is exact:

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

It is mu^2/2-zCDP. All results lie on the private side of the exact ones: delta and epsilon are
never too small, mu is never too large.
"""

import math
from functools import lru_cache

from dplasso.errors import ParameterError
from dplasso.privacy.accounting import bracket

# Standard deviations beyond which no mass is drawn by `dplasso.privacy.gaussian_noise`.
TAIL = 16
# Of its scales, in units: below, the noise is too coarse for its error to be small; above, words
# are too short.
SMALLEST_SCALE, LARGEST_SCALE = 2.0**24, 2.0**46
# Relative width at which a bisection stops.
_TOLERANCE = 1e-13
# Relative error of the special functions used, with room to spare.
_ERROR = 2.0**-43
# Below this the terms lose digits; no delta is reported or met that is smaller.
_SMALLEST = 1e-300


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of mu-Gaussian differential privacy at an epsilon of at least 0.

    In (0, 1], above the exact value by some 1e-13 of the curve's first term; at least 1e-300.
    """
    from scipy.special import erfcx

    # e^epsilon Phi(-v) = phi(u) Phi(-v) / phi(v), and erfcx is that ratio without underflow.
    half, ratio = mu / 2.0, epsilon / mu
    u, v = ratio - half, ratio + half
    density = math.exp(-min(u * u, 3000.0) / 2.0)
    second = 0.5 * density * float(erfcx(v / math.sqrt(2.0)))
    tail = 0.5 * density * float(erfcx(abs(u) / math.sqrt(2.0)))
    first = tail if u >= 0 else 1.0 - tail
    if first < _SMALLEST:
        return _SMALLEST
    # The rounding of u and v moves both terms by a factor; what is subtracted is taken smaller.
    slack = _ERROR + 2.0**-50 * (1.0 + abs(u)) * (1.0 + v)
    delta = first * (1.0 + slack) - second * max(0.0, 1.0 - slack)
    return min(1.0, max(delta, _SMALLEST))


# A fit asks for the same few budgets several times, and a bisection takes a third of a millisecond.
@lru_cache(maxsize=1024)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-Gaussian differential privacy at a delta of at least 1e-300.

    ``gaussian_delta(mu, epsilon) <= delta``, and to a relative 1e-13 it is the smallest; 0 where
    that is enough.
    """
    _check_delta(delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    _, enough = bracket(lambda epsilon: gaussian_delta(mu, epsilon) > delta, mu, _TOLERANCE)
    return enough


@lru_cache(maxsize=1024)
def calibrate_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that stays within (epsilon, delta), to a relative 1e-13.

    Raises ValueError if delta is below 1e-300.
    """
    _check_delta(delta)
    start = min(epsilon, 1.0)
    private, _ = bracket(lambda mu: gaussian_delta(mu, epsilon) <= delta, start, _TOLERANCE)
    return private


def _check_delta(delta: float) -> None:
    if delta < _SMALLEST:
        raise ParameterError(f"`delta` must be at least {_SMALLEST:g}, got {delta!r}.")
