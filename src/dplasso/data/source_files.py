"""The files behind a data set: names, patterns and addresses, sizes, and changes meanwhile."""

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dplasso.data.streams import check_readable
from dplasso.errors import DataError

_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]{0,15}")
# A scheme, a host, perhaps its port, and a path. Whatever else an address can hold can be a secret:
# a user, a password or token, parameters, a signature, a fragment, or one of these in disguise (%).
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@:/?#;&%]*(:[0-9]{1,5})?(/[^@:?#;&%]*)?")
# An option that its value follows, and words such as those of a purpose.
_BEFORE = re.compile(r"(--[a-z0-9-]+=)?([\w,. ]* )?")


def is_address(path: str) -> bool:
    """Return whether a store is at an address such as s3://bucket/a, not in a local folder."""
    return "://" in path


def hidden(address: str) -> str:
    """Return what a message may show of an address that may hold a secret."""
    scheme = address.partition("://")[0]
    return f"{scheme if _SCHEME.fullmatch(scheme) else '...'}://..."


def checked_address(address: str) -> str:
    """Return an address without slashes at its end; DataError if it may hold a secret."""
    if not (_PLAIN.fullmatch(address) and address.isprintable()):
        raise DataError(
            f"an address {hidden(address)} holds more than a scheme, a host and a path, and logs "
            "and messages would show it. Set names, passwords, tokens and signatures in the "
            "environment or in fsspec's configuration files"
        )
    return address.rstrip("/")


def check_argument(text: str) -> None:
    """Raise `DataError` if an argument of a command line is an address that may hold a secret."""
    if is_address(text):
        checked_address(_BEFORE.sub("", text, count=1))


@dataclass(frozen=True)
class SourceFiles:
    """Files that make one data set, one at least, in their order; what they first looked like."""

    paths: tuple[Path, ...]
    found: tuple[os.stat_result, ...]

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
        return sum(found.st_size for found in self.found[:i])

    def check_unchanged(self, i: int) -> None:
        """Raise `DataError` if file ``i`` is no longer what it was at first."""
        before, now = self.found[i], _look_at(self.paths[i])
        same = os.path.samestat(before, now) and before.st_mtime_ns == now.st_mtime_ns
        if not same or before.st_size != now.st_size:
            raise DataError(
                f"{self.paths[i]}: the file changed while it was being read; read it when nothing "
                "writes to it"
            )


Paths = str | Path | Iterable[str | Path] | SourceFiles
"""One file, a pattern such as ``part-*.svm.gz``, several of these, or what they mean."""


def source_files(paths: Paths) -> SourceFiles:
    """Return the files of a data set; `DataError` as `expand`, or if a file cannot be read."""
    if isinstance(paths, SourceFiles):
        return paths
    files = tuple(expand(paths))
    for path in files:
        check_readable(path)
    return SourceFiles(files, tuple(_look_at(path) for path in files))


def _look_at(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


def expand(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files that names and patterns mean: one at least, none of them twice.

    A name that exists is taken as it is; files of a pattern come as part-2 before part-10.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    found: list[Path] = []
    for name in map(str, paths):
        there = Path(name).exists()
        if is_address(name) and not there:
            # The rest of it may hold a password.
            raise DataError(
                f"{hidden(name)}: of what is on object storage only stores are "
                "read, and with a cluster: --cluster threads is one in this process"
            )
        if not there and glob.has_magic(name):
            matches = [match for match in places_of(name) if not match.is_dir()]
            if not matches:
                raise DataError(f"{name}: no file fits this pattern")
            found += matches
        else:
            found.append(Path(name))
    if not found:
        raise DataError("no data file is named; give at least one")
    seen: set[Path] = set()
    for path in found:
        if (place := path.resolve()) in seen:
            raise DataError(f"{path}: the file is named twice; its records would count twice")
        seen.add(place)
    return found


def places_of(pattern: str) -> list[Path]:
    """Return the files and folders that a pattern fits, part-2 before part-10."""
    # Path.glob would want the folder apart from the pattern.
    names = glob.glob(pattern, recursive=True)  # noqa: PTH207
    return sorted(map(Path, names), key=natural_order)


def natural_order(path: Path) -> list[Any]:
    """Return a key that orders names so that part-2 comes before part-10."""
    runs = enumerate(re.split(r"(\d+)", str(path)))
    return [(int(run), run) if k % 2 else run for k, run in runs]
