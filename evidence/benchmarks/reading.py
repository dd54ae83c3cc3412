"""svmlight text to a matrix: our reader against scikit-learn's, on the same file, side by side.

    python -m evidence benchmarks/reading --files FILE.svm FILE.svm.gz

Each file is read by both in turn; the matrices are compared entry by entry. Processor time is
given beside time on the clock, because our reader uses several threads and a busy machine has
none to spare.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from dplasso.data.source_files import COMPRESSED_SUFFIXES
from dplasso.runtime.threads import usable_cores
from evidence.items import Table
from evidence.report import ratio, seconds_text
from evidence.svmlight import read_svmlight
from evidence.timing import clocks, interleave

TARGET = 8.0
PEER = "scikit-learn"
TITLE = "Reading svmlight text"
QUICK = {"repeats": 2}


def split(
    files: list[Path], threads: list[int] | None = None, repeats: int = 5
) -> dict[str, dict[str, Any]]:
    """Return the readings: one for each file, with one thread and all cores if not said."""
    counts = threads or sorted({1, usable_cores()})
    return {path.name: {"path": path, "threads": counts, "repeats": repeats} for path in files}


def measure(path: Path, threads: list[int], repeats: int) -> dict[str, Any]:
    """Time the readers on one file, and see that they agree."""
    theirs, their_labels = load_svmlight_file(str(path), dtype=np.float32, zero_based=False)
    ours, labels = read_svmlight(path)
    agree = (
        ours.shape == theirs.shape
        and np.array_equal(ours.indptr, theirs.indptr)
        and np.array_equal(ours.indices, theirs.indices)
        and np.array_equal(ours.data, theirs.data)
        and np.array_equal(labels, their_labels)
    )
    description = {
        "file": path.name,
        "bytes": path.stat().st_size,
        "rows": ours.shape[0],
        "columns": ours.shape[1],
        "nnz": ours.nnz,
    }
    del theirs, ours
    runs: dict[str, Callable[[], tuple[float, float]]] = {
        PEER: lambda: clocks(
            lambda: load_svmlight_file(str(path), dtype=np.float32, zero_based=False)
        )
    }
    for n in threads:
        name = f"dplasso, {n} thread{'s' if n > 1 else ''}"
        runs[name] = lambda n=n: clocks(lambda: read_svmlight(path, n_threads=n))
    timed = interleave(runs, repeats)
    return {
        "data": description,
        "agree": bool(agree),
        "seconds": {name: median(wall for wall, _ in times) for name, times in timed.items()},
        "processor_seconds": {
            name: median(used for _, used in times) for name, times in timed.items()
        },
        "runs": timed,
    }


def section(results: list[dict[str, Any]]) -> list[str | Table]:
    """Lay out the comparison."""
    rows, notes = [], []
    for found in results:
        data, base = found["data"], found["seconds"][PEER]
        used_base = found["processor_seconds"][PEER]
        for name, wall in found["seconds"].items():
            used = found["processor_seconds"][name]
            rows.append(
                [
                    f"{data['file']}, {data['bytes'] / 1e6:,.0f} MB",
                    name,
                    seconds_text(wall),
                    ratio(base, wall),
                    seconds_text(used),
                    ratio(used_base, used),
                ]
            )
        best = base / min(found["seconds"].values())
        asked = ""
        if not data["file"].endswith(COMPRESSED_SUFFIXES):
            reached = "reached" if best >= TARGET else "not reached"
            asked = f" (asked of plain text: {TARGET:g}, {reached})"
        notes.append(
            f"- {data['file']}: {best:.1f} times faster than scikit-learn{asked}; the matrices "
            f"{'agree entry by entry' if found['agree'] else 'DO NOT AGREE'}."
        )
    head = ["file", "reader", "time", "faster", "processor time", "less"]
    return [Table(head, rows), "\n".join(notes)]
