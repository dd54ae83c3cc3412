"""Counters of the structures' work, for research runs.

The counts depend on the data and no private model carries them: the estimator reads them only
where the run has no privacy to lose (`epsilon=inf`, `mechanism="paper"`).
"""

import numpy as np
from numpy.typing import NDArray

# Candidates looked at or tried, coordinates moved inside the structure, items popped off a heap,
# random variates drawn.
TRIES, MOVES, POPS, VARIATES = range(4)
NAMES = ("tries", "moves", "pops", "variates")


def new_counters() -> NDArray[np.int64]:
    """Return the four counters at zero."""
    return np.zeros(len(NAMES), dtype=np.int64)
