"""What a worker takes a step and holds in memory: the constants of the formula in docs/cluster.md.

    python -m evidence.cluster.parts [SCALE]

Each case is a process of its own: random rows in a store, one worker with one thread. Bytes are
those that are no file's; pages of the store are the system's, which takes them back where it must.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

import numpy as np
import scipy.sparse as sp

from dplasso import write_store
from dplasso.cluster.worker import Partition, SumSteps, Worker
from dplasso.fit.task import Binary
from dplasso.losses.logistic import Logistic
from dplasso.matrix.scaling import NO_SCALE_EXPONENTS, Scaling

# Rows, columns, entries a row.
CASES = (
    (20_000, 1_000, 20),
    (2_000_000, 1_000, 5),
    (200_000, 2_000_000, 40),
    (1_000_000, 10_000, 20),
    (1_000_000, 1_000_000, 20),
)


def own_bytes() -> int:
    """Return the bytes of memory that are no file's."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * (int(lines["RssAnon"].split()[0]) + int(lines["VmSwap"].split()[0]))


def watched(most: list[int]) -> None:
    """Keep the most that this process ever had."""
    while True:
        most[0] = max(most[0], own_bytes())
        time.sleep(0.001)


def measure(n: int, d: int, c: int, folder: str) -> dict[str, float]:
    """Return seconds of a step and bytes of a worker."""
    rng = np.random.default_rng(0)
    path = Path(folder) / f"{n}-{d}-{c}.store"
    if not path.exists():
        columns = rng.integers(d, size=(n, c)).ravel()
        X = sp.csr_matrix((np.ones(n * c, np.float32), columns, np.arange(n + 1) * c), shape=(n, d))
        X.sum_duplicates()
        write_store(path, X, rng.integers(2, size=n))
        return {}
    most = [0]
    Thread(target=watched, args=(most,), daemon=True).start()
    worker, found = Worker(Partition("p", path=str(path))), {}
    entries = worker.describe().n_entries
    worker.encode(Binary(np.arange(2)))
    scaling = Scaling(np.zeros(0, np.int64), 0.1, 1.0, NO_SCALE_EXPONENTS, NO_SCALE_EXPONENTS)
    worker.begin_sums(SumSteps(Logistic(0.5), "part", (scaling, 2.0**32, None)))
    weights = rng.standard_normal(d + 1)
    worker.sums(weights)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        worker.sums(weights)
        times.append(time.perf_counter() - began)
    found["seconds"], found["bytes"] = min(times), most[0]
    found["expected seconds"] = 7e-9 * entries + 1e-8 * n + 1e-8 * d
    found["expected bytes"] = 170e6 + 48.0 * n + 32.0 * d
    worker.close()
    return found


def main(scale: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for n, d, c in CASES:
            case = [str(round(n * scale)), str(d), str(c), folder]
            for _ in range(2):
                done = subprocess.run(
                    [sys.executable, "-m", "evidence.cluster.parts", *case],
                    capture_output=True,
                    text=True,
                    check=True,
                )
            print(*case[:3], done.stdout.strip(), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measure(*map(int, sys.argv[1:4]), sys.argv[4])))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
