"""What a piece of evidence is: how it is measured, and how a reader sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.cells import Cell, kept
from evidence.datasets import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Draw = Callable[[Figure], None]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Settings:
    """What all items are told."""

    sources: tuple[Source, ...] = ()  # The data sets
    iterations: int | None = None  # T; None takes the item's own
    seed: int = 0  # Of the draws and of the held-out split
    n_jobs: int = 1  # Threads
    repeats: int = 3  # Runs of which a time is the median
    # Seconds of steps after which a timed run is stopped and scaled to all its steps.
    limit: float = 4.0
    quick: bool = False  # The small version
    data: Path | None = None  # Folder of the files that `config` names
    config: Path | None = None  # Instead of ``benchmarks/config.toml``
    # The item's own, as given on the command line.
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table to show, as text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Item:
    """A piece of evidence, measured."""

    # name, title: ``table1``, and one line.
    name: str
    title: str
    # What was measured and how, in order. Plain text with `code` in backticks.
    parts: tuple[str | Table, ...]
    # data_head, data_rows: the numbers, for the CSV file; without a head there is none.
    data_head: tuple[str, ...] = ()
    data_rows: tuple[tuple[Any, ...], ...] = ()
    draw: "Draw | None" = None  # Draws the picture into an empty figure
    size: tuple[float, float] = (9.0, 4.5)  # Its size in inches


@dataclass(frozen=True)
class Recipe:
    """How an item is measured and presented."""

    cells: Callable[[Settings], list[Cell]]  # Takes `Settings`
    # Takes `Settings` and a result for each cell, None for one that was not measured.
    present: Callable[[Settings, list[Any]], Item]
    # A function whose keyword arguments are the item's own options.
    options: Callable[..., Any] | None = None

    def presented(self, settings: Settings, folder: Path) -> Item | None:
        """Return the item by what is kept in a folder; None if nothing is."""
        contents = [kept(cell, folder) for cell in self.cells(settings)]
        if not any(contents):
            return None
        return self.present(settings, [content and content["result"] for content in contents])
