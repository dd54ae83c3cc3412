"""A data set at full size: generated, stored and trained on, its memory and reads watched.

    python -m evidence benchmarks/full_size --shape web --folder /big/disk
    python -m evidence benchmarks/full_size --shape kdda --folder /big/disk --method logistic

Every part runs in a process of its own, whose anonymous memory and bytes read from the disk are
sampled ten times a second. The store's files are dropped from the page cache before training, and
before a plain sequential read of the files by rows, which the first pass is compared with.
"""

import contextlib
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal

from dplasso.runtime.threads import usable_cores
from evidence.machine import status
from evidence.report import plain

TITLE = "A data set at full size"
QUICK = {"part": 0.001, "steps": 200}
_INTERVAL = 0.1
_READ_BYTES = 16 << 20
Given = dict[str, Any]
# Called with the name of what is done, and more of it; the time is noted.
Tell = Callable[..., None]

now = time.monotonic


def generate(given: Given, tell: Tell) -> None:
    """Make the store; the body of a child process."""
    from dplasso.data.store import write_blocks
    from evidence.twins.generate import synthetic_source

    tell("begun")
    source = synthetic_source(given["twin"], given["part"], given["seed"], n_jobs=usable_cores())
    store = write_blocks(source, given["store"], memory=int(given["memory"]))
    sizes = {name: entry.n_bytes for name, entry in store.header.arrays.items()}
    tell("done", shape=list(store.shape), nnz=store.nnz, arrays=sizes)


def train(given: Given, tell: Tell) -> None:
    """Train on the store; the body of a child process."""
    from dplasso import DPFrankWolfeClassifier, DPLogisticRegression
    from dplasso.data.store import open_store
    from dplasso.estimators.fitting import fit_estimator
    from dplasso.fit.run import Hooks

    if given["method"] == "logistic":
        model: Any = DPLogisticRegression(given["epsilon"], fit_intercept=given["intercept"])
        model.set_params(n_jobs=-1)
    else:
        options = common_options(given) | {"epsilon": given["epsilon"]}
        model = DPFrankWolfeClassifier(n_iter=given["steps"], **options)
    load_kernels(model)
    steps_told: list[int] = []

    def progress(done: int, _total: int) -> None:
        if not steps_told:
            tell("iteration 1")
        steps_told.append(done)

    tell("begun")
    before = time.process_time()
    store = open_store(given["store"])
    tell("opened")
    fit_estimator(model, store, hooks=Hooks(progress=progress))
    told = {"iterations": model.n_iter_, "private": bool(model.privacy_.is_private)}
    tell("done", processor=time.process_time() - before, **told)


def loops(given: Given, tell: Tell) -> None:
    """Time training loops, ours and a few steps of Algorithm 1, files cached; a child's body."""
    from dplasso import DPFrankWolfeClassifier
    from dplasso.data.store import open_store
    from evidence.timing import time_fit

    options = common_options(given) | {"n_iter": given["steps"]}
    standard = {"epsilon": 1.0, "solver": "standard", "selector": "noisy-max"}
    for more in ({"epsilon": 1.0}, standard):
        load_kernels(DPFrankWolfeClassifier(**options | more))
    store = open_store(given["store"])
    tell("begun")
    for epsilon in (1.0, 0.1, 1.0, 0.1, 1.0, 0.1):
        found, _ = time_fit(store, None, math.inf, epsilon=epsilon, **options)
        tell("loop", epsilon=epsilon, seconds=found.loop)
    found, _ = time_fit(store, None, 0.0, **options | standard)
    tell("standard", seconds_per_step=found.loop / found.n_steps, steps=found.timed_steps)
    tell("done")


def common_options(given: Given) -> dict[str, Any]:
    """Return what all fits have in common; the paper's have no intercept."""
    return {"l1_radius": given["radius"], "fit_intercept": given["intercept"], "n_jobs": -1}


def load_kernels(model: Any) -> None:
    """Fit a copy to a small store: kernels are loaded, or compiled, before anything is timed."""
    from scipy.sparse import random_array
    from sklearn.base import clone

    from dplasso import write_store

    X = random_array((200, 50), density=0.2, format="csr", dtype="f4", rng=0)
    with tempfile.TemporaryDirectory() as folder:
        small = write_store(Path(folder) / "small", X, [i % 2 for i in range(200)])
        few = {"n_iter": 50} if "n_iter" in model.get_params() else {}
        clone(model).set_params(**few).fit(small)


def _noting(sender: Any, event: str, **more: Any) -> None:
    sender.send({"event": event, "at": now(), **more})


def _child(work: Callable[[Given, Tell], None], given: Given, sender: Any) -> None:
    work(given, partial(_noting, sender))


