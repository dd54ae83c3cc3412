"""Items that are a module: ``measure`` with keyword arguments, and what is said of its result.

Such a module has

- ``measure(*, ...)``, whose keyword arguments are the item's options on the command line, or
  ``split(*, ...)``, which turns the options into those of ``measure``, cell by cell;
- ``QUICK``, the options of the small version;
- ``TITLE``, and ``section(results)``, which takes a result for each cell and returns the parts;
- perhaps ``draw(results, figure)``, and ``WEIGHTS`` of its cells.
"""

import argparse
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from evidence.cells import Cell, failed
from evidence.items import Item, Recipe, Settings


def options_of(name: str, module: ModuleType, *, machine: bool = False, **fixed: Any) -> Recipe:
    """Return how a module's item is measured, some options fixed; `machine` as in `Cell`."""
    function = getattr(module, "split", module.measure)
    given = partial(_cells, name, module, machine, fixed)
    return Recipe(given, partial(_present, name, module), function)


def _cells(
    name: str, module: ModuleType, machine: bool, fixed: Mapping[str, Any], settings: Settings
) -> list[Cell]:
    function = getattr(module, "split", module.measure)
    chosen = {
        option: parameter.default
        for option, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    shared = {"seed": settings.seed, "repeats": settings.repeats, "n_jobs": settings.n_jobs}
    chosen |= {option: value for option, value in shared.items() if option in chosen}
    # The report presents every item, with the options of the one that was asked for.
    known = inspect.signature(function).parameters
    own = {option: value for option, value in settings.options.items() if option in known}
    chosen |= (module.QUICK if settings.quick else {}) | own | fixed
    missing = set(known) - set(chosen)
    if missing:
        # Asked for by name only, with what it cannot do without.
        return []
    parts = module.split(**chosen) if function is not module.measure else {"": chosen}
    weights: Mapping[str, float] = getattr(module, "WEIGHTS", {})
    return [
        Cell(
            name,
            part,
            partial(module.measure, **given),
            {option: _plain(value) for option, value in given.items()},
            weight=weights.get(part or name, 1.0),
            machine=machine,
            apart=True,
        )
        for part, given in parts.items()
    ]


def _plain(value: Any) -> Any:
    return [str(one) for one in value] if isinstance(value, list) else str(value)


def _present(name: str, module: ModuleType, _settings: Settings, results: list[Any]) -> Item:
    found = [one for one in results if one is not None]
    lost = [one for one in found if "failure" in one or "left_out" in one]
    if lost:
        return Item(
            name, module.TITLE, tuple(one.get("failure") or one["left_out"] for one in lost)
        )
    draw = partial(module.draw, found) if hasattr(module, "draw") else None
    parts = tuple(module.section(found))
    if any(map(failed, found)):
        parts = ("FAILED.", *parts)
    return Item(name, module.TITLE, parts, draw=draw)


def parse_options(function: Callable[..., Any], prog: str, arguments: list[str]) -> dict[str, Any]:
    """Read a function's keyword arguments from a command line; only what is given."""
    parser = argparse.ArgumentParser(prog=prog, argument_default=argparse.SUPPRESS)
    parser.usage = f"{prog} [options of all items] [options]"
    hints = typing.get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, more = hints[name], {}
        if isinstance(kind, types.UnionType):
            kind = next(one for one in typing.get_args(kind) if one is not type(None))
        if typing.get_origin(kind) is list:
            (kind,), more = typing.get_args(kind), {"nargs": "+"}
        if typing.get_origin(kind) is typing.Literal:
            kind, more = str, more | {"choices": typing.get_args(kind)}
        needed = parameter.default is inspect.Parameter.empty
        if kind is bool:
            more = {"action": argparse.BooleanOptionalAction}
        else:
            more |= {"type": Path if kind is Path else kind}
        about = "needed" if needed else f"default: {parameter.default}"
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, required=needed, help=about, **more)
    return vars(parser.parse_args(arguments))
