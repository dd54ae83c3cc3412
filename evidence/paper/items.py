"""An item of the reproduction as a reader sees it, and its files."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.files.atomic import atomic_write
from evidence.paper.datasets import Source
from evidence.paper.machine import describe_machine, machine_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 110


@dataclass(frozen=True)
class Settings:
    """What all items are told.

    Attributes
    ----------
    sources : tuple of Source
        The data sets.
    iterations : int or None
        T; None takes the paper's.
    seed : int
        Of the draws and of the held-out split.
    n_jobs : int
        Threads.
    repeats : int
        Runs of which a time is the median.
    limit : float
        Seconds of steps after which a timed run is stopped and scaled to all its steps.
    """

    sources: tuple[Source, ...]
    iterations: int | None = None
    seed: int = 0
    n_jobs: int = 1
    repeats: int = 3
    limit: float = 4.0


@dataclass(frozen=True)
class Item:
    """A table or a figure, measured.

    Attributes
    ----------
    name : str
        ``table1`` ... ``figure4``.
    title : str
        One line.
    paragraphs : tuple of str
        What the paper states, what was measured and how. Plain text with `code` in backticks.
    head, rows : tuple
        The table to show, as text.
    data_head, data_rows : tuple
        The numbers, for the CSV file.
    draw : callable
        Draws the picture into an empty figure.
    size : tuple of float
        Its size in inches.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    data_head: tuple[str, ...]
    data_rows: tuple[tuple[Any, ...], ...]
    draw: Callable[["Figure"], None]
    size: tuple[float, float] = (9.0, 4.5)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [list(head), ["---"] * len(head), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown(item: Item, level: int = 1) -> str:
    """Write an item as Markdown; its picture lies beside the file."""
    return "\n\n".join(
        [
            f"{'#' * level} {item.title}",
            *item.paragraphs,
            markdown_table(item.head, item.rows),
            f"![{item.title}]({item.name}.png)",
        ]
    )


def csv_text(item: Item) -> str:
    """Write an item's numbers as CSV: floats with six significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(item.data_head)
    writer.writerows([[_shown(value) for value in row] for row in item.data_rows])
    return text.getvalue()


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else value


def picture(item: Item, kind: str) -> bytes:
    """Draw an item.

    Parameters
    ----------
    item : Item
        What to draw.
    kind : {"png", "svg"}
        The format.

    Returns
    -------
    bytes
        The same for the same numbers.
    """
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=item.size, layout="constrained")
    with matplotlib.rc_context({"svg.hashsalt": "dplasso", "font.size": 9}):
        item.draw(figure)
        into = io.BytesIO()
        stamp = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(into, format=kind, dpi=_DPI, metadata=stamp)
    return into.getvalue()


def write_item(item: Item, folder: Path) -> dict[str, Path]:
    """Write an item's four files, each whole or not at all.

    Parameters
    ----------
    item : Item
        What to write.
    folder : Path
        Where; made if needed.

    Returns
    -------
    dict of str to Path
        By kind: ``csv``, ``png``, ``svg``, ``md``.
    """
    measured = f"Measured on: {machine_line(describe_machine())}."
    contents = {
        "csv": csv_text(item).encode(),
        "png": picture(item, "png"),
        "svg": picture(item, "svg"),
        "md": f"{markdown(item)}\n\n{measured}\n".encode(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for kind, content in contents.items():
        files[kind] = folder / f"{item.name}.{kind}"
        with atomic_write(files[kind]) as file:
            file.write(content)
    return files
