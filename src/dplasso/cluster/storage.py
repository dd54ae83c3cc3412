"""Stores on object storage.

A worker copies a store to its machine, and keeps no file of it. The coordinator copies only headers
and labels.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from dplasso.data.source_files import checked_address, exhaust, natural_order
from dplasso.data.store import Store
from dplasso.data.store.files import HEADER_FILE, LABELS, array_file, open_array, read_header
from dplasso.data.store.opening import compare_sums, holds_store
from dplasso.errors import DataError, StoreError, need
from dplasso.files.disk import open_private

# Bytes between two answers to the coordinator, and bytes of a request.
PIECE, _REQUEST = 1 << 26, 1 << 22


def stores_at(address: str) -> list[str]:
    """Return the address of a store, or of the stores in a folder, part-2 before part-10."""
    address = checked_address(address)
    inside: list[str] = []
    with _reading(address) as (system, root), suppress(FileNotFoundError):
        if system.isfile(_within(root, HEADER_FILE)):
            return [address]
        # Files may have been uploaded since the listing was cached.
        system.invalidate_cache()
        for entry in system.ls(root, detail=True):
            place, name = entry["name"].rstrip("/"), PurePosixPath(entry["name"]).name
            if place == root.rstrip("/"):
                continue
            files = [] if entry["type"] == "file" else system.ls(place, detail=False)
            names = [PurePosixPath(file).name for file in files]
            if holds_store(_within(address, name), name, names):
                inside.append(_within(address, name))
    if not inside:
        raise DataError(f"{address}: no store or folder of stores exists there")
    return sorted(inside, key=lambda place: natural_order(Path(place)))


def header_and_labels(address: str) -> Store:
    """Return a store with only the header and the labels."""
    with TemporaryDirectory(prefix="dplasso-") as made:
        folder = Path(made).resolve()
        with _reading(address) as (system, root), showing(address, folder):
            exhaust(_copied(system, _within(root, HEADER_FILE), folder))
            header = read_header(folder)
            exhaust(_copied(system, _within(root, array_file(folder, LABELS).name), folder))
            labels = open_array(folder, LABELS, header.arrays[LABELS]).copy()
            store = Store(folder, header, {LABELS: labels})
            exhaust(compare_sums(store, [LABELS], 1))
            # Look up text labels here, where an error can still name the address.
            assert store.y is not None
            return store


def copy_store(address: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Copy the files of a store to a folder; yield the bytes copied so far, and in total."""
    with _reading(address) as (system, root):
        entries = system.ls(root, detail=True)
        files = [entry for entry in entries if entry["type"] == "file"]
        if not files:
            raise FileNotFoundError("there is no store")
        done, total = 0, sum(file["size"] for file in files)
        for file in files:
            for size in _copied(system, file["name"], folder):
                done += size
                yield done, total


@contextmanager
def showing(address: str | None, folder: Path | None) -> Iterator[None]:
    """Replace the folder of a copied store by the store's address in messages."""
    try:
        yield
    except StoreError as error:
        if address is None or folder is None:
            raise
        raise StoreError(str(error).replace(str(folder), address)) from None


def _within(root: str, name: str) -> str:
    return f"{root.rstrip('/')}/{name}"


def _copied(system: Any, name: str, folder: Path) -> Iterator[int]:
    """Copy a file, readable for the owner only; yield the bytes of every piece."""
    own = folder / PurePosixPath(name).name
    with open_private(own, "xb") as target:
        source, size = system.open(name, "rb"), 0
        while piece := source.read(min(_REQUEST, PIECE)):
            target.write(piece)
            size += len(piece)
            if size >= PIECE:
                yield size
                size = 0
        yield size
        # Closed only here, because a file that is being read cannot be closed.
        source.close()


@contextmanager
def _reading(address: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of an address and the place in it; convert errors to `DataError`."""
    need("fsspec", "Reading object storage")
    import fsspec

    try:
        yield fsspec.core.url_to_fs(address)
    except DataError:
        raise
    except Exception as error:
        # Each file system has its own exceptions.
        raise DataError(f"{address} cannot be read: {error or type(error).__name__}") from None
