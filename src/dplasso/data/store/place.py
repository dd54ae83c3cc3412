"""Where a store is put: beside its place while it is written, renamed when it is complete."""

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
from dplasso.files.atomic import make_folder, sync_directory
from dplasso.files.lock import hold

_ARRAY_FILES = [array_file(Path(), name) for name in ARRAYS]
_STORE_FILES = {HEADER_FILE, *(file.name for file in _ARRAY_FILES)}
_UNFINISHED_FILES = _STORE_FILES | {file.with_suffix(RECAST_SUFFIX).name for file in _ARRAY_FILES}


def partial_directory(path: Path) -> Path:
    """Return where the store `path` is while it is written."""
    return path.with_name(path.name + PARTIAL_SUFFIX)


def is_incomplete(name: str, files: Iterable[str], *, has_header: bool) -> bool:
    """Return whether what lies in a folder of stores is a store, or a part of one, not to be used.

    `name`: of the file or folder; `files`: those in it, whose names may be those that a copying
    program gives until they are whole.
    """
    if name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)):
        return True
    parts = (part in file for file in files for part in _UNFINISHED_FILES)
    return not has_header and (name.endswith(".store") or any(parts))


def refuse_incomplete(place: str | Path) -> NoReturn:
    """Raise StoreError for a store in a folder of stores that is not to be used."""
    raise StoreError(
        f"{place} is not a complete store: copy or convert it again, or move it out of the folder"
    )


def stores_in(folder: Path) -> list[Path]:
    """Return the stores in a folder, part-2 before part-10; StoreError for an incomplete one."""
    found = []
    for place in sorted(folder.iterdir(), key=natural_order):
        has_header = (place / HEADER_FILE).is_file()
        files = [file.name for file in place.iterdir()] if place.is_dir() else []
        if is_incomplete(place.name, files, has_header=has_header):
            refuse_incomplete(place)
        if has_header:
            found.append(place)
    return found


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place where no store can be put; with `force` an older store may be replaced."""
    if path.name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)) or not path.name:
        raise StoreError(
            f"{path} cannot be the name of a store: {PARTIAL_SUFFIX} and {REPLACED_SUFFIX} mark "
            "unfinished ones"
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
    """Make an empty directory beside `path`, for this process alone, and remove it on failure."""
    partial = partial_directory(path)
    with hold(path, StoreError(f"{path} is being written by another process; wait for it")):
        make_folder(partial)
        strange = sorted({entry.name for entry in partial.iterdir()} - _UNFINISHED_FILES)
        if strange:
            raise StoreError(
                f"{partial} holds {strange[0]}, which a conversion does not write; move it first"
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
    """Move a complete store to its place; an older one is removed only after that."""
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
    """Undo or complete a replacement that was interrupted between its two renames."""
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    if replaced.is_dir() and {entry.name for entry in replaced.iterdir()} <= _STORE_FILES:
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)
