"""The files behind a data set: names and patterns expanded, sized, and watched for changes."""

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dplasso.data.streams import (
    COMPRESSED_SUFFIXES,
    FileMark,
    check_readable,
    check_unchanged,
)
from dplasso.errors import DataError

# LIBSVM's own collection names its files a9a, a9a.t, news20.binary, kdd12.tr, ...
_COLLECTION_SUFFIXES = (".binary", ".scale", ".t", ".tr", ".te", ".train", ".test", ".val")
SVMLIGHT_SUFFIXES = (
    *("", ".svm", ".svmlight", ".libsvm", ".txt", ".dat", ".data"),
    *_COLLECTION_SUFFIXES,
)


@dataclass(frozen=True)
class SourceFiles:
    """Files that make one data set, in their order.

    `paths`: at least one.
    `marks`: what they looked like at first.
    """

    paths: tuple[Path, ...]
    marks: tuple[FileMark, ...]

    @property
    def name(self) -> str:
        """The first file, and how many others there are."""
        more = len(self.paths) - 1
        return f"{self.paths[0]} and {more} more" if more else str(self.paths[0])

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return self.before(len(self.paths))

    def before(self, i: int) -> int:
        """Bytes of the files before file ``i``."""
        return sum(mark.size for mark in self.marks[:i])

    def check_unchanged(self, i: int) -> None:
        """Raise `DataError` if file ``i`` is no longer what it was at first."""
        check_unchanged(self.paths[i], self.marks[i])

    @property
    def kind(self) -> Literal["svmlight", "npz"]:
        """How files that are not tables are read; `DataError` if they are of several kinds."""
        kinds = [_kind(path) for path in self.paths]
        for path, kind in zip(self.paths, kinds, strict=True):
            if kind != kinds[0]:
                raise DataError(
                    f"{path}: {self.paths[0]} is of another kind ({kinds[0]}, not {kind}); "
                    "the files of one data set must be of one kind"
                )
        return kinds[0]


Paths = str | Path | Iterable[str | Path] | SourceFiles
"""One file, a pattern such as ``part-*.svm.gz``, several of these, or what they mean."""


def source_files(paths: Paths) -> SourceFiles:
    """Return the files of a data set, of whatever kind.

    `paths`: names and patterns as `expand` takes them; what it returned before stays as it is.

    Raises DataError as `expand` does; if a file is missing, or is no file.
    """
    if isinstance(paths, SourceFiles):
        return paths
    files = tuple(expand(paths))
    for path in files:
        check_readable(path)
    return SourceFiles(files, tuple(FileMark.of(path) for path in files))


def is_address(path: str) -> bool:
    """Return whether a store is at an address such as s3://bucket/a, not in a local folder."""
    return "://" in path


def expand(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Turn names and patterns into the files they mean.

    `paths`: a name that exists is taken as it is, whatever characters it holds. Any other name
    with ``*``, ``?`` or ``[`` is a pattern; its files come in the order of their names, with runs
    of digits compared as numbers (part-2 before part-10). ``**`` means any folders.

    Returns: at least one file, none of them twice.

    Raises DataError if there is no such file, a pattern means none, or a file is named twice.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    found: list[Path] = []
    for name in map(str, paths):
        there = Path(name).exists()
        if is_address(name) and not there:
            # The rest of it may hold a password.
            raise DataError(
                f"{name.partition('://')[0]}://...: of what is on object storage only stores are "
                "read, and with a cluster: --cluster threads is one in this process"
            )
        if not there and glob.has_magic(name):
            # Path.glob would want the folder apart from the pattern.
            names = glob.glob(name, recursive=True)  # noqa: PTH207
            matches = sorted((Path(match) for match in names), key=natural_order)
            matches = [match for match in matches if not match.is_dir()]
            if not matches:
                raise DataError(f"{name}: no file fits this pattern")
            found += matches
        else:
            found.append(Path(name))
    if not found:
        raise DataError("no data file is named; give at least one")
    seen: set[Path] = set()
    for path in found:
        place = path.resolve()
        if place in seen:
            raise DataError(f"{path}: the file is named twice; its records would count twice")
        seen.add(place)
    return found


def natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a key that orders names so that part-2 comes before part-10."""
    runs: list[tuple[int, int, str]] = []
    text = str(path)
    start = 0
    for i in range(1, len(text) + 1):
        digits = text[start].isdecimal()
        if i == len(text) or text[i].isdecimal() != digits:
            run = text[start:i]
            runs.append((0, int(run), run) if digits else (1, 0, run))
            start = i
    return runs


def _kind(path: Path) -> Literal["svmlight", "npz"]:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return "npz"
    if suffix in COMPRESSED_SUFFIXES:
        suffix = Path(path.stem).suffix.lower()
    if suffix in SVMLIGHT_SUFFIXES:
        return "svmlight"
    raise DataError(
        f"{path}: files that end in {suffix} cannot be read; give svmlight text (.svm, .txt or "
        f"no suffix, perhaps followed by {', '.join(COMPRESSED_SUFFIXES)}) or scipy .npz"
    )
