"""How long a fit takes to go on after a worker or the driver was killed.

    python -m evidence.cluster.lost

Fits of 300,000 rows in two stores on a Ray cluster of this machine, from a folder and from object
storage. Times are those of the lines that the fits print, and of their checkpoints.
`python -m tests.cluster.ray_fits` takes a whole machine away.
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

from dplasso import write_store

psutil = import_module("psutil")
ROWS, COLUMNS, EACH = 150_000, 20_000, 30
FIT = ["--epsilon", "1", "--classes", "0,1", "--method", "logistic", "--cluster", "local"]


def started(data: str, folder: Path, *more: str) -> tuple[subprocess.Popen[str], float]:
    """Begin a fit; return it, and when."""
    kept = ["--checkpoint", str(folder / "c.npz"), "--checkpoint-seconds", "0"]
    command = [sys.executable, "-m", "dplasso", "fit", data, *FIT, *kept]
    began = time.time()
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *more], **pipes), began  # type: ignore[call-overload]


def printed(process: subprocess.Popen[str], words: str) -> float:
    """Wait for a line that holds some words; return when it was read."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return time.time()
    raise AssertionError(f"the fit ended without {words!r}")


def stepped(process: subprocess.Popen[str], folder: Path, since: float) -> float:
    """Wait for a checkpoint that is newer; return when it was written."""
    path = folder / "c.npz"
    while not path.exists() or path.stat().st_mtime <= since:
        assert process.poll() in (None, 0), process.returncode
        time.sleep(0.02)
    return path.stat().st_mtime


def worker_lost(data: str, folder: Path) -> dict[str, float]:
    """Kill a worker in the middle of a fit."""
    process, began = started(data, folder, "--force")
    stepped(process, folder, began)
    children = psutil.Process(process.pid).children(recursive=True)
    victims = [one for one in children if "RayWorker" in " ".join(one.cmdline())]
    at = time.time()
    victims[0].send_signal(signal.SIGKILL)
    lost, replaced = printed(process, "was lost"), printed(process, "was replaced")
    assert process.wait() == 0
    return {"until it was known": lost - at, "until it was replaced": replaced - at}


def driver_lost(data: str, folder: Path) -> dict[str, float]:
    """Kill the driver in the middle of a fit, and resume it."""
    process, began = started(data, folder, "--force")
    stepped(process, folder, began)
    process.kill()
    process.wait()
    process, began = started(data, folder, "--resume")
    step = stepped(process, folder, began)
    assert process.wait() == 0
    return {"until a step": step - began}


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
            write_store(stores / f"{name}.store", X, rng.integers(2, size=ROWS))
        for where, data in (("folder", str(stores)), ("object storage", f"file://{stores}")):
            for what, lose in (("worker", worker_lost), ("driver", driver_lost)):
                runs = [lose(data, folder) for _ in range(3)]
                times = {name: round(median(one[name] for one in runs), 2) for name in runs[0]}
                print(json.dumps({"lost": what, "rows from": where, **times}), flush=True)


if __name__ == "__main__":
    main()
