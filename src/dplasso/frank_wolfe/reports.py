"""Report to the selector each column gradient that a step changed, once, in ascending order.

So the state of the selector, and every draw, does not depend on how rows are stored, or divided
among threads.

During a step, changes that cross a multiple of the selector's ``2^shift`` are noted with the
gradient before them. The first note of a gradient has its value before the step, up to this
multiple. A step that changes very many gradients reports none, and the selector is rebuilt
before the next draw.
"""

import numpy as np

from dplasso.runtime.compilation import kernel
from dplasso.selection.selector import NOTHING_REPORTED, update_many

# Fewer notes are sorted by insertion; more than one per so many gradients by a pass over all.
_FEW, _MANY = 48, 16
# Steps that look at more entries per gradient are wide; they measure which part of rows changes.
WIDE = 2


@kernel
def expected_entries(n_looked_at, refreshed_part, n_entries, n_rows):
    """Return how many entries a step touches if this part of its rows changes."""
    return n_looked_at * refreshed_part * (n_entries / max(1, n_rows))


@kernel
def begin_step(problem, state, n_looked_at):
    """Return whether to note the changes of a step that looks at so many rows."""
    state.step_counts[:] = 0
    state.step_counts[0] = n_looked_at
    n_entries, n_rows = problem.design.rows.indices.size, problem.design.n_rows
    expected = expected_entries(n_looked_at, state.refreshed_part[0], n_entries, n_rows)
    return expected <= WIDE * state.alpha.size


@kernel
def sort_notes(size, changed, before, count):
    """Sort notes by their gradients, in place; return how many are left.

    Notes of one gradient keep their order; all but the first may be dropped.
    """
    if count <= _FEW:
        for m in range(1, count):
            k, was = changed[m], before[m]
            at = m
            while at > 0 and changed[at - 1] > k:
                changed[at], before[at] = changed[at - 1], before[at - 1]
                at -= 1
            changed[at], before[at] = k, was
        return count
    if count > size // _MANY:
        first = np.full(size, -1, np.int64)
        for m in range(count - 1, -1, -1):
            first[changed[m]] = m
        order = first[first >= 0]
    else:
        order = np.argsort(changed[:count], kind="mergesort")
    changed[: order.size] = changed[order]
    before[: order.size] = before[order]
    return order.size


@kernel
def report(problem, state, selector, telling, notes):
    """Report the changes of a step to the selector, or mark it for a rebuild."""
    n_looked_at, n_refreshed, n_touched = state.step_counts
    n_entries, n_rows = problem.design.rows.indices.size, problem.design.n_rows
    most = WIDE * state.alpha.size
    if expected_entries(n_looked_at, 1.0, n_entries, n_rows) > most:
        state.refreshed_part[0] = n_refreshed / n_looked_at
    if not telling or n_touched > most:
        state.untold[0] = True
        return
    changed, before, count = notes
    if count == 0:
        return
    shift = selector.shift
    count = sort_notes(state.alpha.size, changed, before, count)
    kept = np.int64(0)
    previous = np.int64(-1)
    for m in range(count):
        k = changed[m]
        # The first note of a gradient has its value before the step.
        if k != previous and (before[m] ^ state.alpha[k]) >> shift:
            changed[kept], before[kept] = k, before[m]
            kept += 1
        previous = k
    update_many(selector, state.alpha, changed, before, kept)


@kernel
def take_changes(alpha, coordinates, amounts, whole, shift, changed, before):
    """Change gradients; return how many changes the selector needs.

    `coordinates`: of the amounts; empty if there is an amount for each gradient.
    `whole`: whether the amounts are the new gradients.
    `changed`, `before`: receive the changes and the previous values, as far as there is room.
    """
    count = 0
    for m in range(amounts.size):
        if amounts[m] == 0 and not whole:
            continue
        k = coordinates[m] if coordinates.size else np.int64(m)
        was = alpha[k]
        now = amounts[m] if whole else was + amounts[m]
        alpha[k] = now
        if shift != NOTHING_REPORTED and (was ^ now) >> shift:
            if count < changed.size:
                changed[count] = k
                before[count] = was
            count += 1
    return count
