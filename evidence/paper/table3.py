"""Table 3: how many times faster than Algorithm 1 the private training loop is."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.cells import Cell
from evidence.items import Item, Settings, Table
from evidence.published import TABLE3
from evidence.report import COLOURS, plain
from evidence.timing import race

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (1.0, 0.1)
DELTA = 1e-6
RADIUS = 50.0
ITERATIONS = 4000
_STALE = {"mechanism": "paper", "drift_tol": None}
METHODS: dict[str, dict[str, Any]] = {
    "algorithm-1": {"mechanism": "paper", "solver": "standard", "selector": "noisy-max"},
    "algorithm-2+4": {**_STALE, "selector": "big-little"},
    "algorithm-2": {**_STALE, "selector": "noisy-max"},
    "dplasso": {},
}
FAST = tuple(name for name in METHODS if name != "algorithm-1")


def _race(epsilon: float, settings: Settings, X: Any, y: Any, advance: Any) -> dict[str, Any]:
    """Time all methods on one data set at one epsilon, taking turns."""
    common = {
        "n_iter": settings.iterations or ITERATIONS,
        "epsilon": epsilon,
        "delta": DELTA,
        "l1_radius": RADIUS,
        "n_jobs": settings.n_jobs,
        "fit_intercept": False,
        "classes": (0, 1),
    }
    methods = {name: common | own for name, own in METHODS.items()}
    return race(methods, X, y, settings.limit, settings.repeats, advance)


def cells(settings: Settings) -> list[Cell]:
    """List the races: every data set at both epsilons."""
    parameters = {
        "n_iter": settings.iterations or ITERATIONS,
        "radius": RADIUS,
        "delta": DELTA,
        "repeats": settings.repeats,
        "limit": settings.limit,
        "n_jobs": settings.n_jobs,
    }
    # Set-up of each run, and up to `limit` seconds of steps, at some 10 ns an entry.
    return [
        Cell(
            "table3",
            f"epsilon-{epsilon:g}",
            partial(_race, epsilon, settings),
            {**parameters, "epsilon": epsilon},
            source,
            4 * settings.repeats * (source.entries * 2e-8 + settings.limit) * 1e9,
            machine=True,
        )
        for source in settings.sources
        for epsilon in EPSILONS
    ]


def present(settings: Settings, results: list[dict[str, Any]]) -> Item:
    """Lay out the speed-ups beside the published ones."""
    rows, data = [], []
    for cell, timed in zip(cells(settings), results, strict=True):
        source = cell.source
        assert source is not None
        epsilon = f"{cell.parameters['epsilon']:g}"
        published = TABLE3.get(source.published or "", {}).get(epsilon)
        standard = timed["algorithm-1"]
        loops = {name: standard["loop"] / timed[name]["loop"] for name in FAST}
        wholes = {
            name: (standard["setup"] + standard["loop"])
            / (timed[name]["setup"] + timed[name]["loop"])
            for name in FAST
        }
        rows.append(
            (
                source.label,
                epsilon,
                f"{1e3 * standard['loop'] / standard['n_steps']:.3g} ms",
                *(f"{loops[name]:.3g} ({wholes[name]:.3g})" for name in FAST),
                "-" if published is None else f"{published.sampler:,.2f}",
                "-" if published is None else f"{published.ablation:,.2f}",
            )
        )
        reported = {}
        if published is not None:
            reported = {"algorithm-2+4": published.sampler, "algorithm-2": published.ablation}
        for name, one in timed.items():
            times = one["setup"], one["loop"], one["timed_steps"], one["n_steps"]
            ratios = loops.get(name, 1.0), wholes.get(name, 1.0), reported.get(name)
            data.append((source.label, source.title, epsilon, name, *times, *ratios))
    n_iter = settings.iterations or ITERATIONS
    head = ("data set", "epsilon", "a step of Alg. 1", "Alg. 2+4", "Alg. 2", "dplasso")
    head += ("paper: Alg. 2+4", "paper: Alg. 2")
    return Item(
        "table3",
        f"Table 3: times faster than Algorithm 1, T {n_iter:,}, radius {RADIUS:g}",
        (
            "Steps alone, and in brackets with set-up from a matrix in memory. Algorithm 1, "
            "Algorithms 2 + 4 and the ablation (Algorithm 2 with the noisy maximum) run the "
            "paper's own way (`mechanism='paper'`, stale rows); dplasso with its defaults, which "
            f"are private. Medians of {settings.repeats} runs that took turns. A run that was not "
            f"through after {settings.limit:g} s of steps was stopped and scaled to all its steps "
            "(the CSV file has the number of steps timed); that is so for Algorithm 1 nearly "
            "always. The paper's cells are for the whole data sets.",
            *(f"`{s.label}`: {s.title}." for s in settings.sources if s.kind == "synthetic"),
            Table(head, rows),
        ),
        (
            *("data", "title", "epsilon", "method"),
            *("setup_seconds", "loop_seconds", "timed_steps", "n_steps"),
            *("speedup_loop", "speedup_whole", "speedup_published"),
        ),
        tuple(data),
        lambda figure: _draw(figure, data),
        (max(6.0, 1.1 * len(rows)), 4.0),
    )


def _draw(figure: "Figure", data: list[tuple[Any, ...]]) -> None:
    axis = figure.subplots()
    labels = list(dict.fromkeys((row[0], row[2]) for row in data))
    place = np.arange(len(labels))
    bars = [(name, f"{name}, measured", 8) for name in FAST]
    bars += [(name, f"{name}, the paper's", 10) for name in ("algorithm-2+4", "algorithm-2")]
    colours = (*(COLOURS[name] for name in FAST), "#999999", "#CCCCCC")
    for k, ((name, text, column), colour) in enumerate(zip(bars, colours, strict=True)):
        found = {(row[0], row[2]): row[column] for row in data if row[3] == name}
        height = [found[label] or np.nan for label in labels]
        axis.bar(place + 0.17 * (k - 2), height, 0.16, label=text, color=colour)
    axis.axhline(1.0, color="black", linewidth=0.6)
    axis.set_yscale("log")
    axis.set_ylabel("times faster than Algorithm 1 (steps)")
    names = [f"{data_set}, epsilon {epsilon}" for data_set, epsilon in labels]
    axis.set_xticks(place, names, fontsize=7, rotation=20, ha="right")
    axis.set_ylim(top=axis.get_ylim()[1] * 6)
    plain(axis, legend={"ncols": 3, "loc": "upper center"})
