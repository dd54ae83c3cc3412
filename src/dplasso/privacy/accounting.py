"""What T steps of the exponential mechanism cost, and what one step may spend.

A step is *bounded range* with parameter ``eps0``: over all outcomes, the log-ratio of its
probabilities on two neighbouring data sets varies by at most ``eps0``. Such a step is
``eps0**2 / 8``-zCDP (arXiv 2004.07223), and T adaptive steps add up. The composition and the
conversion to (epsilon, delta) are those of the ``dp-accounting`` package.

The bound holds for the exponential mechanism **only**. It is false for noisy maxima with Laplace
noise and for permute-and-flip; ``mechanism.py`` is the one place that pairs the two.
"""

import math
from functools import lru_cache
from typing import Any

from dplasso.privacy.parameters import check_delta, check_epsilon, check_n_iter, check_positive

# Relative width at which the bisection for eps0 stops; far finer than the 1 % that is promised.
_BISECTION_TOLERANCE = 1e-12

# The Renyi orders alpha offered to the accountant, as alpha - 1 on a logarithmic grid. The best
# one is about sqrt(log(1/delta) / rho), from 0.02 (epsilon in the thousands) to 1e7 (epsilon below
# 1e-4), so the grid spans more than that. With 128 orders to a factor of 10 the nearest one costs
# less than 0.005 % of epsilon; the accountant's own default list loses 5 % at epsilon 0.1.
# Below 1.01 the accountant's conversion is not defined.
_SMALLEST_ORDER_MINUS_1 = 0.0101
_ORDERS_PER_DECADE = 128
_DECADES = 12


@lru_cache(maxsize=1)
def renyi_orders() -> tuple[float, ...]:
    """List the Renyi orders that the accountant is given.

    Returns
    -------
    tuple of float
        Increasing orders, all above 1.01.
    """
    count = _ORDERS_PER_DECADE * _DECADES + 1
    return tuple(
        1.0 + _SMALLEST_ORDER_MINUS_1 * 10.0 ** (k / _ORDERS_PER_DECADE) for k in range(count)
    )


def rho_of_bounded_range(eps0: float) -> float:
    """Give the zCDP parameter of one bounded-range step.

    Parameters
    ----------
    eps0 : float
        The step's bounded-range parameter (natural logarithm units).

    Returns
    -------
    float
        rho = eps0^2 / 8 (arXiv 2004.07223).
    """
    return eps0 * eps0 / 8.0


def epsilon_spent(eps0: float, n_iter: int, delta: float) -> float:
    """Give the epsilon of `n_iter` adaptive steps that are each `eps0`-bounded-range.

    Parameters
    ----------
    eps0 : float
        Bounded-range parameter of one step.
    n_iter : int
        Number of steps T.
    delta : float
        The delta at which epsilon is reported, in (0, 1).

    Returns
    -------
    float
        The epsilon that the Renyi accountant reports: T steps of (eps0^2/8)-zCDP.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range.
    """
    return _spent(
        check_positive("eps0", eps0), check_n_iter(n_iter), check_delta(delta), renyi_orders()
    )


def _spent(eps0: float, n_iter: int, delta: float, orders: tuple[float, ...]) -> float:
    # dp-accounting takes most of a second to import, so nothing imports it before it is needed.
    from dp_accounting import SelfComposedDpEvent, ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    step: Any = ZCDpEvent(rho=rho_of_bounded_range(eps0))
    accountant: Any = RdpAccountant(orders).compose(SelfComposedDpEvent(step, n_iter))
    return float(accountant.get_epsilon(delta))


def calibrate_eps0(epsilon: float, delta: float, n_iter: int) -> float:
    """Find the largest step that keeps `n_iter` steps within (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        The total to stay within, positive and finite.
    delta : float
        In (0, 1).
    n_iter : int
        Number of steps T.

    Returns
    -------
    float
        eps0 with ``epsilon_spent(eps0, n_iter, delta) <= epsilon``, always, and above
        ``0.99 * epsilon``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of range.
    """
    return _calibrate(
        check_positive("epsilon", check_epsilon(epsilon)), check_delta(delta), check_n_iter(n_iter)
    )


@lru_cache(maxsize=256)
def _calibrate(epsilon: float, delta: float, n_iter: int) -> float:
    orders = renyi_orders()
    # Start from the classical conversion epsilon = rho + 2 sqrt(rho log(1/delta)), which is never
    # below the accountant's, and widen from there.
    log_term = -math.log(delta)
    # sqrt(log_term + epsilon) - sqrt(log_term), written so that a small epsilon is not cancelled.
    root_rho = epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))
    low = root_rho * math.sqrt(8.0 / n_iter)
    while _spent(low, n_iter, delta, orders) > epsilon:
        low /= 2.0
    high = 2.0 * low
    while _spent(high, n_iter, delta, orders) <= epsilon:
        low, high = high, 2.0 * high
    while high - low > _BISECTION_TOLERANCE * high:
        middle = 0.5 * (low + high)
        if _spent(middle, n_iter, delta, orders) <= epsilon:
            low = middle
        else:
            high = middle
    # Only values that the accountant has accepted ever become `low`.
    return low
