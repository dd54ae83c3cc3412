"""Draw and update costs of every selection structure, side by side in one run.

    python -m benchmarks.selection [--json] [--quick] [--max-columns N] [--picture PATH]

An iteration is one draw and then the changes of 10 or 500 gradients; the structures take turns in
small batches, and the figures are medians over the batches. Gradients have power-law magnitudes,
changes are a fraction of one record's share at columns drawn by the same power law: what a training
loop does to them on text.
"""

import argparse
import json
import platform
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
from dplasso.selection.contract import rebuild, select, update
from dplasso.selection.counters import MOVES, POPS, TRIES, VARIATES, new_counters
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import GumbelState

SHARE = 2**32
# The exponential mechanism's eps0 for T = 1,000 and delta = 1e-6, by epsilon.
EPS0 = {"0.1": 0.001603, "1": 0.013959}
RECORDS = 1_000_000
# O(D) structures, and the heap's 26 bytes a column, end here.
LINEAR_LIMIT = 10_000_000


@njit(cache=True)
def fill(selector, alpha):
    rebuild(selector, alpha)


@njit(cache=True)
def draw_only(selector, alpha, stream, count):
    total = 0
    for _ in range(count):
        vertex, sign = select(selector, alpha, stream)
        total += vertex + sign
    return total


@njit(cache=True)
def iterate(selector, alpha, stream, columns, changes, touched):
    """One iteration per `touched` changes: a draw, then the changes."""
    for begin in range(0, columns.size, touched):
        select(selector, alpha, stream)
        for i in range(begin, begin + touched):
            k = columns[i]
            old = alpha[k]
            new = old + changes[i]
            alpha[k] = new
            update(selector, alpha, k, old, new)


@njit(cache=True)
def update_only(selector, alpha, columns, changes):
    for i in range(columns.size):
        k = columns[i]
        old = alpha[k]
        new = old + changes[i]
        alpha[k] = new
        update(selector, alpha, k, old, new)


@njit(cache=True)
def bare(alpha, columns, changes):
    for i in range(columns.size):
        alpha[columns[i]] += changes[i]


def power_law_gradients(n_columns, rng):
    """|alpha| of the column of rank r about r^-0.8, the largest 5 % of the records' shares."""
    alpha = np.empty(n_columns, dtype=np.int64)
    for begin in range(0, n_columns, 10**7):
        rank = np.arange(begin + 1, min(begin + 10**7, n_columns) + 1, dtype=np.float64)
        size = 0.05 * RECORDS * rank**-0.8 * rng.uniform(0.2, 1.0, rank.size) + 0.5
        alpha[begin : begin + rank.size] = np.rint(size * SHARE) * rng.choice([-1, 1], rank.size)
    return alpha


def touched_columns(n_columns, count, rng):
    """Columns by the power law: popular ones often, any one now and then."""
    return np.minimum((n_columns ** rng.random(count)).astype(np.int64), n_columns) - 1


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
        cost = n_columns * (5e-8 if name == "noisy-max" else 1e-9)
        return max(1, min(100, int(0.05 / cost)))
    return 100 if quick else 400


def compare(n_columns, epsilon, quick, rng):
    """Return the figures of all structures at one D and epsilon."""
    exponent = EPS0[epsilon] / (2 * SHARE)
    start = power_law_gradients(n_columns, rng)
    found = {}
    alphas = {}
    selectors = structures(n_columns, exponent)
    stream = random_stream(1)
    for name, selector in selectors.items():
        # The structures' own copies, so that all see the same changes; one copy at a time is big.
        alphas[name] = start.copy() if n_columns <= LINEAR_LIMIT else start
        fill(selector, alphas[name])
        draw_only(selector, alphas[name], stream, 1)
        selector.counters[:] = 0
    rounds = 3 if quick else 9
    for touched in (10, 500):
        times = {name: [] for name in selectors}
        for _ in range(rounds):
            for name, selector in selectors.items():
                count = iterations_per_batch(name, n_columns, quick)
                columns = touched_columns(n_columns, count * touched, rng)
                changes = small_changes(columns.size, rng)
                alpha = alphas[name]
                if alpha is start and name != "bucket":
                    # The structures share one array: this one's copy is out of date.
                    fill(selector, alpha)
                spent = seconds(iterate, selector, alpha, stream, columns, changes, touched)
                times[name].append(spent / count)
                if alpha is start and name != "bucket":
                    bare(alpha, columns, -changes)
        for name, batch in times.items():
            found.setdefault(name, {})[f"iteration_{touched}"] = float(np.median(batch))
    draws = {name: [] for name in selectors}
    for name, selector in selectors.items():
        fill(selector, alphas[name])
        selector.counters[:] = 0
    drawn = dict.fromkeys(selectors, 0)
    for _ in range(rounds):
        for name, selector in selectors.items():
            count = iterations_per_batch(name, n_columns, quick)
            draws[name].append(seconds(draw_only, selector, alphas[name], stream, count) / count)
            drawn[name] += count
    for name, selector in selectors.items():
        found[name]["draw"] = float(np.median(draws[name]))
        found[name]["tries_per_draw"] = selector.counters[TRIES] / drawn[name]
        found[name]["variates_per_draw"] = selector.counters[VARIATES] / drawn[name]
    updates = {name: [] for name in ("bare", *found)}
    moved = dict.fromkeys(selectors, 0)
    count = 20_000 if quick else 100_000
    for _ in range(rounds):
        columns = touched_columns(n_columns, count, rng)
        changes = small_changes(count, rng)
        spent = seconds(bare, start, columns, changes)
        updates["bare"].append(spent / count)
        bare(start, columns, -changes)
        for name, selector in selectors.items():
            selector.counters[MOVES] = 0
            updates[name].append(
                seconds(update_only, selector, alphas[name], columns, changes) / count
            )
            moved[name] += int(selector.counters[MOVES])
            update_only(selector, alphas[name], columns, -changes)
    for name in selectors:
        found[name]["update"] = float(np.median(updates[name]))
        found[name]["moves_per_update"] = moved[name] / (rounds * count)
    found["bare"] = {"update": float(np.median(updates["bare"]))}
    return found
