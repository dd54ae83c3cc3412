"""Draw and update costs of every selection structure, side by side in one run.

    python -m evidence.benchmarks.selection [--json] [--quick] [--max-columns N] [--picture PATH]

An iteration is one draw and then the changes of 10 or 500 gradients; the structures take turns in
small batches, and the figures are medians over the batches. Gradients have power-law magnitudes,
changes are a fraction of one record's share at columns drawn by the same power law: what a training
loop does to them on text.
"""

import argparse
import json
import platform
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numba import njit

from dplasso.privacy.randomness import random_stream
from dplasso.selection.argmax import ArgmaxState
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.contract import granularity, rebuild, select, update_many
from dplasso.selection.counters import MOVES, TRIES, VARIATES, new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import GumbelState
from evidence.benchmarks.heap import heap_pops

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
    report_shift = granularity(selector)
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


def seconds(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def iterations_per_batch(name, n_columns, quick):
    if name in ("noisy-max", "argmax"):
        cost = n_columns * (6e-8 if name == "noisy-max" else 1e-9)
        return max(1, min(100, int(0.1 / cost)))
    return 100 if quick else 500


def median_times(selectors, alpha, rounds, batch, work):
    """Let the structures take turns; return the median seconds per unit of work of each.

    They share one array of gradients, so each turn undoes its changes outside the clock.
    """
    times = {name: [] for name in selectors}
    for _ in range(rounds):
        for name, selector in selectors.items():
            columns, changes, units = batch(name)
            times[name].append(seconds(work, selector, columns, changes, units) / units)
            if selector is None:
                bare(alpha, columns, -changes)
            else:
                update_only(selector, alpha, columns, -changes)
    return {name: float(np.median(values)) for name, values in times.items()}


def compare(n_columns, weights, quick, rng):
    """Return the figures of all structures at one D and kind of weights, seconds each."""
    eps0, n_records = WEIGHTS[weights]
    alpha = power_law_gradients(n_columns, n_records, rng)
    selectors = structures(n_columns, eps0 / (2 * SHARE))
    stream = random_stream(1)
    rounds = 3 if quick else 7
    found = {}
    for name, selector in selectors.items():
        found[name] = {"rebuild": seconds(fill, selector, alpha)}
        draw_only(selector, alpha, stream, 1)
        selector.counters[:] = 0

    def no_changes(name):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, iterations_per_batch(name, n_columns, quick)

    def draw(selector, columns, changes, units):  # noqa: ARG001
        draw_only(selector, alpha, stream, units)

    for name, value in median_times(selectors, alpha, rounds, no_changes, draw).items():
        counters = selectors[name].counters
        draws = rounds * iterations_per_batch(name, n_columns, quick)
        found[name]["draw"] = value
        for label, counter in (("tries", TRIES), ("variates", VARIATES)):
            found[name][f"{label}_per_draw"] = int(counters[counter]) / draws

    for touched in (10, 500):

        def changes_of_iterations(name, touched=touched):
            units = iterations_per_batch(name, n_columns, quick)
            columns = touched_columns(n_columns, units * touched, rng)
            return columns, small_changes(columns.size, rng), units

        def run(selector, columns, changes, units, touched=touched):  # noqa: ARG001
            iterate(selector, alpha, stream, columns, changes, touched)

        times = median_times(selectors, alpha, rounds, changes_of_iterations, run)
        for name, value in times.items():
            found[name][f"iteration_{touched}"] = value

    for kind, columns_of in (("update", touched_columns), ("update_uniform", uniform_columns)):
        count = 20_000 if quick else 200_000

        def changes_alone(_, columns_of=columns_of, count=count):
            return columns_of(n_columns, count, rng), small_changes(count, rng), count

        def change(selector, columns, changes, units):  # noqa: ARG001
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


def ratios(runs):
    """Return the figures asked of the default structure, from the runs at hand."""
    found = {}
    for weights in WEIGHTS:
        by_size = {run["columns"]: run["structures"] for run in runs if run["weights"] == weights}
        smallest, largest = min(by_size), max(by_size)
        first, last = by_size[smallest], by_size[largest]
        found[weights] = one = {
            f"bucket draw, {largest} over {smallest} columns": (
                last["bucket"]["draw"] / first["bucket"]["draw"]
            ),
        }
        for columns, structures_at in by_size.items():
            bucket = structures_at["bucket"]
            for kind in ("update", "update_uniform"):
                one[f"bucket {kind} over bare, {columns} columns"] = (
                    bucket[kind] / structures_at["bare"][kind]
                )
            for other in ("big-little", "noisy-max"):
                if other in structures_at:
                    one[f"{other} over bucket, 10 touched, {columns} columns"] = (
                        structures_at[other]["iteration_10"] / bucket["iteration_10"]
                    )
    return found


def picture(report, path):
    """Draw cost per draw and per update against D."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {
        "bucket": "C0",
        "big-little": "C1",
        "heap": "C2",
        "noisy-max": "C3",
        "argmax": "C4",
        "bare": "0.5",
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for axis, what, title in (
        (axes[0], "draw", "one draw"),
        (axes[1], "update_uniform", "one update, columns at random"),
    ):
        for name, colour in colours.items():
            points = [
                (run["columns"], run["structures"][name][what])
                for run in report["runs"]
                if run["weights"] == PICTURED and what in run["structures"].get(name, {})
            ]
            if points:
                label = "alpha[k] += d alone" if name == "bare" else name
                axis.loglog(*zip(*points, strict=True), "o-", color=colour, label=label)
        axis.set_xlabel("columns D")
        axis.set_ylabel("seconds")
        axis.set_title(title)
        axis.grid(alpha=0.3)
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def show(report):
    for run in report["runs"]:
        print(f"D = {run['columns']:,}, {run['weights']}")
        for name, row in run["structures"].items():
            cells = [
                f"{label} {row[key] * scale:10.3f} {unit}"
                for label, key, scale, unit in (
                    ("draw", "draw", 1e6, "us"),
                    ("iteration, 10 touched", "iteration_10", 1e6, "us"),
                    ("500 touched", "iteration_500", 1e6, "us"),
                    ("update", "update", 1e9, "ns"),
                    ("at random", "update_uniform", 1e9, "ns"),
                )
                if key in row
            ]
            print(f"  {name:10s} {'  '.join(cells)}")
    for group, values in report["ratios"].items():
        for what, value in values.items():
            print(f"{group}: {what}: {value:.2f}")
    print(f"draw of big-little grows like D^{report['exponents']['big-little']}")
    print(f"heap: {report['heap']}")


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m evidence.benchmarks.selection", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, at most 10^6 columns")
    parser.add_argument("--max-columns", type=int, default=10**8, help="largest D (10^8)")
    parser.add_argument("--picture", help="write the picture of cost against D here (PNG)")
    chosen = parser.parse_args(arguments)
    largest = min(chosen.max_columns, 10**6) if chosen.quick else chosen.max_columns
    sizes = [10**power for power in range(4, 9) if 10**power <= largest]
    rng = np.random.default_rng(1)
    # Compile before the clock runs.
    compare(sizes[0], PICTURED, True, rng)
    runs = []
    for columns in sizes:
        for weights in WEIGHTS:
            if not chosen.json:
                print(f"{columns:,} columns, {weights} ...", file=sys.stderr)
            found = compare(columns, weights, chosen.quick, rng)
            runs.append({"columns": columns, "weights": weights, "structures": found})
    report = {
        "machine": platform.processor() or platform.machine(),
        "versions": {name: version(name) for name in ("dplasso", "numba", "numpy")},
        "runs": runs,
        "ratios": ratios(runs),
        "exponents": {
            name: fitted_exponent(runs, name, "draw") for name in ("bucket", "big-little")
        },
        "heap": heap_pops(chosen.quick),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if chosen.picture:
        picture(report, chosen.picture)
    if chosen.json:
        print(json.dumps(report, indent=1))
    else:
        show(report)


if __name__ == "__main__":
    main(sys.argv[1:])