def watch(work: Callable[[Given, Tell], None], given: Given) -> dict[str, Any]:
    """Run a part in a child process; return its events and the samples, times from its begin."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(work, given, sender))
    child.start()
    samples: list[dict[str, float]] = []
    events: list[dict[str, Any]] = []
    fields = "RssAnon", "read_bytes"
    while child.is_alive():
        # A process that is ending tells nothing.
        with contextlib.suppress(OSError):
            samples.append({"at": now(), **status(child.pid or 0, *fields)})
        while receiver.poll():
            events.append(receiver.recv())
        child.join(_INTERVAL)
    while receiver.poll():
        events.append(receiver.recv())
    if child.exitcode:
        raise RuntimeError(f"{work.__name__} failed")
    begun = next(event["at"] for event in events if event["event"] == "begun")
    for entry in (*events, *samples):
        entry["at"] = round(entry["at"] - begun, 3)
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


def draw(results: list[dict[str, Any]], figure: Any) -> None:
    """Draw bytes read over time, of the first pass and of a plain read."""
    (report,) = results
    axis = figure.subplots()
    for name, label, style in (
        ("plain_read", "plain sequential read", "--"),
        ("first_pass", "fit: open, first alpha, iteration 1", "-"),
    ):
        curve = report[name]
        read = [point["read_bytes"] / 1e9 for point in curve]
        axis.plot([point["at"] for point in curve], read, style, label=label)
    axis.axhline(report["rows_bytes"] / 1e9, color="grey", linewidth=0.8)
    axis.annotate("the store's arrays by rows", (0, report["rows_bytes"] / 1e9), va="bottom")
    axis.set_xlabel("seconds")
    axis.set_ylabel("GB read from the disk")
    title = f"{report['twin']} x {report['part']:g}: starting a fit on a store"
    plain(axis, title, legend={"loc": "lower right"})


def measure(
    *,
    shape: Literal["rcv1", "news20", "url", "web", "kdda"],
    folder: Path,
    method: Literal["frank-wolfe", "logistic"] = "frank-wolfe",
    part: float = 1.0,
    seed: int = 0,
    memory: float = 2e9,
    epsilon: float = 0.1,
    radius: float = 50.0,
    steps: int = 4000,
    intercept: bool = False,
    with_loops: bool = True,
) -> dict[str, Any]:
    """Run all parts; a store that is in the folder already is trained on."""
    report = {key: str(value) if key == "folder" else value for key, value in locals().items()}
    report.pop("folder")
    report["twin"] = report.pop("shape")
    path = folder / f"{shape}-{part:g}-{seed}.store"
    given = report | {"store": path}
    if not path.is_dir():
        making = watch(generate, given)
        report["generate"] = {
            "seconds": when(making, "done"),
            "peak_anonymous": making["peak_anonymous"],
        }
        report |= {key: making["events"][-1][key] for key in ("shape", "nnz", "arrays")}
    by_rows = sorted(path.glob("rows.*.npy"))
    report["rows_bytes"] = sum(file.stat().st_size for file in by_rows)
    report["store_bytes"] = sum(file.stat().st_size for file in path.iterdir())
    drop_from_cache(path)
    report["plain_read"] = read_plainly(by_rows)
    drop_from_cache(path)
    training = watch(train, given)
    report["steps"] = training["events"][-1]["iterations"]
    report["train"] = {
        "events": training["events"],
        "peak_anonymous": training["peak_anonymous"],
        "samples": training["samples"][:: max(1, len(training["samples"]) // 400)],
    }
    report["first_pass"] = first_pass(training)
    if with_loops and method == "frank-wolfe":
        timed = watch(loops, given)["events"]
        report["loops"] = {
            f"{epsilon:g}": median(e["seconds"] for e in timed if e.get("epsilon") == epsilon)
            for epsilon in (1.0, 0.1)
        }
        step = next(e["seconds_per_step"] for e in timed if e["event"] == "standard")
        report["standard_seconds_per_step"] = step
    return report


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return what was measured, in words."""
    (report,) = results
    training, lines = report["train"], []
    if "generate" in report:
        made = report["generate"]
        lines.append(
            f"- shape {report['shape']}, {report['nnz']:,} non-zeros, store "
            f"{report['store_bytes'] / 1e9:.1f} GB"
        )
        lines.append(
            f"- generated and stored in {made['seconds']:.0f} s, peak anonymous memory "
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
        f"- {report['method']}: {report['steps']:,} iterations at epsilon "
        f"{report['epsilon']:g} after {when(training, 'done'):.1f} s in all, "
        f"{training['events'][-1]['processor']:.0f} s of the processor; peak anonymous memory "
        f"{training['peak_anonymous'] / 1e6:.0f} MB"
    )
    if "loops" in report:
        whole = report["standard_seconds_per_step"] * report["steps"]
        ratios = ", ".join(
            f"epsilon {epsilon}: {seconds:.2f} s, {whole / seconds:,.0f} times Algorithm 1"
            for epsilon, seconds in report["loops"].items()
        )
        lines.append(
            f"- training loop, files cached: {ratios} "
            f"({report['standard_seconds_per_step']:.2f} s a step of it, by a few steps)"
        )
    return ["\n".join(lines)]
