"""Run items of a list: measure what is not finished, present, and write what is to be kept."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from evidence.cells import Ended, Report, run_cells
from evidence.items import ROOT, Item, Settings

# A list is a module with `ITEMS` (recipes by name) and perhaps
#   ALL        the names that the list's own name stands for, if not all
#   UNSOURCED  the items that can do without data sets, where the others need `Settings.sources`
#   DATA       the data sets, in place of the paper's, where none are named
#   options    a function whose keyword arguments may be given with the list's own name
#   publish    publish(items, settings, folder) -> paths of files by item and kind
LISTS = {
    "paper": "evidence.paper.items",
    "benchmarks": "evidence.benchmarks.items",
    "assurance": "evidence.assurance.items",
    "utility": "evidence.utility.items",
}
ALL = "all"


def open_list(name: str) -> Any:
    """Return the module of a list; raises ValueError if there is no such list."""
    if name not in LISTS:
        raise ValueError(f"there is no list {name!r}; there are {', '.join(LISTS)}")
    return import_module(LISTS[name])


def item_names(module: Any, asked: str) -> tuple[str, ...]:
    """Return the items that a name, or ``all``, stands for.

    Raises ValueError if there is no such item.
    """
    if asked == ALL:
        return tuple(getattr(module, "ALL", module.ITEMS))
    if asked not in module.ITEMS:
        known = ", ".join(module.ITEMS)
        raise ValueError(f"there is no item {asked!r}; there are {known} and {ALL}")
    return (asked,)


def published(name: str) -> Path:
    """Return the folder of a list's published results."""
    return ROOT / "evidence" / "results" / name


def run_items(
    module: Any,
    names: Sequence[str],
    settings: Settings,
    folder: Path,
    report: Report | None = None,
    *,
    only: str = "",
    ended: Ended | None = None,
    jobs: int = 1,
    again: bool = False,
) -> tuple[list[Item], list[dict[str, Any]]]:
    """Measure what is not finished, or the cell named by `only` alone, and present the items.

    Returns the items, and the results of the cells that were asked for.

    Raises ValueError if there is no cell of that name.
    """
    wanted = {name: module.ITEMS[name].cells(settings) for name in names}
    every = [cell for cells in wanted.values() for cell in cells if only in ("", cell.name)]
    bare = [name for name in getattr(module, "UNSOURCED", ()) if not wanted.get(name, True)]
    if not every and not bare:
        about = f"by the name {only!r}" if only else "without its options: see --help"
        raise ValueError(f"{', '.join(names)}: there is nothing to measure {about}")
    results = run_cells(every, folder, report, ended=ended, jobs=jobs, again=again)
    items = [
        recipe.present(settings, []) if name in bare else recipe.presented(settings, folder)
        for name, recipe in ((name, module.ITEMS[name]) for name in names)
    ]
    return [item for item in items if item is not None], results


def publish(
    module: Any, items: Sequence[Item], settings: Settings, folder: Path
) -> Mapping[str, Mapping[str, Path]]:
    """Write what a list publishes of its items; return the paths by item and kind."""
    from evidence.report import write_item

    write: Callable[..., Mapping[str, Mapping[str, Path]]] | None
    write = getattr(module, "publish", None)
    return (
        write(items, settings, folder) if write else {i.name: write_item(i, folder) for i in items}
    )
