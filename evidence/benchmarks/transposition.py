"""The other orientation of X: our transpose against scipy's ``tocsc``."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from dplasso.matrix.compressed import compress
from dplasso.matrix.transpose import transpose
from evidence.benchmarks.config import Transposition
from evidence.benchmarks.datasets import Context, describe, load, sizes
from evidence.benchmarks.tables import ratio, seconds_text, table
from evidence.benchmarks.timing import interleave, seconds

TARGET = 4.0


def cases(settings: Transposition) -> list[str]:
    return [spec.name for spec in settings.data]


def measure(case: str, settings: Transposition, context: Context) -> dict[str, Any]:
    """Time the transposes of one matrix, and see that they agree."""
    spec = next(spec for spec in settings.data if spec.name == case)
    data = load(spec, context)
    X = data.X
    rows, _ = compress(X)
    few, _ = compress(X[: min(X.shape[0], 50)])

    def tocsc() -> float:
        return seconds(X.tocsc)

    def ours(threads: int) -> float:
        return seconds(lambda: transpose(rows, X.shape[1], threads))

    runs: dict[str, Callable[[], float]] = {"scipy tocsc": tocsc}
    for threads in settings.threads:
        transpose(few, X.shape[1], threads)
        runs[f"dplasso, {threads} thread{'s' if threads > 1 else ''}"] = partial(ours, threads)
    agree = _agree(X, rows)
    timed = interleave(runs, spec.repeats or settings.repeats)
    return {
        "data": describe(data),
        "agree": agree,
        "seconds": {name: median(times) for name, times in timed.items()},
        "runs": timed,
    }


def _agree(X: Any, rows: Any) -> bool:
    """Compare the two transposes, entry by entry."""
    scipys = X.tocsc()
    ours = transpose(rows, X.shape[1], 2)
    return bool(
        np.array_equal(scipys.indptr, ours.indptr)
        and np.array_equal(scipys.indices, ours.indices)
        and (np.array_equal(scipys.data, ours.values) or not ours.values.size)
    )


def section(results: dict[str, dict[str, Any]]) -> str:
    """Write the comparison's part of the report."""
    rows, notes = [], []
    for case, found in results.items():
        base = found["seconds"]["scipy tocsc"]
        for name, time in found["seconds"].items():
            rows.append([case, sizes(found["data"]), name, seconds_text(time), ratio(base, time)])
        best = base / min(found["seconds"].values())
        notes.append(
            f"- {case}: {best:.1f} times faster than scipy (asked: {TARGET:g}): "
            f"{'reached' if best >= TARGET else 'not reached'}; the results "
            f"{'agree entry by entry' if found['agree'] else 'DO NOT AGREE'}."
        )
    return "\n\n".join(
        [
            "## Transpose",
            table(
                ["data set", "rows x columns, non-zeros", "what", "time", "faster than scipy"], rows
            ),
            "\n".join(notes),
        ]
    )


def draw(results: dict[str, dict[str, Any]], figure: Any) -> None:
    """Draw the times as bars."""
    axis = figure.subplots()
    for case, found in results.items():
        names = list(found["seconds"])
        axis.barh([f"{case}\n{name}" for name in names], [found["seconds"][name] for name in names])
    axis.set_xlabel("seconds")
    axis.invert_yaxis()
