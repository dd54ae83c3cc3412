"""The comparisons by name, as ``config.toml`` sets them; and those with options of their own."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from evidence.benchmarks import (
    access,
    encoding,
    end_to_end,
    full_size,
    gap,
    gradient,
    growth,
    memory,
    reading,
    selection,
    store,
    table3,
    transposition,
    tuning,
)
from evidence.cells import Cell, failed, kept, machines
from evidence.datasets import Spec
from evidence.items import Item, Recipe, Settings
from evidence.options import options_of
from evidence.report import measured_on, picture, report_markdown, write_files

CONFIG = Path(__file__).with_name("config.toml")


def read_config(settings: Settings) -> dict[str, SimpleNamespace]:
    """Read the tables of the small or the whole version.

    Raises
    ------
    ValueError
        If the file cannot be read, or names no such thing.
    """
    path, profile = settings.config or CONFIG, "quick" if settings.quick else "full"
    found = {}
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file).get(profile, {})
        for name, entries in tables.items():
            if name not in COMPARISONS:
                raise ValueError(f"there is no comparison {name!r}; there is {[*COMPARISONS]}")
            if "data" in entries:
                entries["data"] = [Spec(**spec) for spec in entries["data"]]
            found[name] = SimpleNamespace(**entries)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    return found


def _cases(module: ModuleType, config: SimpleNamespace) -> dict[str, Any]:
    if hasattr(module, "cases"):
        return dict(module.cases(config))
    return {spec.name: spec for spec in config.data}


def _cells(name: str, module: ModuleType, settings: Settings) -> list[Cell]:
    """List the cases of a comparison, each in a process of its own."""
    config = read_config(settings).get(name)
    if config is None:
        return []
    shared = {key: value for key, value in vars(config).items() if key != "data"}
    return [
        Cell(
            kind=name,
            name=case,
            measure=partial(module.measure, spec, config, settings),
            parameters={**shared, "case": vars(spec)},
            machine=True,
            apart=True,
        )
        for case, spec in _cases(module, config).items()
    ]


def _present(name: str, module: ModuleType, settings: Settings, results: list[Any]) -> Item:
    cases = [cell.name for cell in _cells(name, module, settings)]
    found = {case: one for case, one in zip(cases, results, strict=True) if one is not None}
    measured = {case: one for case, one in found.items() if not failed(one)}
    missing = tuple(
        f"Left out: {name}, {case}: {one.get('left_out') or one.get('failure')}."
        for case, one in found.items()
        if failed(one)
    )
    if not measured:
        return Item(name, module.TITLE, missing)
    draw = partial(module.draw, measured) if hasattr(module, "draw") else None
    return Item(
        name, module.TITLE, (*module.section(measured), *missing), draw=draw, size=(11, 4.5)
    )


COMPARISONS = {
    "table3": table3,
    "end_to_end": end_to_end,
    "transpose": transposition,
    "growth": growth,
    "gap": gap,
    "memory": memory,
    "access": access,
    "tuning": tuning,
}
ITEMS = {
    name: Recipe(partial(_cells, name, module), partial(_present, name, module))
    for name, module in COMPARISONS.items()
} | {
    name: options_of(name, module, machine=True)
    for name, module in (
        ("selection", selection),
        ("encoding", encoding),
        ("reading", reading),
        ("store", store),
        ("full_size", full_size),
        ("gradient", gradient),
    )
}
# Of `make bench`; the others are asked for by name.
ALL = tuple(name for name in COMPARISONS if name != "tuning")


def publish(
    items: Sequence[Item], settings: Settings, folder: Path
) -> Mapping[str, Mapping[str, Path]]:
    """Write the pictures of each item, and one report of all that are kept."""
    every = [found for recipe in ITEMS.values() if (found := recipe.presented(settings, folder))]
    contents = [
        content
        for recipe in ITEMS.values()
        for cell in recipe.cells(settings)
        if (content := kept(cell, folder))
    ]
    files = {
        item.name: write_files({"png": picture(item, "png")}, folder, item.name)
        for item in items
        if item.draw
    }
    title = f"Benchmarks ({'quick' if settings.quick else 'full'})"
    text = report_markdown(title, [measured_on(machines(contents))], every)
    return files | {"report": write_files({"md": text.encode()}, folder, "report")}
