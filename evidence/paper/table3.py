"""Table 3: how many times faster than Algorithm 1 the private training loop is."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dplasso.errors import PrivacyLeakWarning
from evidence.paper.cells import Advance, Cell
from evidence.paper.items import Item, Settings
from evidence.paper.published import TABLE3

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


@dataclass(frozen=True)
class _Race:
    """Time all methods on one data set at one epsilon, taking turns."""

    epsilon: float
    settings: Settings

    def __call__(self, X: Any, y: Any, advance: Advance) -> dict[str, Any]:
        import warnings

        from evidence.paper.timing import LoopTime, interleave, middle, time_fit

        n_iter = self.settings.iterations or ITERATIONS
        few = X[: min(50, X.shape[0])]
        turns, done = len(METHODS) * self.settings.repeats, 0

        def run(parameters: dict[str, Any]) -> LoopTime:
            nonlocal done
            found = time_fit(X, y, self.settings.limit, n_iter=n_iter, **parameters)[0]
            done += 1
            advance(done / turns)
            return found

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            runs = {}
            for name, own in METHODS.items():
                parameters = {
                    "epsilon": self.epsilon,
                    "delta": DELTA,
                    "l1_radius": RADIUS,
                    "n_jobs": self.settings.n_jobs,
                    "fit_intercept": False,
                    "classes": (0, 1),
                    **own,
                }
                # Compiles what is needed.
                time_fit(few, np.arange(few.shape[0]) % 2, 0.0, n_iter=4, **parameters)
                runs[name] = partial(run, parameters)
            timed = interleave(runs, self.settings.repeats)
        return {name: middle(times) for name, times in timed.items()}


def cells(settings: Settings) -> list[Cell]:
    """List the races: every data set at both epsilons."""
    n_iter = settings.iterations or ITERATIONS
    parameters = {
        "n_iter": n_iter,
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
            source,
            {**parameters, "epsilon": epsilon},
            4 * settings.repeats * (source.entries * 2e-8 + settings.limit) * 1e9,
            _Race(epsilon, settings),
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
        reported = (
            {}
            if published is None
            else {
                "algorithm-2+4": published.sampler,
                "algorithm-2": published.ablation,
            }
        )
        for name, one in timed.items():
            data.append(
                (
                    source.label,
                    source.title,
                    epsilon,
                    name,
                    one["setup"],
                    one["loop"],
                    one["timed_steps"],
                    one["n_steps"],
                    loops.get(name, 1.0),
                    wholes.get(name, 1.0),
                    reported.get(name),
                )
            )
    n_iter = settings.iterations or ITERATIONS
    return Item(
        name="table3",
        title=f"Table 3: times faster than Algorithm 1, T {n_iter:,}, radius {RADIUS:g}",
        paragraphs=(
            "Steps alone, and in brackets with set-up from a matrix in memory. Algorithm 1, "
            "Algorithms 2 + 4 and the ablation (Algorithm 2 with the noisy maximum) run the "
            "paper's own way (`mechanism='paper'`, stale rows); dplasso with its defaults, which "
            f"are private. Medians of {settings.repeats} runs that took turns. A run that was not "
            f"through after {settings.limit:g} s of steps was stopped and scaled to all its steps "
            "(the CSV file has the number of steps timed); that is so for Algorithm 1 nearly "
            "always. The paper's cells are for the whole data sets.",
            *(f"`{s.label}`: {s.title}." for s in settings.sources if s.kind == "twin"),
        ),
        head=(
            "data set",
            "epsilon",
            "a step of Alg. 1",
            "Alg. 2+4",
            "Alg. 2",
            "dplasso",
            "paper: Alg. 2+4",
            "paper: Alg. 2",
        ),
        rows=tuple(rows),
        data_head=(
            "data",
            "title",
            "epsilon",
            "method",
            "setup_seconds",
            "loop_seconds",
            "timed_steps",
            "n_steps",
            "speedup_loop",
            "speedup_whole",
            "speedup_published",
        ),
        data_rows=tuple(data),
        draw=lambda figure: _draw(figure, data),
        size=(max(6.0, 1.1 * len(rows)), 4.0),
    )


def _draw(figure: "Figure", data: list[tuple[Any, ...]]) -> None:
    axis = figure.subplots()
    labels = list(dict.fromkeys((row[0], row[2]) for row in data))
    place = np.arange(len(labels))
    bars = [(name, f"{name}, measured", 8) for name in FAST]
    bars += [(name, f"{name}, the paper's", 10) for name in ("algorithm-2+4", "algorithm-2")]
    colours = ("#D55E00", "#E69F00", "#0072B2", "#999999", "#CCCCCC")
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
    axis.legend(frameon=False, fontsize=7, ncols=3, loc="upper center")
    axis.spines[["top", "right"]].set_visible(False)
