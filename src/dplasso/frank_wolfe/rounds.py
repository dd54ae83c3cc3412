"""Rounds: several columns drawn by the same gradients, where every column is drawn at most once.

A column drawn once is left out of later draws, so the next best ones are still to be had from the
gradients at hand; refreshing them after every few draws costs a part of refreshing them after each
and, measured, no accuracy. The first columns, which move the margins most, are drawn one by one.
Which steps refresh is public: the mechanism and its sensitivity are those of steps one by one.
"""

from numba import njit

# Columns drawn one by one, and how many are drawn together afterwards.
SINGLE_DRAWS, ROUND = 8, 4


@njit(cache=True, nogil=True)
def round_end(distinct, n_steps, step):
    """Return the first step, from `step` on, after which gradients are refreshed.

    `distinct`, `n_steps`: of the problem.
    `step`: from 1; one beyond the last stands for itself.
    """
    if not distinct or step <= SINGLE_DRAWS:
        return step
    rounds = (step - SINGLE_DRAWS + ROUND - 1) // ROUND
    return max(step, min(SINGLE_DRAWS + ROUND * rounds, n_steps))
