"""Algorithm 2 of the paper (arXiv 2310.19978), corrected: a step costs what it touches.

A step changes one weight, so only rows that hold its column change their margin beyond the
shrinkage by ``w_m``. The paper leaves that shrinkage out for other rows; the calendar of
`dplasso.frank_wolfe.drift` restores it up to a tolerance.

Rows are processed in blocks: first all margins, which are independent loads, then the contributions
of the rows whose residual changes.
"""

import numpy as np

from dplasso.frank_wolfe.drift import NONE, count_due, due_step, schedule, take_due
from dplasso.frank_wolfe.gradient import (
    margin_scale,
    margin_term,
    replace_contributions,
    share_units,
)
from dplasso.frank_wolfe.problem import weight_scale
from dplasso.frank_wolfe.reports import begin_step, report
from dplasso.frank_wolfe.state import BLOCK_ROWS
from dplasso.frank_wolfe.vertex_run import OPERATIONS_PER_GRADIENT, record_work
from dplasso.losses.loss import gradient
from dplasso.losses.targets import (
    offset_of,
    weight_of,
    weighted_margins_within,
    weighted_tangent_offset,
)
from dplasso.matrix.compressed import clip
from dplasso.matrix.orientations import column_span
from dplasso.runtime.compilation import kernel
from dplasso.selection.selector import NOTHING_REPORTED, rebuild, select


@kernel
def touch_rows(problem, column, public, rows, first, last, weight, scratch):
    """Move the margins of some rows; find which residuals change, and when rows are due.

    `column`: rows and entries; without indices all rows hold `constant`.
    `weight`: what is added to K_j; 0 for rows that are due.
    `scratch`: receives `refreshed`, `old`, `new`, `moved` and `moved_to`.

    Returns the numbers of rows refreshed and moved; (-1, 0) for a row outside the matrix.
    """
    indices, values, constant = column
    bound, margin_unit, scale, tolerance, n_steps, step, scheduled = public
    refreshed, before, after = scratch.refreshed, scratch.old, scratch.new
    targets = problem.targets
    moved, moved_to = scratch.moved, scratch.moved_to
    everyone = indices.size == 0
    term = margin_term(clip(constant, bound), margin_unit)
    to_full = scale / weight_scale(step)
    n_refreshed = 0
    n_moved = 0
    for p in range(np.uint64(first), np.uint64(last)):
        i = np.uint64(p) if everyone else np.uint64(indices[p])
        # The store may have changed on the disk since it was checked.
        if i >= np.uint64(rows.size):
            return -1, 0
        row = rows[i]
        if values.size:
            term = margin_term(clip(values[p], bound), margin_unit)
        if weight:
            # A stored zero must have no effect, so it must not refresh its row either.
            if term == 0:
                continue
            row.margin += weight * term
        margin = np.float64(row.margin)
        value = margin * scale
        if value >= row.lowest and value <= row.highest:
            if row.due == step:
                continue
            # Is the margin still inside just before the row is due anyway?
            horizon = n_steps if row.due == NONE else np.int64(row.due) - 1
            later = margin * to_full * weight_scale(horizon)
            if not scheduled or (later >= row.lowest and later <= row.highest):
                continue
        else:
            label, counts = targets.labels[i], weight_of(targets.weights, i)
            offset = offset_of(targets.offsets, i, 0)
            new = counts * gradient(problem.loss, value + offset, label)
            if new != row.gradient:
                refreshed[n_refreshed] = i
                before[n_refreshed] = row.gradient
                after[n_refreshed] = new
                n_refreshed += 1
                row.gradient = new
            if not scheduled:
                continue
            row.lowest, row.highest = weighted_margins_within(
                problem.loss, new, label, counts, offset, tolerance
            )
        moved[n_moved] = i
        moved_to[n_moved] = due_step(margin * to_full, row.lowest, row.highest, step, n_steps)
        n_moved += 1
    return n_refreshed, n_moved


@kernel
def record_refreshed(problem, state, scratch, count):
    """Update the sums of the history."""
    rows, sums, shift = state.rows, state.sums, state.calendar.shift
    targets = problem.targets
    for m in range(count):
        i, old, new = scratch.refreshed[m], scratch.old[m], scratch.new[m]
        label, weight = targets.labels[i], weight_of(targets.weights, i)
        sums[i >> shift, 0] += (new - old) * np.float64(rows[i].margin) / problem.margin_unit
        record_of = label, weight, offset_of(targets.offsets, i, 0)
        offset = weighted_tangent_offset(problem.loss, new, *record_of)
        sums[i >> shift, 1] += offset - weighted_tangent_offset(problem.loss, old, *record_of)


@kernel
def sum_of_blocks(sums, which):
    """Return a sum of the history over all blocks of rows, in their order."""
    total = 0.0
    for block in range(sums.shape[0]):
        total += sums[block, which]
    return total


