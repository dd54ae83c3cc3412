"""Draw and update costs of every selection structure, side by side in one run.

    python -m evidence benchmarks/selection --max-columns 1000000

An iteration is one draw and then the changes of 10 or 500 gradients; the structures take turns in
small batches, and the figures are medians over the batches. Gradients have power-law magnitudes,
changes are a fraction of one record's share at columns drawn by the same power law: what a training
loop does to them on text.
"""

from functools import partial
from typing import Any

import numpy as np
from numba import njit

from dplasso.privacy.randomness import random_stream
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import ArgmaxState, GumbelState
from dplasso.selection.selector import (
    MOVES,
    TRIES,
    VARIATES,
    new_counters,
    rebuild,
    select,
    update_many,
)
from evidence.items import Table
from evidence.report import plain, seconds_text
from evidence.timing import seconds

SHARE = 2**32
# Weights by name: the exponential mechanism's eps0 for T = 1,000 and delta = 1e-6, and how many
# records. With many records the weight sits on a few columns, with few it spreads over all D.
WEIGHTS = {
    "epsilon 0.1, 20,000 records": (0.001603, 20_000),
    "epsilon 1, 20,000 records": (0.013959, 20_000),
    "epsilon 1, 1,000,000 records": (0.013959, 1_000_000),
}
# Entries of a row: its columns are distinct, as the contract asks of changes told together.
ROW = 10
TITLE = "Selection structures"
QUICK = {"rounds": 3, "max_columns": 10**6}
PICTURED = "epsilon 1, 20,000 records"
NO_DRAWS = random_stream(0)
# O(D) structures, and the heap's 26 bytes a column, end here.
LINEAR_LIMIT = 10_000_000


@njit
def fill(selector, alpha):
    rebuild(selector, alpha)


@njit
def draw_only(selector, alpha, stream, count):
    total = 0
    for _ in range(count):
        vertex, sign = select(selector, alpha, stream)
        total += vertex + sign
    return total


@njit
def iterate(selector, alpha, stream, columns, changes, touched):
    """Run one iteration per `touched` changes: a draw, then the changes, row by row."""
    # As the solvers do: report what left its level, the columns of a row together.
    mask = report_mask(selector)
    changed, before = np.empty(ROW, np.int64), np.empty(ROW, np.int64)
    total = 0
    for begin in range(0, columns.size, ROW):
        if touched and begin % touched == 0:
            vertex, sign = select(selector, alpha, stream)
            total += vertex + sign
        count = 0
        for i in range(begin, begin + ROW):
            k = np.uint64(columns[np.uint64(i)])
            old = alpha[k]
            new = old + changes[np.uint64(i)]
            alpha[k] = new
            if (old ^ new) & mask:
                changed[np.uint64(count)] = k
                before[np.uint64(count)] = old
                count += 1
        if count:
            update_many(selector, alpha, changed, before, count)
    return total


@njit
def report_mask(selector):
    report_shift = selector.shift
    return np.int64(0) if report_shift == 63 else ~((np.int64(1) << report_shift) - 1)


def update_only(selector, alpha, columns, changes):
    iterate(selector, alpha, NO_DRAWS, columns, changes, 0)


@njit
def bare(alpha, columns, changes):
    for i in range(columns.size):
        alpha[np.uint64(columns[np.uint64(i)])] += changes[np.uint64(i)]


def power_law_gradients(n_columns, n_records, rng):
    """|alpha| of the column of rank r about r^-0.8, the largest 5 % of the records' shares."""
    alpha = np.empty(n_columns, dtype=np.int64)
    for begin in range(0, n_columns, 10**7):
        rank = np.arange(begin + 1, min(begin + 10**7, n_columns) + 1, dtype=np.float64)
        size = 0.05 * n_records * rank**-0.8 * rng.uniform(0.2, 1.0, rank.size) + 0.5
        alpha[begin : begin + rank.size] = np.rint(size * SHARE) * rng.choice([-1, 1], rank.size)
    return alpha


