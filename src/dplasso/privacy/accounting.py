"""What private steps cost together, and what one of them may spend.

A vertex step is *bounded range* with parameter ``eps0``: over all outcomes, the log-ratio of its
probabilities on neighbouring data sets varies by at most ``eps0``. It is ``eps0**2 / 8``-zCDP
(arXiv 2004.07223). That is true of the exponential mechanism **only**, not of noisy maxima or
permute-and-flip.

Gaussian noise is mu-Gaussian differentially private with ``mu = sensitivity / sigma``, and the mu^2
of adaptive steps add up. The exact curve (arXiv 1805.06530, theorem 8) is

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

All results are rounded towards more privacy.
"""

import math
import sys
from bisect import bisect
from collections.abc import Callable
from functools import lru_cache

from dplasso.errors import ParameterError, shown

# Relative width at which the bisection stops; far finer than the 1 % that is promised.
_TOLERANCE = 1e-12
# Standard deviations beyond which no mass is drawn by `dplasso.privacy.gaussian_noise`.
TAIL = 16
# Of its scales, in units: below, the noise is too coarse for its error to be small; above, words
# are too short.
SMALLEST_SCALE, LARGEST_SCALE = 2.0**24, 2.0**46
# Relative width at which a bisection stops.
_CURVE_TOLERANCE = 1e-13
# Relative error of the special functions used, with room to spare.
_ERROR = 2.0**-43
# Below this the terms lose digits; no delta is reported or met that is smaller.
_SMALLEST = 1e-300


@lru_cache(maxsize=1)
def renyi_orders() -> tuple[float, ...]:
    """Return the Renyi orders that the accountant is given, increasing, all above 1.01."""
    # The best order is about 1 + sqrt(log(1/delta) / rho), from 1.02 (epsilon in the thousands) to
    # 1e7 (epsilon below 1e-4), so the grid spans more than that. With 128 orders to a factor of 10
    # the nearest one costs less than 0.005 % of epsilon; the accountant's own default list loses
    # 5 % at epsilon 0.1. Below 1.01 the accountant's conversion is not defined.
    return tuple(1.0 + 0.0101 * 10.0 ** (k / 128) for k in range(128 * 12 + 1))


def rho_of_bounded_range(eps0: float) -> float:
    """Return the zCDP parameter of one eps0-bounded-range step (arXiv 2004.07223)."""
    return eps0 * eps0 / 8.0


def epsilon_of(rho: float, count: int, delta: float) -> float:
    """Return the epsilon that the Renyi accountant reports for adaptive steps of rho-zCDP each."""
    # dp-accounting takes most of a second to import, so nothing imports it before it is needed.
    from dp_accounting import SelfComposedDpEvent, ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    event = SelfComposedDpEvent(ZCDpEvent(rho=rho), count)
    # Epsilon falls up to the best order and grows beyond it. So if the best of some neighbouring
    # orders is none of their ends, it is the best of all, and the others need no look.
    few = _likely_orders(rho * count, delta)
    epsilon, best = RdpAccountant(few).compose(event).get_epsilon_and_optimal_order(delta)
    if best not in few[2:-1]:
        epsilon = RdpAccountant(renyi_orders()).compose(event).get_epsilon(delta)
    return float(epsilon)


def _likely_orders(rho: float, delta: float) -> list[float]:
    """Return the smallest order, and a tenth of all among which the best one of zCDP is found.

    The smallest one is the best where epsilon is 0, whatever the others are.
    """
    orders = renyi_orders()
    if not (0.0 < rho < math.inf and 0.0 < delta < 1.0):
        return [orders[0]]
    best = math.sqrt(-math.log(delta) / rho)
    first, last = (bisect(orders, 1.0 + part * best) for part in (0.1, 1.8))
    return [orders[0], *orders[max(first, 1) : last]]


# An accountant takes milliseconds, and every fit asks for several epsilons of the same settings.
@lru_cache(maxsize=1024)
def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP."""
    return epsilon_of(rho, 1, delta)


@lru_cache(maxsize=1024)
def epsilon_spent(eps0: float, n_iter: int, delta: float) -> float:
    """Return the epsilon of `n_iter` steps that are each `eps0`-bounded-range, by zCDP."""
    return epsilon_of(rho_of_bounded_range(eps0), n_iter, delta)


def epsilon_of_steps(eps0: float, n_iter: int, delta: float) -> float:
    """Return the epsilon of `n_iter` steps by zCDP, or by the plain sum if that is smaller."""
    plain = math.nextafter(n_iter * float(eps0), math.inf)
    return min(epsilon_spent(eps0, n_iter, delta), plain)


def root_rho(epsilon: float, delta: float) -> float:
    """Return the root of a rho within (epsilon, delta), a start for bisections.

    By the classical conversion, epsilon = rho + 2 sqrt(rho log(1/delta)), without cancellation.
    """
    log_term = -math.log(delta)
    return epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))


def bracket(
    holds: Callable[[float], bool], start: float, tolerance: float = _TOLERANCE
) -> tuple[float, float]:
    """Return the last positive value for which something holds, and the first where it does not.

    They are a relative `tolerance` apart. ValueError if it holds for no value, or for all.
    """
    # The square of a tiny start may be 0.
    low = max(start, sys.float_info.min)
    while not holds(low):
        low /= 2.0
        if low == 0.0:
            raise ValueError("no value is small enough.")
    high = 2.0 * low
    while holds(high):
        low, high = high, 2.0 * high
        if math.isinf(high):
            raise ValueError("no value is too large.")
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


@lru_cache(maxsize=256)
def calibrate_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho within (epsilon, delta), which the accountant has accepted."""
    root = root_rho(epsilon, delta)
    accepted, _ = bracket(lambda rho: epsilon_of(rho, 1, delta) <= epsilon, root * root)
    return accepted


@lru_cache(maxsize=256)
def calibrate_eps0(epsilon: float, delta: float, n_iter: int) -> float:
    """Return the largest eps0 that keeps `n_iter` steps within (epsilon, delta), as accepted."""

    def holds(eps0: float) -> bool:
        return epsilon_of(rho_of_bounded_range(eps0), n_iter, delta) <= epsilon

    accepted, _ = bracket(holds, root_rho(epsilon, delta) * math.sqrt(8.0 / n_iter))
    return accepted


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta, at least 1e-300, of mu-Gaussian differential privacy at an epsilon."""
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
    """Return the smallest epsilon of mu-Gaussian differential privacy at a delta, rounded up."""
    _check_delta(delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    _, enough = bracket(lambda epsilon: gaussian_delta(mu, epsilon) > delta, mu, _CURVE_TOLERANCE)
    return enough


@lru_cache(maxsize=1024)
def calibrate_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that stays within (epsilon, delta); ValueError for a tiny delta."""
    _check_delta(delta)
    start = min(epsilon, 1.0)
    private, _ = bracket(lambda mu: gaussian_delta(mu, epsilon) <= delta, start, _CURVE_TOLERANCE)
    return private


def _check_delta(delta: float) -> None:
    if delta < _SMALLEST:
        raise ParameterError(f"`delta` must be at least {_SMALLEST:g}, got {shown(delta)}.")


# What turns the rho and delta of one fit into its epsilon, by the name of its mechanisms.
EPSILON_OF_RHO: dict[str, Callable[[float, float], float]] = {
    "gaussian": lambda rho, delta: gaussian_epsilon(math.sqrt(2.0 * rho), delta),
    "exponential": epsilon_of_rho,
    "exponential and gaussian": epsilon_of_rho,
}
