"""The structures under test by name: each makes one for a number of columns and an exponent."""

import numpy as np
from evidence.reference.gradients import PRIVATE, SHARE

from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import ArgmaxState, LaplaceState

# Weights of the magnitude alone, then the true sign.
PAPER = {
    "bucket, paper": lambda n, exponent: bucket_state(n, exponent, False),
    "big-little, paper": lambda n, exponent: big_little_state(n, exponent, False),
}
EXACT = {
    "argmax": lambda n, exponent: ArgmaxState(new_counters()),
    "heap": lambda n, exponent: heap_state(n),
    "bucket, no privacy": lambda n, exponent: bucket_state(n, np.inf, True),
}
LAPLACE = {"noisy-max, paper": lambda n, exponent: LaplaceState(1 / exponent, new_counters())}
WEIGHTED = PRIVATE | PAPER
STRUCTURES = WEIGHTED | EXACT | LAPLACE
# At a thousand nats a share the steepest vertex wins.
STEEP = 1000.0 / SHARE
