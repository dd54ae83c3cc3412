"""Outputs: found unwritable before the work, put in place whole after it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dplasso.files.atomic import atomic_write, check_writable


def check_outputs(
    outputs: Iterable[Path], inputs: Iterable[Path | None] = (), *, force: bool, again: str = ""
) -> None:
    """Refuse outputs that exist (unless `force`), are inputs, are named twice or are unwritable.

    `again`: what overwriting costs, as the end of a sentence.
    """
    read = {path.resolve() for path in inputs if path is not None}
    seen: set[Path] = set()
    for path in outputs:
        place = path.resolve()
        if place in read:
            raise ValueError(f"{path} is an input of this command and will not be overwritten")
        if place in seen:
            raise ValueError(f"{path} is named for two outputs; give each its own file")
        seen.add(place)
        if path.exists() and not path.is_dir() and not force:
            raise FileExistsError(f"{path} exists already; overwrite it with --force{again}")
        check_writable(path)


def check_directory(directory: Path, names: Iterable[str]) -> None:
    """Refuse a directory, which need not exist yet, in which the files could not be written."""
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(f"{directory} exists and is not a folder;  choose another --out")
    existing = directory.resolve()
    while not existing.exists():
        existing = existing.parent
    names_here = [directory / name for name in names] if directory.is_dir() else []
    for path in names_here or [existing / directory.name]:
        check_writable(path)


@contextmanager
def naming(place: str | Path) -> Iterator[None]:
    """Name what was being written in a system error that does not, such as a full disk."""
    try:
        yield
    except OSError as error:
        told = error.errno is None or error.filename is not None
        if told or str(place) in str(error.strerror):
            raise
        raise OSError(error.errno, error.strerror, str(place)) from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, complete or not at all; an existing one is replaced."""
    with naming(path), atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