def touched_columns(n_columns, count, rng):
    """Rows of columns by the power law: popular ones often, any one now and then."""
    drawn = (n_columns ** rng.random((count // ROW, ROW))).astype(np.int64) - 1
    return ascending(np.minimum(drawn, n_columns - 1), n_columns)


def uniform_columns(n_columns, count, rng):
    return ascending(rng.integers(0, n_columns, (count // ROW, ROW)), n_columns)


def ascending(rows, n_columns):
    """Sort the columns of every row and move equal ones apart."""
    rows.sort(axis=1)
    steps = np.arange(rows.shape[1])
    apart = np.maximum.accumulate(rows - steps, axis=1) + steps
    return np.minimum(apart, n_columns - rows.shape[1] + steps).ravel()


def small_changes(count, rng):
    return rng.integers(-SHARE // 16, SHARE // 16, count)


def structures(n_columns, exponent):
    made = {
        "bucket": lambda: bucket_state(n_columns, exponent, True),
        "big-little": lambda: big_little_state(n_columns, exponent, True),
    }
    if n_columns <= LINEAR_LIMIT:
        made["noisy-max"] = lambda: GumbelState(exponent, new_counters())
        made["argmax"] = lambda: ArgmaxState(new_counters())
        made["heap"] = lambda: heap_state(n_columns)
    return {name: make() for name, make in made.items()}


def iterations_per_batch(name, n_columns, rounds):
    if name in ("noisy-max", "argmax"):
        cost = n_columns * (6e-8 if name == "noisy-max" else 1e-9)
        return max(1, min(100, int(0.1 / cost)))
    return 100 if rounds < 7 else 500


def median_times(selectors, alpha, rounds, batch, work):
    """Let the structures take turns; return the median seconds per unit of work of each.

    They share one array of gradients, so each turn undoes its changes outside the clock.
    """
    times = {name: [] for name in selectors}
    for _ in range(rounds):
        for name, selector in selectors.items():
            columns, changes, units = batch(name)
            times[name].append(seconds(partial(work, selector, columns, changes, units)) / units)
            if selector is None:
                bare(alpha, columns, -changes)
            else:
                update_only(selector, alpha, columns, -changes)
    return {name: float(np.median(values)) for name, values in times.items()}


def compare(n_columns, weights, rounds, rng):
    """Return the figures of all structures at one D and kind of weights, seconds each."""
    eps0, n_records = WEIGHTS[weights]
    alpha = power_law_gradients(n_columns, n_records, rng)
    selectors = structures(n_columns, eps0 / (2 * SHARE))
    stream = random_stream(1)
    found = {}
    for name, selector in selectors.items():
        found[name] = {"rebuild": seconds(partial(fill, selector, alpha))}
        draw_only(selector, alpha, stream, 1)
        selector.counters[:] = 0

    def no_changes(name):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, iterations_per_batch(name, n_columns, rounds)

    def draw(selector, columns, changes, units):
        draw_only(selector, alpha, stream, units)

    for name, value in median_times(selectors, alpha, rounds, no_changes, draw).items():
        counters = selectors[name].counters
        draws = rounds * iterations_per_batch(name, n_columns, rounds)
        found[name]["draw"] = value
        for label, counter in (("tries", TRIES), ("variates", VARIATES)):
            found[name][f"{label}_per_draw"] = int(counters[counter]) / draws

    for touched in (10, 500):

        def changes_of_iterations(name, touched=touched):
            units = iterations_per_batch(name, n_columns, rounds)
            columns = touched_columns(n_columns, units * touched, rng)
            return columns, small_changes(columns.size, rng), units

        def run(selector, columns, changes, units, touched=touched):
            iterate(selector, alpha, stream, columns, changes, touched)

        times = median_times(selectors, alpha, rounds, changes_of_iterations, run)
        for name, value in times.items():
            found[name][f"iteration_{touched}"] = value

    for kind, columns_of in (("update", touched_columns), ("update_uniform", uniform_columns)):
        count = 20_000 if rounds < 7 else 200_000

        def changes_alone(_, columns_of=columns_of, count=count):
            return columns_of(n_columns, count, rng), small_changes(count, rng), count

        def change(selector, columns, changes, units):
            if selector is None:
                bare(alpha, columns, changes)
            else:
                update_only(selector, alpha, columns, changes)

        for selector in selectors.values():
            selector.counters[MOVES] = 0
        times = median_times({"bare": None, **selectors}, alpha, rounds, changes_alone, change)
        for name, value in times.items():
            found.setdefault(name, {})[kind] = value
        for name, selector in selectors.items():
            moves = int(selector.counters[MOVES])
            found[name][f"moves_per_{kind}"] = moves / (2 * rounds * count)
    return found


def fitted_exponent(runs, name, figure):
    """Slope of log time against log D, from D = 10^5 on, where fixed costs have faded."""
    points = [
        (run["columns"], run["structures"][name][figure])
        for run in runs
        if run["columns"] >= 10**5 and name in run["structures"] and run["weights"] == PICTURED
    ]
    if len(points) < 2:
        return None
    sizes, times = np.log(np.array(points)).T
    return float(np.polyfit(sizes, times, 1)[0])


def measure(*, rounds: int = 7, max_columns: int = 10**8) -> dict[str, Any]:
    """Compare the structures at every D from 10^4 on, all weights."""
    sizes = [10**power for power in range(4, 9) if 10**power <= max_columns]
    rng = np.random.default_rng(1)
    # Compile before the clock runs.
    compare(sizes[0], PICTURED, 3, rng)
    runs = [
        {
            "columns": columns,
            "weights": weights,
            "structures": compare(columns, weights, rounds, rng),
        }
        for columns in sizes
        for weights in WEIGHTS
    ]
    grows = {name: fitted_exponent(runs, name, "draw") for name in ("bucket", "big-little")}
    return {"runs": runs, "exponents": grows}


def section(results: list[dict[str, Any]]) -> list[str | Table]:
    """Lay out the costs."""
    (report,) = results
    columns = {
        "draw": "draw",
        "iteration, 10 touched": "iteration_10",
        "500 touched": "iteration_500",
        "update": "update",
        "update at random": "update_uniform",
    }
    rows = [
        [
            f"{run['columns']:,}, {run['weights']}",
            name,
            *(seconds_text(row[key]) if key in row else "-" for key in columns.values()),
        ]
        for run in report["runs"]
        for name, row in run["structures"].items()
    ]
    told = f"A draw of big-little grows like D^{report['exponents']['big-little']}."
    return [Table(["columns, weights", "structure", *columns], rows), told]


def draw(results: list[dict[str, Any]], figure: Any) -> None:
    """Draw cost per draw and per update against D."""
    runs = [run for run in results[0]["runs"] if run["weights"] == PICTURED]
    axes = figure.subplots(1, 2)
    for axis, what, title in (
        (axes[0], "draw", "one draw"),
        (axes[1], "update_uniform", "one update, columns at random"),
    ):
        names = dict.fromkeys(name for run in runs for name in run["structures"])
        for k, name in enumerate(name for name in names if name != "bare"):
            own = [run for run in runs if what in run["structures"].get(name, {})]
            x = [run["columns"] for run in own]
            costs = [run["structures"][name][what] for run in own]
            axis.loglog(x, costs, "o-", color=f"C{k}", label=name)
        if what != "draw":
            x = [run["columns"] for run in runs]
            bare_costs = [run["structures"]["bare"][what] for run in runs]
            axis.loglog(x, bare_costs, "o-", color="0.5", label="alpha[k] += d alone")
        axis.set_xlabel("columns D")
        axis.set_ylabel("seconds")
        plain(axis, title, grid=True)
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=6)
