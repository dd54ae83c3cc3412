"""A data set at full size: generated, stored and trained on, its memory and reads watched.

    python -m evidence.benchmarks.full_size web --folder /big/disk --json web.json --plot web.png

Every part runs in a process of its own, whose anonymous memory and bytes read from the disk are
sampled ten times a second. The store's files are dropped from the page cache before training, and
before a plain sequential read of the files by rows, which the first pass is compared with.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from evidence.benchmarks.machine import describe_machine, machine_line

_INTERVAL = 0.1
_READ_BYTES = 16 << 20
# Of Algorithm 1, after the first.
_STANDARD_STEPS = 3

now = time.monotonic


def tell(event: str, **more: Any) -> None:
    """Tell the parent process that something is done, and when."""
    print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)


def generate(given: argparse.Namespace) -> None:
    """Make the store; the body of a child process."""
    from dplasso.data.store import write_store
    from dplasso.datasets.synthetic.generate import synthetic_source

    stages: list[str] = []

    def progress(stage: str, _done: int, _total: int) -> None:
        if stage not in stages:
            stages.append(stage)
            tell("stage", name=stage)

    threads = len(os.sched_getaffinity(0))
    tell("begun")
    source = synthetic_source(given.twin, given.scale, given.seed, n_jobs=threads)
    store = write_store(
        source, given.store, memory=int(given.memory), progress=progress, n_threads=threads
    )
    sizes = {name: entry.n_bytes for name, entry in store.header.arrays.items()}
    tell("done", shape=list(store.shape), nnz=store.nnz, arrays=sizes)


def train(given: argparse.Namespace) -> None:
    """Train on the store; the body of a child process."""
    from dplasso import DPLassoClassifier
    from dplasso.data.store import open_store

    options = common_options(given) | {"epsilon": given.epsilon}
    load_kernels(options)
    steps_told: list[int] = []

    def progress(done: int, _total: int) -> None:
        if not steps_told:
            tell("iteration 1")
        steps_told.append(done)

    tell("begun")
    store = open_store(given.store)
    tell("opened")
    model = DPLassoClassifier(n_iter=given.iterations, **options)
    model._fit(store, None, progress=progress)
    tell("done", nonzero=int(model.coef_.nnz), private=bool(model.privacy_.is_private))


def loops(given: argparse.Namespace) -> None:
    """Time training loops, ours and a few steps of Algorithm 1, files cached; a child's body."""
    from dplasso import DPLassoClassifier
    from dplasso.data.store import open_store

    options = common_options(given)
    standard = {"epsilon": 1.0, "solver": "standard", "selector": "noisy-max"}
    for more in ({"epsilon": 1.0}, standard):
        load_kernels(options | more)
    store = open_store(given.store)
    tell("begun")
    for epsilon in (1.0, 0.1, 1.0, 0.1, 1.0, 0.1):
        told: list[float] = []
        model = DPLassoClassifier(n_iter=given.iterations, epsilon=epsilon, **options)
        model._fit(store, None, progress=lambda _done, _total, told=told: told.append(now()))
        seconds = (told[-1] - told[0]) * given.iterations / (given.iterations - 1)
        tell("loop", epsilon=epsilon, seconds=seconds)
    steps: list[tuple[int, float]] = []

    def stop(done: int, _total: int) -> None:
        steps.append((done, now()))
        if done > _STANDARD_STEPS:
            raise KeyboardInterrupt

    model = DPLassoClassifier(n_iter=given.iterations, **options | standard)
    with contextlib.suppress(KeyboardInterrupt):
        model._fit(store, None, progress=stop)
    (first, began), (last, ended) = steps[0], steps[-1]
    tell("standard", seconds_per_step=(ended - began) / (last - first), steps=last - first)
    tell("done")


def common_options(given: argparse.Namespace) -> dict[str, Any]:
    """Return what all fits have in common; the paper's have no intercept."""
    return {"l1_radius": given.radius, "fit_intercept": given.intercept, "n_jobs": -1}


