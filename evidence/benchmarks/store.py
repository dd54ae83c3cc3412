"""Converting to a store: its rate against the disk's own, and the memory it takes.

    python -m evidence benchmarks/store --entries 300e6 --columns 5e6 --memory 1e9

Raw writes and conversions take turns. The raw rate is that of 16 MiB writes to a new file of the
store's size, up to the end of its fsync; the rate of a conversion is the size of the finished store
over the time from the first record to the moment the store is on the disk, with records made in
memory beforehand.
"""

import os
import resource
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from evidence.cells import in_own_process
from evidence.machine import status

_WRITE_BYTES = 1 << 24
_BLOCK_ENTRIES = 2_000_000
_DISTINCT_BLOCKS = 8
TITLE = "Converting to a store"
QUICK = {"entries": 2e6, "columns": 1e5, "memory": 2e8, "repeats": 1}


def raw_write(directory: Path, n_bytes: int) -> float:
    """Return the bytes per second of one large file, fsync included."""
    path = directory / "raw.bin"
    data = os.urandom(_WRITE_BYTES)
    began = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(-(-n_bytes // _WRITE_BYTES)):
            file.write(data)
        os.fsync(file.fileno())
    rate = n_bytes / (time.perf_counter() - began)
    path.unlink()
    return rate


def records(n_entries: int, n_columns: int, row_length: int, *, binary: bool) -> Any:
    """Return records with columns of power-law popularity, scattered over all column numbers."""
    from dplasso.data.blocks import BlockSource, RowBlock

    rng = np.random.default_rng(0)
    n_rows = _BLOCK_ENTRIES // row_length
    made = []
    for _ in range(_DISTINCT_BLOCKS):
        rank = n_columns ** rng.random((n_rows, row_length))
        columns = rank.astype(np.int64) * 2_654_435_761 % n_columns
        columns.sort(axis=1)
        keep = np.ones(columns.shape, bool)
        keep[:, 1:] = columns[:, 1:] != columns[:, :-1]
        indptr = np.append(0, np.cumsum(keep.sum(axis=1)))
        indices = columns[keep].astype(np.int32)
        values = np.ones(indices.size, np.float32)
        if not binary:
            values[:] = rng.random(indices.size, dtype=np.float32)
        made.append(RowBlock(indptr, indices, values, rng.integers(0, 2, n_rows)))

    def blocks(_memory: int, progress: Any = None) -> Any:
        done = number = 0
        while done < n_entries:
            block = made[number % len(made)]
            yield block
            done, number = done + block.indices.size, number + 1
            if progress:
                progress(done, n_entries)

    return BlockSource("generated records", n_columns, blocks, n_entries)


class AnonymousPeak:
    """Watches the process's anonymous memory from a thread."""

    def __init__(self) -> None:
        self.start = self.peak = status("self", "RssAnon")["RssAnon"]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.peak = max(self.peak, status("self", "RssAnon")["RssAnon"])

    def stop(self) -> int:
        """Return the most bytes seen."""
        self._stop.set()
        self._thread.join()
        return self.peak


def convert(
    target: Path, entries: float, columns: float, row_length: int, memory: float, **more: Any
) -> dict[str, Any]:
    """Convert in this process, and return what was measured."""
    from dplasso.data.store import write_blocks

    shape = int(columns), row_length
    for name, few in (("few", 1_000_000), ("store", int(entries))):
        source = records(few, *shape, binary=more["binary"])
        peak = AnonymousPeak()
        began = time.perf_counter()
        store = write_blocks(source, target / name, memory=int(memory))
        spent = time.perf_counter() - began
        anonymous = peak.stop()
    size = sum(file.stat().st_size for file in (target / "store").iterdir())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "nnz": store.nnz,
        "bytes": size,
        "seconds": spent,
        "rate": size / spent,
        "anonymous_peak": anonymous,
        "anonymous_before": peak.start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "disk_written": usage.ru_oublock * 512,
        "disk_read": usage.ru_inblock * 512,
    }


def measure(
    *,
    entries: float = 100e6,
    columns: float = 5e6,
    row_length: int = 200,
    memory: float = 1e9,
    binary: bool = False,
    repeats: int = 3,
    directory: Path | None = None,
) -> dict[str, Any]:
    """Run raw writes and conversions in turn, on the disk of a folder."""
    runs = []
    # Fresh blocks of a disk may be slower than used ones: measure it on both sides.
    size = int(entries) * (4 if binary else 8)
    shape = {"entries": entries, "columns": columns, "row_length": row_length, "memory": memory}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            before = raw_write(Path(folder), size)
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            work = partial(convert, Path(folder), **shape, binary=binary)
            found, _ = in_own_process(work)
        if "failure" in found:
            return found
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            runs.append(found | {"raw_rate": (before + raw_write(Path(folder), size)) / 2})
    return {"memory": memory, "runs": runs}


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the medians of the rates, in words."""
    (found,) = results
    runs = found["runs"]
    rate, raw = (median(run[name] for run in runs) for name in ("rate", "raw_rate"))
    peak = max(run["anonymous_peak"] for run in runs)
    return [
        f"store of {runs[0]['bytes'] / 1e9:.2f} GB, {runs[0]['nnz']:,} entries: "
        f"{median(run['seconds'] for run in runs):.1f} s, {rate / 1e6:.0f} MB/s; "
        f"disk alone {raw / 1e6:.0f} MB/s; ratio {rate / raw:.2f} (asked: 0.33)",
        f"anonymous memory at most {peak / 1e6:.0f} MB, {peak / found['memory']:.2f} of --memory "
        "(asked: at most 1.2)",
    ]
