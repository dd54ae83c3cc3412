"""How long a fit takes to go on after a worker or the driver was killed.

    python -m evidence.cluster.lost

Fits of 300,000 rows in two stores on a Ray cluster of this machine, from a folder and from object
storage. Times are read off the events of the fits (`--events`). `python -m tests.cluster.ray_fits`
takes a whole machine away.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp

from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store

psutil = import_module("psutil")
ROWS, COLUMNS, EACH = 150_000, 20_000, 30
FIT = ["--epsilon", "1", "--classes", "0,1", "--method", "logistic", "--cluster", "local"]


def started(data: str, folder: Path, *more: str) -> tuple[subprocess.Popen, Path, float]:
    """Begin a fit; return it, where its events are, and when."""
    events = folder / f"{time.monotonic_ns()}.events"
    kept = ["--checkpoint", str(folder / "c.npz"), "--checkpoint-seconds", "0"]
    command = [sys.executable, "-m", "dplasso", "fit", data, *FIT, *kept, "--events", str(events)]
    began = time.time()
    process = subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL)
    return process, events, began


def told(events: Path, process: subprocess.Popen, wanted: str, count: int = 1) -> dict:
    """Wait for an event to be told so many times."""
    while True:
        lines = events.read_text().splitlines(keepends=True) if events.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        found = [one for one in found if one["event"] == wanted]
        if len(found) >= count:
            return found[count - 1]
        assert process.poll() in (None, 0), process.returncode
        time.sleep(0.02)


def worker_lost(data: str, folder: Path) -> dict[str, float]:
    """Kill a worker in the middle of a fit."""
    process, events, _ = started(data, folder, "--force")
    told(events, process, "step", 20)
    children = psutil.Process(process.pid).children(recursive=True)
    victims = [one for one in children if "RayWorker" in " ".join(one.cmdline())]
    at = time.time()
    victims[0].send_signal(signal.SIGKILL)
    replaced = told(events, process, "replaced")
    assert process.wait() == 0
    return {
        "until it was known": told(events, process, "lost")["time"] - at,
        "until it was replaced": replaced["time"] - at,
    }


def driver_lost(data: str, folder: Path) -> dict[str, float]:
    """Kill the driver in the middle of a fit, and resume it."""
    process, events, _ = started(data, folder, "--force")
    told(events, process, "step", 20)
    process.kill()
    process.wait()
    process, events, began = started(data, folder, "--resume")
    ready, step = told(events, process, "ready"), told(events, process, "step")
    assert process.wait() == 0
    return {"until workers were ready": ready["time"] - began, "until a step": step["time"] - began}


def main() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        stores = folder / "stores"
        stores.mkdir()
        for name in "ab":
            columns = rng.integers(COLUMNS, size=ROWS * EACH)
            X = sp.csr_matrix(
                (np.ones(columns.size, np.float32), columns, np.arange(ROWS + 1) * EACH)
            )
            X.resize(ROWS, COLUMNS)
            X.sum_duplicates()
            write_store(matrix_source(X, rng.integers(2, size=ROWS)), stores / f"{name}.store")
        for where, data in (("folder", str(stores)), ("object storage", f"file://{stores}")):
            for what, lose in (("worker", worker_lost), ("driver", driver_lost)):
                runs = [lose(data, folder) for _ in range(3)]
                times = {name: round(median(one[name] for one in runs), 2) for name in runs[0]}
                print(json.dumps({"lost": what, "rows from": where, **times}), flush=True)


if __name__ == "__main__":
    main()
