"""Converting to a store: its rate against the disk's own, and the memory it takes.

    python -m evidence.benchmarks.store --entries 300e6 --columns 5e6 --memory 1e9

Raw writes and conversions take turns. The raw rate is that of 16 MiB writes to a new file of the
store's size, up to the end of its fsync; the rate of a conversion is the size of the finished store
over the time from the first record to the moment the store is on the disk, with records made in
memory beforehand.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from evidence.benchmarks.machine import describe_machine, machine_line, usable_cores

_WRITE_BYTES = 1 << 24
_BLOCK_ENTRIES = 2_000_000
_DISTINCT_BLOCKS = 8


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
    """Give records with columns of power-law popularity, scattered over all column numbers."""
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
        self.start = self.peak = _anonymous()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.peak = max(self.peak, _anonymous())

    def stop(self) -> int:
        """Return the most bytes seen."""
        self._stop.set()
        self._thread.join()
        return self.peak


def _anonymous() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell anonymous memory")


def convert_once(arguments: argparse.Namespace) -> None:
    """Convert in this process, and print what was measured."""
    from dplasso.data.store import write_store

    shape = int(arguments.columns), arguments.row_length
    target = Path(arguments.convert_into)
    for name, few in (("few", 1_000_000), ("store", int(arguments.entries))):
        source = records(few, *shape, binary=arguments.binary)
        stages: dict[str, float] = {}
        peak = AnonymousPeak()
        began = time.perf_counter()

        def note(stage: str, *_: int, began: float = began, stages: Any = stages) -> None:
            stages[stage] = time.perf_counter() - began

        store = write_store(
            source,
            target / name,
            memory=int(arguments.memory),
            n_threads=arguments.threads,
            progress=note,
        )
        spent = time.perf_counter() - began
        anonymous = peak.stop()
    size = sum(file.stat().st_size for file in (target / "store").iterdir())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report = {
        "nnz": store.nnz,
        "bytes": size,
        "seconds": spent,
        "stages_end": stages,
        "rate": size / spent,
        "anonymous_peak": anonymous,
        "anonymous_before": peak.start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "disk_written": usage.ru_oublock * 512,
        "disk_read": usage.ru_inblock * 512,
    }
    sys.stdout.write(json.dumps(report) + "\n")


def main() -> None:
    """Run raw writes and conversions in turn and print the medians of their rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=float, default=100e6)
    parser.add_argument("--columns", type=float, default=5e6)
    parser.add_argument("--row-length", type=int, default=200)
    parser.add_argument("--memory", type=float, default=1e9, help="bytes")
    parser.add_argument("--binary", action="store_true", help="all values 1")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None, help="on the disk to measure")
    parser.add_argument("--convert-into", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.convert_into:
        convert_once(arguments)
        return
    found: list[dict[str, Any]] = []
    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
            # Fresh blocks of a disk may be slower than used ones: measure it on both sides.
            size = int(arguments.entries) * (8 if arguments.binary else 16)
            raw_before = raw_write(Path(folder), size)
            command = [sys.executable, "-m", "benchmarks.store", *sys.argv[1:]]
            run = subprocess.run(
                [*command, "--convert-into", folder], check=True, capture_output=True, text=True
            )
            found.append(json.loads(run.stdout))
            shutil.rmtree(folder)
            Path(folder).mkdir()
            found[-1]["raw_rate"] = (raw_before + raw_write(Path(folder), size)) / 2
        sys.stderr.write(json.dumps(found[-1]) + "\n")
    sys.stdout.write(machine_line(describe_machine()) + "\n")
    rate = median(run["rate"] for run in found)
    raw = median(run["raw_rate"] for run in found)
    peak = max(run["anonymous_peak"] for run in found)
    sys.stdout.write(
        f"store of {found[0]['bytes'] / 1e9:.2f} GB, {found[0]['nnz']:,} entries: "
        f"{median(run['seconds'] for run in found):.1f} s, {rate / 1e6:.0f} MB/s; "
        f"disk alone {raw / 1e6:.0f} MB/s; ratio {rate / raw:.2f} (asked: 0.33)\n"
        f"anonymous memory at most {peak / 1e6:.0f} MB, {peak / arguments.memory:.2f} of --memory "
        "(asked: at most 1.2)\n"
    )


if __name__ == "__main__":
    main()