def load_kernels(options: dict[str, Any]) -> None:
    """Fit a small store, so that kernels are loaded, or compiled, before anything is timed."""
    from scipy.sparse import random_array

    from dplasso import DPLassoClassifier
    from dplasso.data.blocks import matrix_source
    from dplasso.data.store import write_store

    X = random_array((200, 50), density=0.2, format="csr", dtype="f4", rng=0)
    with tempfile.TemporaryDirectory() as folder:
        source = matrix_source(X, [i % 2 for i in range(200)])
        small = write_store(source, Path(folder) / "small", memory=2**27)
        DPLassoClassifier(n_iter=50, **options).fit(small)


def _status(pid: int) -> dict[str, int]:
    """Return a process's resident bytes (anonymous, of files) and bytes read from the disk."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssFile"):
            found[name] = int(value.split()[0]) * 1024
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("read_bytes", "write_bytes"):
            found[name] = int(value)
    return found


def watch(role: str) -> dict[str, Any]:
    """Run a part in a child process; return its events and the samples, times from its begin."""
    command = [sys.executable, "-m", "benchmarks.full_size", *sys.argv[1:], "--role", role]
    samples: list[dict[str, float]] = []
    with tempfile.TemporaryFile("w+") as told, subprocess.Popen(command, stdout=told) as child:
        while child.poll() is None:
            try:
                samples.append({"at": time.monotonic(), **_status(child.pid)})
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                break
            time.sleep(_INTERVAL)
        child.wait()
        if child.returncode:
            raise SystemExit(f"{role} failed")
        told.seek(0)
        events = [json.loads(line) for line in told]
    begun = next(event["at"] for event in events if event["event"] == "begun")
    for entry in (*events, *samples):
        entry["at"] = round(entry["at"] - begun, 3)
    samples = [sample for sample in samples if "RssAnon" in sample]
    return {
        "events": events,
        "peak_anonymous": max(sample["RssAnon"] for sample in samples if sample["at"] >= 0),
        "samples": samples,
    }


def drop_from_cache(folder: Path) -> None:
    """Have the system forget the contents of a folder's files."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_plainly(paths: list[Path]) -> list[dict[str, float]]:
    """Read files in order, without doing anything else; bytes over time."""
    buffer = bytearray(_READ_BYTES)
    began, total = time.monotonic(), 0
    curve = [{"at": 0.0, "read_bytes": 0}]
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
                curve.append({"at": round(time.monotonic() - began, 3), "read_bytes": total})
    return curve


def when(part: dict[str, Any], event: str) -> float:
    """Return the time of an event."""
    return float(next(entry["at"] for entry in part["events"] if entry["event"] == event))


