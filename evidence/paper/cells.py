"""Cells: single measurements, kept as small files so that a finished one is not run again."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dplasso.files.atomic import atomic_write
from evidence.paper.datasets import DatasetCache, Source
from evidence.paper.machine import describe_machine

FORMAT = 1
# Called with the share of a cell that is done, 0 to 1.
Advance = Callable[[float], None]
# Called with a line about what is going on, and the share of all the work that is done.
Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Cell:
    """One measurement on one data set.

    Attributes
    ----------
    kind, name : str
        What is measured; cells of several items may be the same.
    source : Source or None
        On which data.
    parameters : mapping
        JSON-safe; all that the result depends on besides the data.
    weight : float
        About how long it takes, in any unit that all cells share.
    measure : callable
        ``measure(X, y, advance)`` gives the result, JSON-safe; X and y are None without a source.
    machine : bool
        Whether the result is a time, which only counts for the machine it was measured on.
    """

    kind: str
    name: str
    source: Source | None
    parameters: Mapping[str, Any]
    weight: float
    measure: Callable[[Any, Any, Advance], dict[str, Any]]
    machine: bool = False

    def key(self) -> dict[str, Any]:
        """Give all that the result depends on."""
        machine = describe_machine() if self.machine else None
        return {
            "format": FORMAT,
            "kind": self.kind,
            "name": self.name,
            "data": None if self.source is None else self.source.identity,
            "parameters": dict(self.parameters),
            "machine": machine and {k: machine[k] for k in ("processor", "cores", "memory_gib")},
        }

    def file_name(self) -> str:
        """Give the name of its file: readable, and different for different parameters."""
        digest = hashlib.sha256(json.dumps(self.key(), sort_keys=True).encode()).hexdigest()
        label = "" if self.source is None else f"{self.source.label}-"
        return f"{self.kind}-{label}{self.name}-{digest[:8]}.json"


def finished(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """Read a cell's result, or None if it has not been measured; damaged files do not count."""
    try:
        content = json.loads((folder / cell.file_name()).read_text())
        if content["key"] == json.loads(json.dumps(cell.key())):
            return dict(content["result"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def run_cells(
    cells: Sequence[Cell], folder: Path, report: Report | None = None
) -> list[dict[str, Any]]:
    """Measure cells that are not finished, one data set after the other.

    Parameters
    ----------
    cells : sequence of Cell
        What to measure; equal ones are measured once.
    folder : Path
        Where results are kept; made if needed.
    report : callable, optional
        Told what is going on.

    Returns
    -------
    list of dict
        A result for each cell, in their order.
    """
    names = [cell.file_name() for cell in cells]
    results = {name: finished(cell, folder) for name, cell in zip(names, cells, strict=True)}
    open_cells = {
        name: cell for name, cell in zip(names, cells, strict=True) if results[name] is None
    }
    total = sum(cell.weight for cell in open_cells.values())
    done, shelf = 0.0, DatasetCache()
    # Grouped by data set, so that each is read once and only one is in memory.
    sources = {id(cell.source): position for position, cell in reversed(list(enumerate(cells)))}
    order = sorted(open_cells, key=lambda name: sources[id(open_cells[name].source)])
    for name in order:
        cell = open_cells[name]
        where = "" if cell.source is None else f" on {cell.source.label}"
        line = f"{cell.kind}{where}: {cell.name}"

        advance = _advance(report, line, done / total, cell.weight / total)
        advance(0.0)
        X, y = (None, None) if cell.source is None else shelf.take(cell.source)
        began = time.perf_counter()
        result = cell.measure(X, y, advance)
        _keep(folder / name, cell, result, time.perf_counter() - began)
        # As a later run will read it: JSON has no tuples.
        results[name] = json.loads(json.dumps(result))
        done += cell.weight
    if report is not None and order:
        report("done", 1.0)
    return [dict(results[name] or {}) for name in names]


def _advance(report: Report | None, line: str, before: float, share: float) -> Advance:
    """Turn the share of a cell that is done into that of all the work."""

    def advance(part: float) -> None:
        if report is not None:
            report(line, before + part * share)

    return advance


def _keep(path: Path, cell: Cell, result: dict[str, Any], seconds: float) -> None:
    content = {"key": cell.key(), "result": result, "seconds": seconds}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write((json.dumps(content) + "\n").encode())
