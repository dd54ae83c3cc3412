"""Two machines of a Ray cluster, each with too little memory for its half of the rows.

    python -m evidence.cluster.limited [ENTRIES [BYTES]]

Two raylets on this machine, each in a memory cgroup (version 1) of its own with so many BYTES,
page cache included; it takes the rights to make one. Each has a store of so many ENTRIES, of 8
bytes, which does not fit beside the process. The model is compared with that of one process
without a limit.
"""

import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import ray
import scipy.sparse as sp
from ray.cluster_utils import Cluster

from dplasso import DPLogisticRegression, write_store
from dplasso.cluster import RayEngine, ThreadEngine
from dplasso.cluster.ray_cluster import connect

GROUPS = Path("/sys/fs/cgroup/memory")
COLUMNS, EACH = 100_000, 100
# Two workers of so many cores do not fit on one machine.
CORES = 2


def made(path: Path, entries: int, seed: int) -> None:
    """Write a store, and have the system forget its pages."""
    rng, n = np.random.default_rng(seed), entries // EACH
    columns = rng.integers(COLUMNS, size=(n, EACH), dtype=np.int32)
    columns.sort(axis=1)
    values = np.ones(n * EACH, np.float32)
    X = sp.csr_matrix((values, columns.ravel(), np.arange(n + 1) * EACH), shape=(n, COLUMNS))
    X.sum_duplicates()
    X.data[:] = 1.0
    write_store(path, X, (columns[:, 0] < 500).astype(int))
    forget(path)


def forget(path: Path) -> None:
    for file in path.iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def limited(node, limit: int, number: int) -> Path:
    """Put a raylet and what it starts into a group of its own."""
    group = GROUPS / f"dplasso-{os.getpid()}-{number}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(limit))
    for process in node.all_processes["raylet"]:
        (group / "cgroup.procs").write_text(str(process.process.pid))
    return group


def main(entries: int, limit: int) -> None:
    settings = {"epsilon": 1.0, "classes": [0, 1], "random_state": 0}
    found, groups = {"limit of each": limit}, []
    with tempfile.TemporaryDirectory() as folder:
        stores = [Path(folder) / f"{name}.store" for name in "ab"]
        for seed, path in enumerate(stores):
            made(path, entries, seed)
        sizes = [sum(file.stat().st_size for file in path.iterdir()) for path in stores]
        found["bytes of the stores"] = sizes
        connect("local", cores=1)
        cluster = Cluster()
        cluster.head_node = ray._private.worker._global_node
        try:
            for number in range(2):
                node = cluster.add_node(num_cpus=CORES, object_store_memory=2**27)
                groups.append(limited(node, limit, number))
            engine, began = RayEngine("local", threads=CORES), time.perf_counter()
            parts = DPLogisticRegression(**settings).fit([*map(str, stores)], engine=engine)
            found["seconds"] = time.perf_counter() - began
            for name in ("memory.max_usage_in_bytes", "memory.failcnt"):
                found[name] = [int((group / name).read_text()) for group in groups]
        finally:
            ray.shutdown()
            for group in groups:
                limit_of_waiting = time.monotonic() + 60.0
                while (group / "cgroup.procs").read_text() and time.monotonic() < limit_of_waiting:
                    time.sleep(0.5)
                with suppress(OSError):
                    group.rmdir()
        began = time.perf_counter()
        whole = DPLogisticRegression(**settings).fit([*map(str, stores)], engine=ThreadEngine())
        found["seconds with all memory"] = time.perf_counter() - began
        found["same bits"] = bool((parts.coef_ == whole.coef_).all())
    print(json.dumps(found))


if __name__ == "__main__":
    given = [int(float(one)) for one in sys.argv[1:]]
    main(*given, *(130_000_000, 700_000_000)[len(given) :])
