"""The paper's table 3: how many times faster the training loop is than Algorithm 1."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evidence.benchmarks.competitors import MEANING, OWN, Training, training_loop
from evidence.datasets import Spec, UnavailableError, describe, load_spec, sizes
from evidence.items import Settings, Table
from evidence.published import TABLE3
from evidence.report import COLOURS, plain, ratio, seconds_text
from evidence.timing import LoopTime, interleave, middle

TITLE = "Training loop: the paper's table 3"
TARGET = 10.0
BASES = ("algorithm-1", "scipy")
# Early steps cost more than late ones, so these are let through where there is time.
GIVEN = ("dplasso-given", "dplasso-public", "dplasso-paper")
FAST = ("dplasso", *GIVEN, "paper-system")


def measure(spec: Spec, config: Any, settings: Settings) -> dict[str, Any]:
    """Time all competitors on one data set, at each epsilon."""
    data = load_spec(spec, settings.data, settings.n_jobs)
    names = [name for name in config.competitors if name not in spec.without]
    found: dict[str, Any] = {
        "data": describe(data),
        "paper": spec.paper,
        "scale": spec.scale,
        "n_iter": config.n_iter,
        "absent": {},
        "epsilons": {},
    }
    for epsilon in config.epsilons:
        # Of all threads: what else the machine does counts for none.
        training = replace(Training.of(config, settings, epsilon), clock=time.process_time)
        runs: dict[str, Callable[[], LoopTime]] = {}
        for name in names:
            try:
                warm_up(name, data.X, training)
            except UnavailableError as error:
                found["absent"][name] = str(error)
                continue
            limit = config.limit_fast if name in FAST else config.limit
            runs[name] = partial(
                training_loop, name, data.X, data.y, replace(training, limit=limit)
            )
        timed = interleave(runs, spec.repeats or config.repeats)
        found["epsilons"][f"{epsilon:g}"] = {name: middle(times) for name, times in timed.items()}
    return found


def warm_up(name: str, X: Any, training: Training) -> None:
    """Compile what a competitor needs, on a few rows of the same types."""
    few = X[: min(X.shape[0], 50)]
    short = Training(training.radius, 4, training.epsilon, training.delta, 0.0, training.n_jobs)
    training_loop(name, few, np.arange(few.shape[0]) % 2, short)


def fastest_base(row: dict[str, Any], what: Callable[[dict[str, Any]], float]) -> float | None:
    """Return the time of the fastest Algorithm 1 there is."""
    return min((what(row[name]) for name in BASES if name in row), default=None)


def _published(found: dict[str, Any], epsilon: str) -> float | None:
    """Return the paper's speed-up of Algorithms 2 + 4 on the data set."""
    cell = TABLE3.get(found["paper"] or "", {}).get(epsilon)
    return None if cell is None else cell.sampler


def loop(times: dict[str, Any]) -> float:
    return float(times["loop"])


