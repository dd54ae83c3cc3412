"""Cells: single measurements, kept as small files so that a finished one is not run again."""

import json
import multiprocessing
import resource
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence.datasets import DatasetCache, Source, UnavailableError
from evidence.machine import describe_machine

FORMAT = 2
CELLS = "cells"
# Called with the share of a cell that is done, 0 to 1.
Advance = Callable[[float], None]
# Called with a line about what is going on, and the share of all the work that is done.
Report = Callable[[str, float], None]
# Called with a cell and how it ended, once it has.
Ended = Callable[["Cell", dict[str, Any]], None]


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    # kind, name: what is measured; items may share cells.
    kind: str
    name: str
    # ``measure(X, y, advance)`` returns the result, JSON-safe; X and y are None without a source.
    # Apart, ``measure()``, which can be pickled.
    measure: Callable[..., dict[str, Any]]
    # JSON-safe; all that the result depends on besides the data.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: Source | None = None  # On which data
    weight: float = 1.0  # About how long it takes, in any unit that all cells share
    # Whether the result is a time, which only counts for the machine it was measured on.
    machine: bool = False
    apart: bool = False  # Whether it runs in a process of its own

    def key(self) -> dict[str, Any]:
        """Return all that the result depends on, as JSON holds it."""
        machine = describe_machine() if self.machine else None
        key = {
            "format": FORMAT,
            "kind": self.kind,
            "name": self.name,
            "data": None if self.source is None else self.source.identity,
            "parameters": dict(self.parameters),
            "machine": machine and {k: machine[k] for k in ("processor", "cores", "memory_gib")},
        }
        found: dict[str, Any] = json.loads(json.dumps(key))
        return found

    def path(self, folder: Path) -> Path:
        """Return the file of its result; one measured with other parameters takes its place."""
        words = (self.kind, "" if self.source is None else self.source.label, self.name)
        return folder / CELLS / ("-".join(filter(None, words)).replace(" ", "_") + ".json")


def kept(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """Return what is kept of a cell, however it was measured; None if nothing readable is."""
    try:
        content = json.loads(cell.path(folder).read_text())
        return content if {"key", "result"} <= set(content) else None
    except (OSError, ValueError, TypeError):
        return None


def failed(result: Mapping[str, Any]) -> bool:
    """Return whether a cell has no result, or one that says that a test did not pass."""
    return "failure" in result or "left_out" in result or result.get("passed") is False


def finished(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """Return a cell's result, or None if it has yet to be measured."""
    found = kept(cell, folder)
    if found is None or found["key"] != cell.key() or failed(found["result"]):
        return None
    return dict(found["result"])


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    report: Report | None = None,
    *,
    ended: Ended | None = None,
    jobs: int = 1,
    again: bool = False,
) -> list[dict[str, Any]]:
    """Measure cells that are not finished, one data set after the other; return all results.

    Cells of one file are measured once. Results are kept in the subfolder ``cells``. Of the cells
    that run apart, `jobs` run at a time; with `again`, finished ones are measured too.
    """
    paths = [cell.path(folder) for cell in cells]
    results = {
        path: None if again else finished(cell, folder)
        for path, cell in zip(paths, cells, strict=True)
    }
    waiting = {path: cell for path, cell in zip(paths, cells, strict=True) if results[path] is None}
    total = sum(cell.weight for cell in waiting.values())
    done, cache, lock = 0.0, DatasetCache(), threading.Lock()

    def run(path: Path) -> None:
        nonlocal done
        cell = waiting[path]
        where = "" if cell.source is None else f" on {cell.source.label}"
        line, before = f"{cell.kind}{where}: {cell.name}", done

        def advance(part: float) -> None:
            if report is not None:
                report(line, (before + part * cell.weight) / total)

        advance(0.0)
        began = time.perf_counter()
        if cell.apart:
            result, peak = in_own_process(cell.measure)
        else:
            data = (None, None) if cell.source is None else cache.take(cell.source)
            result, peak = cell.measure(*data, advance), None
        held = kept(cell, folder)
        # What cannot be measured here was perhaps measured elsewhere.
        if "left_out" not in result or held is None or failed(held["result"]):
            _keep(path, cell, result, time.perf_counter() - began, peak)
        with lock:
            # As a later run will read it: JSON has no tuples.
            results[path] = json.loads(json.dumps(result))
            done += cell.weight
        if ended is not None:
            ended(cell, result)

    # Grouped by data set, so that each is read once and only one is in memory.
    sources = {id(cell.source): position for position, cell in reversed(list(enumerate(cells)))}
    for path in sorted(waiting, key=lambda path: sources[id(waiting[path].source)]):
        if not waiting[path].apart:
            run(path)
    # The longest first, so that no core is left with it at the end.
    apart = [path for path, cell in waiting.items() if cell.apart]
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        list(pool.map(run, sorted(apart, key=lambda path: -waiting[path].weight)))
    if report is not None and waiting:
        report("done", 1.0)
    return [dict(results[path] or {}) for path in paths]


def call_apart(measure: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], int]:
    """Measure, and return the result and the peak of this process's memory in bytes."""
    try:
        result = measure()
    except UnavailableError as error:
        result = {"left_out": str(error)}
    except MemoryError:
        result = {"left_out": "not enough memory"}
    # Linux counts in KiB.
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_own_process(measure: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], int | None]:
    """Measure in a fresh process; return the result and the peak of its memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(call_apart, measure).result()
        except BrokenProcessPool:
            return {"failure": "its process was killed, for want of memory most likely"}, None
        except Exception as error:
            return {"failure": f"{type(error).__name__}: {error}"}, None


def _keep(path: Path, cell: Cell, result: Any, seconds: float, peak: int | None) -> None:
    # Imported late: planted bugs need a process that has not imported the package.
    from dplasso.files.disk import atomic_write

    content = {
        "key": cell.key(),
        "result": result,
        "seconds": round(seconds, 2),
        "peak_memory_bytes": peak,
        "date": datetime.now(UTC).date().isoformat(),
        "measured_on": describe_machine(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())


def machines(contents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the machines that kept cells were measured on, each once."""
    found: list[dict[str, Any]] = []
    for content in contents:
        if content["measured_on"] not in found:
            found.append(content["measured_on"])
    return found
