"""The private structures, and gradients that are hard to draw from."""

import numpy as np

from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.noisy_max import GumbelState
from dplasso.selection.selector import new_counters

# One record's largest share, in fixed-point units, and the exponent of a step of epsilon 1 / 1,000.
SHARE = 2**32
EXPONENT = 0.013959 / 2**33
LIMIT = 2**63 - 1


def noisy_max(n_columns, exponent):
    return GumbelState(exponent, new_counters())


def bucket(n_columns, exponent):
    return bucket_state(n_columns, exponent, True)


def wide_bucket(n_columns, exponent):
    return bucket_state(n_columns, exponent, True, spread=16.0)


def big_little(n_columns, exponent):
    return big_little_state(n_columns, exponent, True)


PRIVATE = {
    "noisy-max": noisy_max,
    "bucket": bucket,
    "bucket, wide": wide_bucket,
    "big-little": big_little,
}


def random_gradients(n_columns, seed, nats=3.0, exponent=EXPONENT):
    """Gradients whose log-weights spread over about `nats` to either side of zero."""
    rng = np.random.default_rng(seed)
    return np.rint(rng.normal(0, nats / exponent, n_columns)).astype(np.int64)


def dominated(n_columns, gap, exponent):
    """All gradients equal but one, whose log-weight is ahead by `gap`."""
    alpha = np.full(n_columns, SHARE, dtype=np.int64)
    alpha[::2] *= -1
    alpha[n_columns // 3] = SHARE + round(gap / exponent)
    return alpha


def _statdp(n_columns, pattern):
    """Scores of neighbouring data sets: all equal, then some a share apart."""
    alpha = np.full(n_columns, 100 * SHARE, dtype=np.int64)
    if pattern == "one above":
        alpha[0] += SHARE
    elif pattern == "one below":
        alpha[0] -= SHARE
    elif pattern == "half up, half down":
        alpha[::2] += SHARE
        alpha[1::2] -= SHARE
    elif pattern == "one above, others below":
        alpha -= SHARE
        alpha[0] += 2 * SHARE
    else:
        alpha += SHARE
    return alpha


def _gradients(*values):
    return np.array(values, dtype=np.int64)


# name -> (gradients, exponent). 64 times epsilon 1's exponent makes a share worth 0.45 nats.
STEEP = 64 * EXPONENT
HARD = {
    "zeros": (np.zeros(10, dtype=np.int64), EXPONENT),
    "all equal": (np.full(10, 7 * SHARE, dtype=np.int64), STEEP),
    "ties": (np.repeat(random_gradients(5, 3), 4), EXPONENT),
    "one column": (_gradients(-3 * SHARE), STEEP),
    "two columns, opposite": (_gradients(SHARE, -SHARE), STEEP),
    "limits": (_gradients(LIMIT, -LIMIT, 0, LIMIT, 5), 2.0**-63),
    "limits, steep": (_gradients(LIMIT, -LIMIT, LIMIT - 1, 0, -5), 0.5),
    "far out": (LIMIT // 2 + random_gradients(30, 4, exponent=STEEP) // 2, STEEP),
    "far out, both signs": (
        _gradients(1, -1, 1, 1, -1) * (2**60 + random_gradients(5, 5, nats=1, exponent=STEEP)),
        STEEP,
    ),
    **{
        f"gap {gap:g} of {n_columns}": (dominated(n_columns, gap, exponent), exponent)
        for gap, exponent in (
            (0, EXPONENT),
            (1e-12, 1e-13),
            (1, EXPONENT),
            (40, EXPONENT),
            (700, EXPONENT),
            (1e5, 1e-12),
        )
        for n_columns in (3, 50)
    },
    **{
        f"StatDP {pattern}": (_statdp(12, pattern), STEEP)
        for pattern in (
            "one above",
            "one below",
            "half up, half down",
            "one above, others below",
            "all above",
        )
    },
    **{
        f"exponent {exponent:g}": (random_gradients(20, 6, exponent=exponent), exponent)
        for exponent in (1e-17, 1e-15, 1e-9, 1e-3, 0.3, 0.69, 0.7)
    },
    "exponent 3, small numbers": (_gradients(0, 1, -1, 2, 0, -2, 1), 3.0),
    "exponent 1000": (_gradients(0, 1000, -1, 1000, -1000), 1e3),
}
