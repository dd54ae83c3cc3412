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
    """What all items are told.

    Attributes
    ----------
    sources : tuple of Source
        The data sets.
    iterations : int or None
        T; None takes the item's own.
    seed : int
        Of the draws and of the held-out split.
    n_jobs : int
        Threads.
    repeats : int
        Runs of which a time is the median.
    limit : float
        Seconds of steps after which a timed run is stopped and scaled to all its steps.
    quick : bool
        The small version.
    data : Path or None
        Folder of the files that `config` names.
    config : Path or None
        Instead of ``benchmarks/config.toml``.
    options : mapping
        The item's own, as given on the command line.
    """

    sources: tuple[Source, ...] = ()
    iterations: int | None = None
    seed: int = 0
    n_jobs: int = 1
    repeats: int = 3
    limit: float = 4.0
    quick: bool = False
    data: Path | None = None
    config: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table to show, as text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Item:
    """A piece of evidence, measured.

    Attributes
    ----------
    name, title : str
        ``table1``, and one line.
    parts : tuple of str or Table
        What was measured and how, in order. Plain text with `code` in backticks.
    data_head, data_rows : tuple
        The numbers, for the CSV file; without a head there is none.
    draw : callable or None
        Draws the picture into an empty figure.
    size : tuple of float
        Its size in inches.
    """

    name: str
    title: str
    parts: tuple[str | Table, ...]
    data_head: tuple[str, ...] = ()
    data_rows: tuple[tuple[Any, ...], ...] = ()
    draw: "Draw | None" = None
    size: tuple[float, float] = (9.0, 4.5)


@dataclass(frozen=True)
class Recipe:
    """How an item is measured and presented.

    Attributes
    ----------
    cells : callable
        Takes `Settings`.
    present : callable
        Takes `Settings` and a result for each cell, None for one that was not measured.
    options : callable or None
        A function whose keyword arguments are the item's own options.
    """

    cells: Callable[[Settings], list[Cell]]
    present: Callable[[Settings, list[Any]], Item]
    options: Callable[..., Any] | None = None

    def presented(self, settings: Settings, folder: Path) -> Item | None:
        """Return the item by what is kept in a folder; None if nothing is."""
        contents = [kept(cell, folder) for cell in self.cells(settings)]
        if not any(contents):
            return None
        return self.present(settings, [content and content["result"] for content in contents])
