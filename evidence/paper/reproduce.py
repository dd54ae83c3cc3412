"""The items by name, and the run that makes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.paper import figures, table1, table2, table3, table4
from evidence.paper.cells import Cell, Report, run_cells
from evidence.paper.items import Item, Settings

CELLS = "cells"


@dataclass(frozen=True)
class Recipe:
    """How an item is measured and presented."""

    cells: Callable[[Settings], list[Cell]]
    present: Callable[[Settings, list[dict[str, Any]]], Item]


RECIPES = {
    "table1": Recipe(table1.cells, table1.present),
    "table2": Recipe(table2.cells, table2.present),
    "figure1": Recipe(figures.cells, figures.figure1),
    "figure2": Recipe(figures.cells, figures.figure2),
    "figure3": Recipe(figures.cells, figures.figure3),
    "figure4": Recipe(figures.cells, figures.figure4),
    "table3": Recipe(table3.cells, table3.present),
    "table4": Recipe(table4.cells, table4.present),
}
ALL = "all"


def item_names(asked: str) -> tuple[str, ...]:
    """Give the items that a name stands for.

    Parameters
    ----------
    asked : str
        One of `RECIPES`, or ``all``.

    Returns
    -------
    tuple of str

    Raises
    ------
    ValueError
        If there is no such item.
    """
    if asked == ALL:
        return tuple(RECIPES)
    if asked not in RECIPES:
        raise ValueError(f"there is no item {asked!r}; there are {', '.join(RECIPES)} and {ALL}")
    return (asked,)


def reproduce(
    names: Sequence[str], settings: Settings, folder: Path, report: Report | None = None
) -> list[Item]:
    """Measure what is not finished, and present the items.

    Parameters
    ----------
    names : sequence of str
        Of `RECIPES`.
    settings : Settings
        Data sets and parameters.
    folder : Path
        Results of cells are kept in its subfolder ``cells``.
    report : callable, optional
        Told what is going on.

    Returns
    -------
    list of Item
    """
    wanted = {name: RECIPES[name].cells(settings) for name in names}
    every = [cell for cells in wanted.values() for cell in cells]
    results = run_cells(every, folder / CELLS, report)
    items, first = [], 0
    for name, cells in wanted.items():
        items.append(RECIPES[name].present(settings, results[first : first + len(cells)]))
        first += len(cells)
    return items
