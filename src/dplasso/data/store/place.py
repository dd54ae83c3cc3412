"""The place of a store: it is written beside the place, and renamed when it is complete."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from dplasso.data.source_files import natural_order
from dplasso.data.store.header import (
    ARRAYS,
    HEADER_FILE,
    PARTIAL_SUFFIX,
    RECAST_SUFFIX,
    REPLACED_SUFFIX,
    array_file,
)
from dplasso.errors import StoreError
from dplasso.files.disk import hold, make_folder, sync_directory

_ARRAY_FILES = [array_file(Path(), name) for name in ARRAYS]
_STORE_FILES = {HEADER_FILE, *(file.name for file in _ARRAY_FILES)}
_UNFINISHED_FILES = _STORE_FILES | {file.with_suffix(RECAST_SUFFIX).name for file in _ARRAY_FILES}


def partial_directory(path: Path) -> Path:
    """Return the directory in which the store `path` is written."""
    return path.with_name(path.name + PARTIAL_SUFFIX)


def is_incomplete(name: str, files: Iterable[str], *, has_header: bool) -> bool:
    """Return whether an item in a folder of stores is an incomplete store.

    `name`: of the item. `files`: names of the files in it, which a copying program may change
    until it is done.
    """
    if name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)):
        return True
    parts = (part in file for file in files for part in _UNFINISHED_FILES)
    return not has_header and (name.endswith(".store") or any(parts))


def refuse_incomplete(place: str | Path) -> NoReturn:
    """Raise `StoreError` for an incomplete store in a folder of stores."""
    raise StoreError(
        f"{place} is not a complete store: copy or convert it again, or move it out of the folder"
    )


def stores_in(folder: Path) -> list[Path]:
    """Return the stores in a folder, part-2 before part-10; `StoreError` if one is incomplete."""
    stores = []
    for place in sorted(folder.iterdir(), key=natural_order):
        has_header = (place / HEADER_FILE).is_file()
        files = [file.name for file in place.iterdir()] if place.is_dir() else []
        if is_incomplete(place.name, files, has_header=has_header):
            refuse_incomplete(place)
        if has_header:
            stores.append(place)
    return stores


def check_place(path: Path, *, force: bool) -> None:
    """Raise an error if no store can be written to a place; `force` allows replacing a store."""
    if path.name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)) or not path.name:
        raise StoreError(
            f"{path} cannot be the name of a store: {PARTIAL_SUFFIX} and {REPLACED_SUFFIX} mark "
            "unfinished stores; choose another name"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: there is no folder {path.parent}; create it first."
        )
    if not path.exists():
        return
    if not path.is_dir():
        raise StoreError(f"{path} exists and is not a store; choose another name")
    files = {entry.name for entry in path.iterdir()}
    if files and not (HEADER_FILE in files and files <= _STORE_FILES):
        raise StoreError(f"{path} is a folder with other files; choose another name")
    if files and not force:
        raise StoreError(f"{path} exists already; replace it with --force")


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Make an empty directory beside `path` for this process only; remove it on failure."""
    partial = partial_directory(path)
    with hold(path, StoreError(f"{path} is being written by another process; wait for it")):
        make_folder(partial)
        strange = sorted({entry.name for entry in partial.iterdir()} - _UNFINISHED_FILES)
        if strange:
            raise StoreError(
                f"{partial} contains {strange[0]}, which no conversion writes; move it first"
            )
        try:
            _restore_replaced(path)
            for entry in partial.iterdir():
                entry.unlink()
            yield partial
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def put_in_place(partial: Path, path: Path) -> None:
    """Move a complete store to its place, and then remove an older one."""
    sync_directory(partial)
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    older = path.exists()
    if older:
        path.rename(replaced)
    try:
        partial.rename(path)
    except BaseException:
        if older:
            replaced.rename(path)
        raise
    sync_directory(path.parent)
    if older:
        shutil.rmtree(replaced, ignore_errors=True)


def _restore_replaced(path: Path) -> None:
    """Undo or complete an interrupted replacement of a store."""
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    if replaced.is_dir() and {entry.name for entry in replaced.iterdir()} <= _STORE_FILES:
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)
