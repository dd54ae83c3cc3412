"""Counts of the work done at each step, for research runs.

They depend on the data; only runs that are not private carry them. Operations are floating-point
and fixed-point arithmetic as the algorithms are written, counted alike for both:

- a multiply-add of a sparse product counts 2 per entry (Algorithm 1: two products with X);
- a record gradient counts 4 (exponential, addition, division, subtraction);
- a coordinate that is compared, scaled or shifted counts 1 per such operation (Algorithm 1, lines
  7 to 13: subtract, compare, negate, dot product and axpy: 7 D).
"""

from dataclasses import dataclass, fields

import numpy as np
from numba import njit
from numpy.typing import NDArray

OPERATIONS_PER_GRADIENT = 4
OPERATIONS_PER_COORDINATE = 7


@dataclass(frozen=True)
class Work:
    """Work per step, each an int64 array of shape (T,).

    `tries`, `moves`, `pops`, `variates`: of the selection (`dplasso.selection.counters`).
    `touched`: entries of X whose share was replaced or recomputed.
    `operations`: arithmetic of the gradient and weight updates, without the selection's.
    """

    tries: NDArray[np.int64]
    moves: NDArray[np.int64]
    pops: NDArray[np.int64]
    variates: NDArray[np.int64]
    touched: NDArray[np.int64]
    operations: NDArray[np.int64]


COLUMNS = tuple(field.name for field in fields(Work))


def work_table(n_steps: int) -> NDArray[np.int64]:
    """Return the table the kernels fill, shape (n_steps, 6); no rows record nothing."""
    return np.zeros((n_steps, len(COLUMNS)), dtype=np.int64)


@njit(cache=True, nogil=True)
def record_work(row, counters, operation_counts):
    """Move the counts since the last step into a row of the table, the selection's first."""
    for column in range(counters.size):
        row[column] = counters[column]
        counters[column] = 0
    for column in range(operation_counts.size):
        row[counters.size + column] = operation_counts[column]
        operation_counts[column] = 0
