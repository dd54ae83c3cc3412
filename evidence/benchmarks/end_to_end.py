"""A whole private fit from a CSR in memory, against one product and other libraries' fits."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from dplasso import DPFrankWolfeClassifier, DPLassoClassifier
from evidence.benchmarks.competitors import Training, fit_seconds, own_parameters, product_seconds
from evidence.datasets import Spec, UnavailableError, describe, load_spec, sizes
from evidence.items import Settings, Table
from evidence.report import ratio, seconds_text
from evidence.timing import interleave, seconds

TITLE = "End to end"
# Figures asked for: fits of ours take at most so many products, and the paper's is at least so many
# times faster than liblinear.
PRODUCTS, LIBLINEAR = {"dplasso": 10.0, "default": 5.0}, 10.0


def measure(spec: Spec, config: Any, settings: Settings) -> dict[str, Any]:
    """Time whole fits on one data set."""
    data = load_spec(spec, settings.data, settings.n_jobs)
    training = Training.of(config, settings, config.epsilon)
    absent: dict[str, str] = {}
    runs: dict[str, Callable[[], float]] = {}
    for name in config.competitors:
        run = partial(_run, name, config, training)
        try:
            few = data.X[: min(data.X.shape[0], 50)]
            # Compiles, where there is something to compile.
            run(few, np.arange(few.shape[0]) % 2)
        except UnavailableError as error:
            absent[name] = str(error)
            continue
        runs[name] = partial(run, data.X, data.y)
    timed = interleave(runs, spec.repeats or config.repeats)
    return {
        "data": describe(data),
        "n_iter": config.n_iter,
        "epsilon": config.epsilon,
        "passes": config.passes,
        "absent": absent,
        "seconds": {name: median(times) for name, times in timed.items()},
        "runs": timed,
    }


def _run(name: str, config: Any, training: Training, X: Any, y: Any) -> float:
    if name == "product":
        return product_seconds(X)
    if name == "product32":
        return product_seconds(X, np.float32)
    if name in PRODUCTS:
        parameters = own_parameters("dplasso", training)
        kind: type[Any] = DPFrankWolfeClassifier
        if name == "default":
            parameters = {key: parameters[key] for key in ("epsilon", "delta", "classes", "n_jobs")}
            kind = DPLassoClassifier
        model = kind(**parameters)
        return seconds(lambda: model.fit(X, y))
    return fit_seconds(name, X, y, config.inverse_penalty, config.passes)


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the results."""
    rows, notes = [], []
    for case, found in results.items():
        times = found["seconds"]
        ours = times.get("dplasso")
        for name, time in times.items():
            what = {
                "dplasso": f"the paper's steps, {found['n_iter']:,}, epsilon {found['epsilon']:g}",
                "default": f"DPLassoClassifier's defaults, epsilon {found['epsilon']:g}",
                "product": "one X.T @ r by scipy, r float64",
                "product32": "one X.T @ r by scipy, r float32 as X",
                "liblinear": "liblinear, L1",
                "saga": f"saga, L1, {found['passes']} passes",
                "skglm": "skglm, sparse logistic regression",
            }.get(name, name)
            rows.append(
                [case, what, seconds_text(time), "-" if ours is None else ratio(time, ours)]
            )
        for name, asked in PRODUCTS.items():
            if {name, "product"} <= times.keys():
                products = times[name] / times["product"]
                notes.append(
                    f"{case}: {name} takes {products:.1f} float64 products (asked: {asked:g}): "
                    f"{'reached' if products <= asked else 'not reached'}."
                )
        if ours is not None and "liblinear" in times:
            faster = times["liblinear"] / ours
            notes.append(
                f"{case}: {faster:.1f} times faster than liblinear (asked: {LIBLINEAR:g}): "
                f"{'reached' if faster >= LIBLINEAR else 'not reached'}."
            )
        notes.extend(f"{case}: {name} left out: {why}." for name, why in found["absent"].items())
    shapes = [
        [case, found["data"]["source"], sizes(found["data"])] for case, found in results.items()
    ]
    return [
        "From a CSR in memory to a fitted model; the others fit without privacy and without "
        "intercept, at the same penalty.",
        Table(["data set", "what", "rows x columns, non-zeros"], shapes),
        Table(["data set", "what", "time", "over dplasso's"], rows),
        "\n".join(f"- {note}" for note in notes),
    ]
