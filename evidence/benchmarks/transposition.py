"""The other orientation of X: our transpose against scipy's ``tocsc``."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from dplasso.matrix.compressed import compress
from dplasso.matrix.orientations import transpose
from evidence.datasets import Spec, describe, load_spec, sizes
from evidence.items import Settings, Table
from evidence.report import ratio, seconds_text
from evidence.timing import interleave, seconds

TITLE = "Transpose"
TARGET = 4.0


def measure(spec: Spec, config: Any, settings: Settings) -> dict[str, Any]:
    """Time the transposes of one matrix, and see that they agree."""
    data = load_spec(spec, settings.data, settings.n_jobs)
    X = data.X
    rows, _ = compress(X)
    few, _ = compress(X[: min(X.shape[0], 50)])

    def tocsc() -> float:
        return seconds(X.tocsc)

    def ours(threads: int) -> float:
        return seconds(lambda: transpose(rows, X.shape[1], threads))

    runs: dict[str, Callable[[], float]] = {"scipy tocsc": tocsc}
    for threads in config.threads:
        transpose(few, X.shape[1], threads)
        runs[f"dplasso, {threads} thread{'s' if threads > 1 else ''}"] = partial(ours, threads)
    agree = _agree(X, rows)
    timed = interleave(runs, spec.repeats or config.repeats)
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


def section(results: dict[str, dict[str, Any]]) -> list[str | Table]:
    """Lay out the results."""
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
    return [
        Table(["data set", "rows x columns, non-zeros", "what", "time", "faster than scipy"], rows),
        "\n".join(notes),
    ]