def first_pass(training: dict[str, Any]) -> list[dict[str, float]]:
    """Return bytes read over time from opening the store to the end of iteration 1."""
    chosen = [sample for sample in training["samples"] if sample["at"] >= 0]
    end, start = when(training, "iteration 1"), chosen[0]["read_bytes"]
    return [
        {"at": sample["at"], "read_bytes": sample["read_bytes"] - start}
        for sample in chosen
        if sample["at"] <= end + _INTERVAL
    ]


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw bytes read over time, of the first pass and of a plain read."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, label, style in (
        ("plain_read", "plain sequential read", "--"),
        ("first_pass", "fit: open, first alpha, iteration 1", "-"),
    ):
        curve = report[name]
        axes.plot(
            [point["at"] for point in curve],
            [point["read_bytes"] / 1e9 for point in curve],
            style,
            label=label,
        )
    axes.axhline(report["rows_bytes"] / 1e9, color="grey", linewidth=0.8)
    axes.annotate("the store's arrays by rows", (0, report["rows_bytes"] / 1e9), va="bottom")
    axes.set_xlabel("seconds")
    axes.set_ylabel("GB read from the disk")
    axes.set_title(f"{report['twin']} x {report['scale']:g}: starting a fit on a store")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Run all parts."""
    report: dict[str, Any] = {
        "machine": describe_machine(),
        "twin": given.twin,
        "scale": given.scale,
        "memory": given.memory,
        "epsilon": given.epsilon,
        "n_iter": given.iterations,
        "radius": given.radius,
        "intercept": given.intercept,
    }
    if not given.store.is_dir():
        making = watch("generate")
        report["generate"] = {
            "seconds": when(making, "done"),
            "peak_anonymous": making["peak_anonymous"],
            "stages": {e["name"]: e["at"] for e in making["events"] if e["event"] == "stage"},
        }
        report |= {key: making["events"][-1][key] for key in ("shape", "nnz", "arrays")}
        save(report, given.json)
    by_rows = sorted(given.store.glob("rows.*.npy"))
    report["rows_bytes"] = sum(path.stat().st_size for path in by_rows)
    report["store_bytes"] = sum(path.stat().st_size for path in given.store.iterdir())
    drop_from_cache(given.store)
    report["plain_read"] = read_plainly(by_rows)
    drop_from_cache(given.store)
    training = watch("train")
    report["train"] = {
        "events": training["events"],
        "peak_anonymous": training["peak_anonymous"],
        "samples": training["samples"][:: max(1, len(training["samples"]) // 400)],
    }
    report["first_pass"] = first_pass(training)
    save(report, given.json)
    if not given.no_loops:
        timed = watch("loops")["events"]
        report["loops"] = {
            f"{epsilon:g}": median(e["seconds"] for e in timed if e.get("epsilon") == epsilon)
            for epsilon in (1.0, 0.1)
        }
        step = next(e["seconds_per_step"] for e in timed if e["event"] == "standard")
        report["standard_seconds_per_step"] = step
    return report


def save(report: dict[str, Any], path: Path | None) -> None:
    """Write what has been measured so far."""
    if path is not None:
        path.write_text(json.dumps(report, indent=1) + "\n")


def summary(report: dict[str, Any]) -> str:
    """Say in Markdown what was measured."""
    training, lines = report["train"], []
    lines.append(f"{report['twin']} x {report['scale']:g}, {machine_line(report['machine'])}\n")
    if "generate" in report:
        made = report["generate"]
        stages = ", ".join(f"{name} from {at:.0f} s" for name, at in made["stages"].items())
        lines.append(
            f"- shape {report['shape']}, {report['nnz']:,} non-zeros, store "
            f"{report['store_bytes'] / 1e9:.1f} GB"
        )
        lines.append(
            f"- generated and stored in {made['seconds']:.0f} s ({stages}), peak anonymous memory "
            f"{made['peak_anonymous'] / 1e6:.0f} MB at --memory {report['memory'] / 1e6:.0f} MB"
        )
    read = report["first_pass"][-1]["read_bytes"]
    lines.append(
        f"- opened after {when(training, 'opened'):.2f} s; first alpha and iteration 1 after "
        f"{when(training, 'iteration 1'):.1f} s, {read / 1e9:.2f} GB read; the arrays by rows are "
        f"{report['rows_bytes'] / 1e9:.2f} GB, read plainly in "
        f"{report['plain_read'][-1]['at']:.1f} s"
    )
    lines.append(
        f"- {report['n_iter']:,} iterations at epsilon {report['epsilon']:g} after "
        f"{when(training, 'done'):.1f} s in all; peak anonymous memory "
        f"{training['peak_anonymous'] / 1e6:.0f} MB"
    )
    if "loops" in report:
        whole = report["standard_seconds_per_step"] * report["n_iter"]
        ratios = ", ".join(
            f"epsilon {epsilon}: {seconds:.2f} s, {whole / seconds:,.0f} times Algorithm 1"
            for epsilon, seconds in report["loops"].items()
        )
        lines.append(
            f"- training loop, files cached: {ratios} "
            f"({report['standard_seconds_per_step']:.2f} s a step of it, by a few steps)"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("twin", choices=["rcv1", "news20", "url", "web", "kdda"])
    parser.add_argument("--folder", type=Path, required=True, help="where the store goes")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=float, default=2e9)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--radius", type=float, default=50.0)
    parser.add_argument("--iterations", type=int, default=4000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--intercept", action="store_true", help="fit one; the paper does not")
    parser.add_argument("--no-loops", action="store_true", help="do not time training loops")
    parser.add_argument("--role", choices=["generate", "train", "loops"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.store = given.folder / f"{given.twin}-{given.scale:g}-{given.seed}.store"
    if given.role:
        {"generate": generate, "train": train, "loops": loops}[given.role](given)
        return
    report = measure(given)
    save(report, given.json)
    if given.plot:
        plot(report, given.plot)
    print(summary(report))


if __name__ == "__main__":
    main()