@kernel
def refresh_block(problem, state, touched, counts, record, replacing, shift, notes):
    """Apply the changes of one touched block to calendar, history, counts and gradients.

    `touched`, `counts`: from `touch_rows`. `replacing`: whether to change the column gradients.
    """
    n_refreshed, n_moved = counts
    for m in range(n_moved):
        schedule(state.calendar, state.rows, touched.moved[m], touched.moved_to[m])
    if n_refreshed == 0:
        return notes
    entries, indptr = np.int64(0), problem.design.rows.indptr
    for m in range(n_refreshed):
        entries += indptr[touched.refreshed[m] + 1] - indptr[touched.refreshed[m]]
    state.operation_counts[0] += entries
    state.operation_counts[1] += 2 * entries
    if record:
        record_refreshed(problem, state, touched, n_refreshed)
    state.step_counts[1] += n_refreshed
    state.step_counts[2] += entries
    if not replacing:
        return notes
    return replace_contributions(
        problem.design.rows,
        problem.design.n_columns,
        problem.design.intercept,
        share_units(problem),
        state.alpha,
        touched.refreshed[:n_refreshed],
        touched.old[:n_refreshed],
        touched.new[:n_refreshed],
        shift,
        touched.amounts,
        notes,
    )


@kernel
def step_numbers(problem, calendar, step, tolerance):
    """Return the public numbers of a step, as `touch_rows` takes them."""
    return (
        problem.design.bound,
        problem.margin_unit,
        margin_scale(problem, step),
        tolerance,
        problem.n_steps,
        step,
        calendar.head.shape[1] > 0,
    )


@kernel
def work_through(problem, state, column, span, blocks, public, record, replacing, shift, notes):
    """Touch the rows of a column, then the rows due in some blocks; return the notes.

    `span`: first and last entry of the column, and what is added to K_j. The number of notes is -1
    if a row or column lies outside the matrix.
    """
    first, last, weight = span
    scratch, rows, calendar = state.scratch, state.rows, state.calendar
    for begin in range(first, last, BLOCK_ROWS):
        end = min(begin + BLOCK_ROWS, last)
        counts = touch_rows(problem, column, public, rows, begin, end, weight, scratch)
        if counts[0] < 0:
            return notes[0], notes[1], np.int64(-1)
        state.operation_counts[1] += OPERATIONS_PER_GRADIENT * (end - begin)
        notes = refresh_block(problem, state, scratch, counts, record, replacing, shift, notes)
        if notes[2] < 0:
            return notes
    step, scheduled = public[5], public[6]
    if not scheduled:
        return notes
    due = (scratch.taken, problem.design.columns.values[:0], column[2])
    for block in range(blocks[0], blocks[1]):
        while calendar.head[block, step] != NONE:
            count = take_due(calendar, rows, block, step, scratch.taken)
            counts = touch_rows(problem, due, public, rows, 0, count, 0, scratch)
            state.operation_counts[1] += OPERATIONS_PER_GRADIENT * count
            notes = refresh_block(problem, state, scratch, counts, record, replacing, shift, notes)
            if notes[2] < 0:
                return notes
    return notes


@kernel
def step_rows(problem, state, column, span, step, tolerance, record, shift):
    """Take one step with `work_through`, without earlier notes."""
    public = step_numbers(problem, state.calendar, step, tolerance)
    blocks = 0, state.calendar.head.shape[0]
    notes = state.scratch.changed, state.scratch.before, np.int64(0)
    return work_through(problem, state, column, span, blocks, public, record, True, shift, notes)


@kernel
def run_sparse(
    problem,
    state,
    selector,
    stream,
    tolerance,
    span,
    vertex,
    sign,
    history,
    work,
    n_prefix,
    rows_large,
):
    """Take the steps of a span (inclusive, from 1) of Algorithm 2, up to a large one.

    `vertex`, `sign`, shape (T,): the transcript; the first `n_prefix` steps are taken, not drawn.
    `history`: objective and gap; of length 0 in private runs. `work`, shape (T, 6) or (0, 6).
    `rows_large`: the caller takes steps that look at more rows.

    Returns the last step; or minus the step that is left to the caller, with its vertex drawn; or 0
    if a row lies outside the matrix.
    """
    objective, gap = history
    record = objective.size > 0
    n_rows = state.rows.size
    design = problem.design
    for step in range(span[0], span[1] + 1):
        if state.untold[0]:
            rebuild(selector, state.alpha)
            state.untold[0] = False
        j, s = select(selector, state.alpha, stream)
        if step <= n_prefix:
            j, s = vertex[step - 1], np.int64(sign[step - 1])
        vertex[step - 1] = j
        sign[step - 1] = s
        steepest = np.float64(state.alpha[j]) / problem.unit
        if record:
            inner, offsets = sum_of_blocks(state.sums, 0), sum_of_blocks(state.sums, 1)
            inner *= problem.radius * weight_scale(step - 1)
            objective[step - 1] = (offsets + inner) / n_rows
            gap[step - 1] = (inner - s * problem.radius * steepest) / n_rows
        weight = s * (step + 1)
        state.sums[0, 0] += weight * steepest
        column, begin, end = column_span(design, j)
        n_looked_at = end - begin + count_due(state.calendar, step)
        if n_looked_at > rows_large:
            return -step
        telling = begin_step(problem, state, n_looked_at)
        shift = np.int64(selector.shift) if telling else np.int64(NOTHING_REPORTED)
        part = begin, end, weight
        notes = step_rows(problem, state, column, part, step, tolerance, record, shift)
        if notes[2] < 0:
            return 0
        report(problem, state, selector, telling, notes)
        if work.shape[0]:
            record_work(work[step - 1], selector.counters, state.operation_counts)
    return span[1]
