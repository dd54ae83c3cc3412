"""What private steps cost together, and what one of them may spend.

`epsilon_of` and `calibrate` take any event of the ``dp-accounting`` package and know no mechanism;
the composition and the conversion to (epsilon, delta) are that package's.

A vertex step is *bounded range* with parameter ``eps0``: over all outcomes, the log-ratio of its
probabilities on two neighbouring data sets varies by at most ``eps0``. Such a step is
``eps0**2 / 8``-zCDP (arXiv 2004.07223), and T adaptive steps add up. That holds for the exponential
mechanism **only**: it is false for noisy maxima with Laplace noise and for permute-and-flip.
Gaussian noise alone has an exact curve, in ``gaussian.py``.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from dplasso.privacy.parameters import check_delta, check_epsilon, check_n_iter, check_positive

# Relative width at which the bisection stops; far finer than the 1 % that is promised.
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
    """Return the Renyi orders that the accountant is given, increasing, all above 1.01."""
    count = _ORDERS_PER_DECADE * _DECADES + 1
    return tuple(
        1.0 + _SMALLEST_ORDER_MINUS_1 * 10.0 ** (k / _ORDERS_PER_DECADE) for k in range(count)
    )


def library() -> str:
    """Return the accountant's name and version, for statements."""
    return f"dp-accounting {version('dp-accounting')}"


def rho_of_bounded_range(eps0: float) -> float:
    """Return the zCDP parameter of one eps0-bounded-range step (arXiv 2004.07223)."""
    return eps0 * eps0 / 8.0


def epsilon_spent(eps0: float, n_iter: int, delta: float) -> float:
    """Return the epsilon of `n_iter` adaptive steps that are each `eps0`-bounded-range, by zCDP.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range.
    """
    return _epsilon_of_steps(check_positive("eps0", eps0), check_n_iter(n_iter), check_delta(delta))


def epsilon_of_steps(eps0: float, n_iter: int, delta: float) -> float:
    """Return the epsilon of `n_iter` steps by the better of two bounds.

    Over few steps with a large `eps0` the plain sum, rounded up, is the smaller one: a step that is
    eps0-bounded-range is also eps0-differentially private, at delta 0.
    """
    spent = epsilon_spent(eps0, n_iter, delta)
    return min(spent, math.nextafter(n_iter * float(eps0), math.inf))


def epsilon_of(event: Any, delta: float) -> float:
    """Return the epsilon that the Renyi accountant reports for an event.

    Raises TypeError, ValueError if `delta` is no number in (0, 1).
    """
    return _epsilon_of(event, check_delta(delta))


def _epsilon_of(event: Any, delta: float) -> float:
    # dp-accounting takes most of a second to import, so nothing imports it before it is needed.
    from dp_accounting.rdp import RdpAccountant

    accountant: Any = RdpAccountant(renyi_orders()).compose(event)
    return float(accountant.get_epsilon(delta))


# An accountant takes milliseconds, and every fit asks for several epsilons of the same settings.
@lru_cache(maxsize=1024)
def _epsilon_of_steps(eps0: float, n_iter: int, delta: float) -> float:
    return _epsilon_of(_steps(eps0, n_iter), delta)


def zcdp_event(rho: float) -> Any:
    """Return rho-zCDP as an event of ``dp-accounting``."""
    from dp_accounting import ZCDpEvent

    return ZCDpEvent(rho=rho)


@lru_cache(maxsize=1024)
def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP at a delta in (0, 1), which is not checked again."""
    return _epsilon_of(zcdp_event(rho), delta)


def _steps(eps0: float, n_iter: int) -> Any:
    from dp_accounting import SelfComposedDpEvent

    return SelfComposedDpEvent(zcdp_event(rho_of_bounded_range(eps0)), n_iter)


def calibrate(
    make_event: Callable[[float], Any], epsilon: float, delta: float, *, start: float = 1.0
) -> float:
    """Return the largest parameter of an event that stays within (epsilon, delta).

    ``make_event(x)`` is the ``dp_accounting`` event for the parameter x > 0; the larger x, the
    larger its privacy loss. The result satisfies ``epsilon_of(make_event(x), delta) <= epsilon``
    always, and is to a relative 1e-12 the largest that does.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range, or if no x is
    small enough or none too large.
    """
    epsilon = check_positive("epsilon", check_epsilon(epsilon))
    delta = check_delta(delta)
    low = check_positive("start", start)
    while _epsilon_of(make_event(low), delta) > epsilon:
        low /= 2.0
        if low == 0.0:
            raise ValueError(f"no event, however small, is within epsilon {epsilon!r}.")
    high = 2.0 * low
    while _epsilon_of(make_event(high), delta) <= epsilon:
        low, high = high, 2.0 * high
        if math.isinf(high):
            raise ValueError(f"no event, however large, is beyond epsilon {epsilon!r}.")
    while high - low > _BISECTION_TOLERANCE * high:
        middle = 0.5 * (low + high)
        if _epsilon_of(make_event(middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    # Only values that the accountant has accepted ever become `low`.
    return low


def calibrate_eps0(epsilon: float, delta: float, n_iter: int) -> float:
    """Return the largest eps0 that keeps `n_iter` steps within (epsilon, delta).

    ``epsilon_spent(eps0, n_iter, delta) <= epsilon`` always, and above ``0.99 * epsilon``.

    Raises TypeError, ValueError if a parameter is not of its kind or out of range.
    """
    return _calibrate_steps(
        check_positive("epsilon", check_epsilon(epsilon)), check_delta(delta), check_n_iter(n_iter)
    )


@lru_cache(maxsize=256)
def _calibrate_steps(epsilon: float, delta: float, n_iter: int) -> float:
    # Start from the classical conversion epsilon = rho + 2 sqrt(rho log(1/delta)), which is never
    # below the accountant's.
    log_term = -math.log(delta)
    # sqrt(log_term + epsilon) - sqrt(log_term), written so that a small epsilon is not cancelled.
    root_rho = epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))
    start = root_rho * math.sqrt(8.0 / n_iter)
    return calibrate(lambda eps0: _steps(eps0, n_iter), epsilon, delta, start=start)
