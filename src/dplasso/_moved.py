"""Modules under the names they had in version 0.1.0, so that old imports and pickles still work.

An old name is imported as a thin module that passes every look-up on to the new one; nothing is
imported before it is asked for.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

MODULES = {
    "archive": "files.archive",
    "atomic": "files.atomic",
    "audit_target": "audit.targets",
    "checkpoint_charge": "checkpoint.charge",
    "checkpoint_file": "checkpoint.format",
    "claim": "files.lock",
    "compilation": "runtime.compilation",
    "data.adult": "datasets.adult",
    "data.array_writer": "data.store.array_writer",
    "data.arrow": "data.tables.lists",
    "data.arrow_files": "data.tables.files",
    "data.catalog": "datasets.catalog",
    "data.download": "datasets.download",
    "data.external_transpose": "data.store.external_transpose",
    "data.hashing": "encoding.hashing",
    "data.matrix": "matrix.compressed",
    "data.paths": "data.source_files",
    "data.row_spill": "data.store.row_writer",
    "data.store_format": "data.store.format",
    "data.store_kernel": "data.store.kernel",
    "data.store_place": "data.store.place",
    "data.store_reader": "data.store.reader",
    "data.store_writer": "data.store.writer",
    "data.svmlight_kernel": "data.svmlight.kernel",
    "data.svmlight_lines": "data.svmlight.lines",
    "data.svmlight_numbers": "data.svmlight.numbers",
    "data.text_files": "data.text.files",
    "data.transpose": "matrix.transpose",
    "data.twins": "datasets.synthetic.generate",
    "data.twins_kernel": "datasets.synthetic.kernel",
    "data.twins_plan": "datasets.synthetic.plan",
    "estimator": "estimators.lasso",
    "frank_wolfe.decision": "matrix.margins",
    "kernel_cache": "runtime.kernel_cache",
    "label_json": "files.labels",
    "privacy.audit": "audit",
    "privacy.cost": "training.cost",
    "privacy.ledger.curator": "privacy.ledger.provenance",
    "privacy.mechanism": "privacy.mechanisms",
    "progress": "runtime.progress",
    "selection.forced": "selection.replay",
    "selection.numbering": "matrix.numbering",
    "settings": "training.settings",
    "training_data": "training.inputs",
}
"""Old name to new, both below ``dplasso``; modules inside a package move with it."""

NAMES = {
    "RowSpill": "RowWriter",
    "labels_from_json": "labels_of_version_1",
    "make_twin": "make_synthetic",
    "twin_source": "synthetic_source",
}
"""Old name to new of what the modules hold."""


def new_name(name: str) -> str | None:
    """Return the full name that a module has now, None if it did not move."""
    old = name.removeprefix("dplasso.")
    for moved, place in MODULES.items():
        if old == moved or old.startswith(f"{moved}."):
            return f"dplasso.{place}{old.removeprefix(moved)}"
    return None


class MovedFinder:
    """Finds modules by their old names, after everyone else has looked."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to make the thin module; None if the name is not an old one."""
        place = new_name(name) if name.startswith("dplasso.") else None
        if place is None:
            return None
        found = find_spec(place)
        if found is None:
            return None
        loader: Any = _Loader(place)
        inside = found.submodule_search_locations is not None
        return ModuleSpec(name, loader, origin=place, is_package=inside)


class _Loader:
    def __init__(self, place: str) -> None:
        self._place = place

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave it to importlib."""

    def exec_module(self, module: ModuleType) -> None:
        target = import_module(self._place)

        def look_up(name: str) -> Any:
            if not hasattr(target, name) and name in NAMES:
                name = NAMES[name]
            return getattr(target, name)

        module.__doc__ = target.__doc__
        module.__dict__["__getattr__"] = look_up
        module.__dict__["__dir__"] = lambda: dir(target)


def install() -> None:
    """Let old names be imported."""
    if MovedFinder not in sys.meta_path:
        sys.meta_path.append(MovedFinder)
