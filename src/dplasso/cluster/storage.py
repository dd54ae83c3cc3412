"""Stores on object storage: whoever works on one copies it to its machine, and keeps no file of it.

One that is made for it is made in a temporary folder, and copied there.

A coordinator, which knows no rows, copies headers and labels alone.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from dplasso.data.source_files import checked_address, exhaust, is_address, natural_order
from dplasso.data.store import Store, open_store
from dplasso.data.store.files import HEADER_FILE, LABELS, array_file, open_array, read_header
from dplasso.data.store.opening import compare_sums, is_incomplete, refuse_incomplete
from dplasso.errors import DataError, StoreError, need
from dplasso.files.disk import open_private

# Bytes between two answers to the coordinator, and bytes asked for at a time.
PIECE, _REQUEST = 1 << 26, 1 << 22
# Seconds that a server may take for an answer, or for so many bytes.
SILENCE = 120.0


def stores_at(address: str) -> list[str]:
    """Return the addresses of a store or of those in a folder, part-2 before part-10."""
    address = checked_address(address)
    inside: list[str] = []
    with _reading(address) as (system, root), suppress(FileNotFoundError):
        if _answer(system.isfile, _within(root, HEADER_FILE)):
            return [address]
        # What was listed earlier may have been uploaded since.
        system.invalidate_cache()
        for one in _answer(system.ls, root, detail=True):
            place, name = one["name"].rstrip("/"), PurePosixPath(one["name"]).name
            if place == root.rstrip("/"):
                continue
            files = [] if one["type"] == "file" else _answer(system.ls, place, detail=False)
            names = [PurePosixPath(file).name for file in files]
            has_header = HEADER_FILE in names
            if is_incomplete(name, names, has_header=has_header):
                refuse_incomplete(_within(address, name))
            if has_header:
                inside.append(_within(address, name))
    if not inside:
        raise DataError(f"{address}: no store or folder of stores exists there")
    return sorted(inside, key=lambda one: natural_order(Path(one)))


def header_and_labels(address: str) -> Store:
    """Return a store of which nothing but the header and the labels was copied."""
    with TemporaryDirectory(prefix="dplasso-") as made:
        folder = Path(made).resolve()
        with _reading(address) as (system, root), showing(address, folder):
            exhaust(_copied(system, _within(root, HEADER_FILE), folder))
            header = read_header(folder)
            exhaust(_copied(system, _within(root, array_file(folder, LABELS).name), folder))
            labels = open_array(folder, LABELS, header.arrays[LABELS]).copy()
            store = Store(folder, header, {LABELS: labels})
            exhaust(compare_sums(store, [LABELS], 1))
            # Labels that are words are looked up here, where an error can still name the address.
            assert store.y is not None
            return store


def copy_store(address: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Copy the files of a store into a folder; yield the bytes copied and to be copied."""
    with _reading(address) as (system, root):
        files = [one for one in _answer(system.ls, root, detail=True) if one["type"] == "file"]
        if not files:
            raise FileNotFoundError("there is no store")
        done, total = 0, sum(one["size"] for one in files)
        for one in files:
            for size in _copied(system, one["name"], folder):
                done += size
                yield done, total


@contextmanager
def opened_store(path: str) -> Iterator[Store]:
    """Open a store, wherever it is; of one on object storage a copy, which is then removed."""
    if not is_address(path):
        yield open_store(path)
        return
    with TemporaryDirectory(prefix="dplasso-", ignore_cleanup_errors=True) as made:
        folder = Path(made).resolve()
        exhaust(copy_store(path, folder))
        with showing(path, folder):
            yield open_store(folder, verify=True)


@contextmanager
def showing(address: str | None, folder: Path | None) -> Iterator[None]:
    """Name a store's address in messages, not the folder of its copy, if there is one."""
    try:
        yield
    except StoreError as error:
        if address is None or folder is None:
            raise
        raise StoreError(str(error).replace(str(folder), address)) from None


def check_free(address: str, *, force: bool) -> str:
    """Return the address of a store to be made; DataError if there is one, unless `force`."""
    address = checked_address(address)
    with _reading(address) as (system, root):
        if not force and _answer(system.isfile, _within(root, HEADER_FILE)):
            raise DataError(f"{address} is a store already; replace it with --force")
    return address


def put_store(folder: Path, address: str) -> None:
    """Copy a store to object storage; its header goes there last, and makes it one."""
    with ExitStack() as meanwhile, _reading(address, "written") as (system, root):
        # Where the storage is a folder, nobody else may read it.
        meanwhile.callback(os.umask, os.umask(0o077))
        header = _within(root, HEADER_FILE)
        if _answer(system.isfile, header):
            # What is being replaced is no store meanwhile.
            _answer(system.rm_file, header)
        _answer(system.makedirs, root, exist_ok=True)
        for file in sorted(folder.iterdir(), key=lambda one: one.name == HEADER_FILE):
            place = _within(root, file.name)
            target = _answer(system.open, place, "wb")
            with file.open("rb") as source:
                while piece := source.read(_REQUEST):
                    _answer(target.write, piece)
            _answer(target.close)
            if _answer(system.size, place) != file.stat().st_size:
                raise DataError(f"{address}: {file.name} arrived incomplete; convert it again")


def _within(root: str, name: str) -> str:
    return f"{root.rstrip('/')}/{name}"


def _copied(system: Any, name: str, folder: Path) -> Iterator[int]:
    """Copy a file, so that nobody else may read it; yield the bytes of every piece."""
    own = folder / PurePosixPath(name).name
    with open_private(own, "xb") as target:
        source, size = _answer(system.open, name, "rb"), 0
        while piece := _answer(source.read, min(_REQUEST, PIECE)):
            target.write(piece)
            size += len(piece)
            if size >= PIECE:
                yield size
                size = 0
        yield size
        # One that is still being read could not be closed.
        _answer(source.close)


def _answer(ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a file system answers, within `SILENCE` seconds; TimeoutError otherwise."""
    told: Future[Any] = Future()

    def wait() -> None:
        try:
            told.set_result(ask(*args, **kwargs))
        except BaseException as error:
            told.set_exception(error)

    # Nothing waits for this thread: a server that accepts and is silent would keep it for ever.
    Thread(target=wait, daemon=True).start()
    try:
        return told.result(SILENCE)
    except TimeoutError:
        if told.done():
            raise
        raise TimeoutError(f"there was no answer for {SILENCE:g} seconds") from None


@contextmanager
def _reading(address: str, done: str = "read") -> Iterator[tuple[Any, str]]:
    """Give the file system of an address and the place in it; what it raises becomes DataError."""
    need("fsspec", "Reading and writing object storage")
    import fsspec

    try:
        yield _answer(fsspec.core.url_to_fs, address)
    except DataError:
        raise
    except Exception as error:
        # Each system has errors of its own.
        raise DataError(f"{address} cannot be {done}: {error or type(error).__name__}") from None