def whole(times: dict[str, Any]) -> float:
    return float(times["setup"] + times["loop"])


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the results."""
    ratios, times, notes = [], [], []
    for case, found in results.items():
        for epsilon, row in found["epsilons"].items():
            ratios.append(_ratio_row(label(case, found), epsilon, found, row))
            for name, one in row.items():
                scaled = one["timed_steps"] < one["n_steps"] - 1
                times.append(
                    [
                        case,
                        epsilon,
                        name,
                        seconds_text(one["setup"]),
                        seconds_text(one["loop"]),
                        seconds_text(one["loop"] / one["n_steps"]),
                        f"{one['timed_steps']:,}, scaled" if scaled else "all",
                    ]
                )
        for name, why in found["absent"].items():
            notes.append(f"{case}: {name} left out: {why}.")
    shapes = [
        [case, found["data"]["source"], sizes(found["data"])] for case, found in results.items()
    ]
    return [
        "Processor seconds of the steps alone, and with set-up from a CSR in memory. The base of "
        "the speed-ups is the faster of our own Algorithm 1 and the one by scipy. A loop that was "
        "not through at its time limit is scaled from the steps that were timed (second "
        "table). The paper's cells are for the whole data sets.",
        Table(["data set", "what", "rows x columns, non-zeros"], shapes),
        Table(
            [
                "data set",
                "epsilon",
                "dplasso loop",
                "a step",
                "over Alg. 1",
                "with set-up",
                "over own Alg. 1",
                "over scipy's",
                "N given: over scipy's",
                "N public: over scipy's",
                "paper's noise: over scipy's",
                "over Alg. 2 + noisy-max",
                "over paper's system",
                "paper's cell",
                f"{TARGET:g}x paper's",
            ],
            ratios,
        ),
        Table(
            ["data set", "epsilon", "competitor", "set-up", "loop", "a step", "steps timed"], times
        ),
        "\n".join(f"- {name}: {MEANING[name]}" for name in (*OWN, "scipy", "copt")),
        *notes,
    ]


def _ratio_row(case: str, epsilon: str, found: dict[str, Any], row: dict[str, Any]) -> list[str]:
    ours = row.get("dplasso")
    if ours is None:
        return [case, epsilon, *["-"] * 13]

    def over(name: str, fit: str = "dplasso") -> str:
        return ratio(loop(row[name]), loop(row[fit])) if {name, fit} <= row.keys() else "-"

    cell = _published(found, epsilon)
    base, whole_base = fastest_base(row, loop), fastest_base(row, whole)
    verdict = "-"
    if cell is not None and base is not None:
        verdict = _verdict(row, base / loop(ours), TARGET * cell)
    return [
        case,
        epsilon,
        seconds_text(loop(ours)),
        seconds_text(loop(ours) / ours["n_steps"]),
        "-" if base is None else ratio(base, loop(ours)),
        "-" if whole_base is None else ratio(whole_base, whole(ours)),
        over("algorithm-1"),
        over("scipy"),
        *(over("scipy", fit) for fit in GIVEN),
        over("algorithm-2"),
        over("paper-system"),
        "-" if cell is None else f"{cell:,.0f}",
        verdict,
    ]


def _verdict(row: dict[str, Any], reached: float, asked: float) -> str:
    """Return whether the speed-up asked for is reached, and over which Algorithm 1."""
    own = loop(row["algorithm-1"]) / loop(row["dplasso"]) if "algorithm-1" in row else 0.0
    if reached >= asked:
        return "reached"
    return f"{'over our own only' if own >= asked else 'not reached'} ({asked:,.0f})"


def label(case: str, found: dict[str, Any]) -> str:
    """Name a case, with its scale where it is not the whole set."""
    return case if found["scale"] == 1.0 else f"{case}, {found['scale']:g} of it"


def draw(results: dict[str, dict[str, Any]], figure: Any) -> None:
    """Draw the speed-ups beside the paper's."""
    axis = figure.subplots()
    labels, ours, papers = [], [], []
    for case, found in results.items():
        for epsilon, row in found["epsilons"].items():
            base = fastest_base(row, loop)
            if base is None or "dplasso" not in row:
                continue
            labels.append(f"{label(case, found)}\nepsilon {epsilon}")
            ours.append(base / loop(row["dplasso"]))
            papers.append(_published(found, epsilon) or np.nan)
    place = np.arange(len(labels))
    axis.bar(place - 0.2, ours, 0.4, color=COLOURS["dplasso"], label="dplasso, this machine")
    axis.bar(place + 0.2, papers, 0.4, color="#E69F00", label="the paper's system, as published")
    axis.plot(
        place, TARGET * np.array(papers), "k_", markersize=18, label=f"{TARGET:g} times the paper's"
    )
    axis.set_yscale("log")
    axis.set_ylabel("times faster than Algorithm 1")
    axis.set_xticks(place, labels, fontsize=7)
    plain(axis, legend={})
