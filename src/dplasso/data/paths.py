"""Names of data files: which kind a name means, and several files or patterns as one data set."""

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from dplasso.data.streams import COMPRESSED_SUFFIXES, check_readable
from dplasso.errors import DataError

Paths = str | Path | Iterable[str | Path]
"""One file, a pattern such as ``part-*.svm.gz``, or several of these."""

# LIBSVM's own collection names its files a9a, a9a.t, news20.binary, kdd12.tr, ...
_COLLECTION_SUFFIXES = (".binary", ".scale", ".t", ".tr", ".te", ".train", ".test", ".val")
SVMLIGHT_SUFFIXES = (
    *("", ".svm", ".svmlight", ".libsvm", ".txt", ".dat", ".data"),
    *_COLLECTION_SUFFIXES,
)


def expand(paths: Paths) -> list[Path]:
    """Turn names and patterns into the files they mean.

    Parameters
    ----------
    paths : str, Path or iterable of these
        A name that exists is taken as it is, whatever characters it holds. Any other name with
        ``*``, ``?`` or ``[`` is a pattern; its files come in the order of their names, with
        runs of digits compared as numbers (part-2 before part-10). ``**`` means any folders.

    Returns
    -------
    list of Path
        At least one file, none of them twice.

    Raises
    ------
    DataError
        If there is no such file, a pattern means none, or a file is named twice.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    found: list[Path] = []
    for name in map(str, paths):
        if not Path(name).exists() and glob.has_magic(name):
            # Path.glob would want the folder apart from the pattern.
            names = glob.glob(name, recursive=True)  # noqa: PTH207
            matches = sorted((Path(match) for match in names), key=_natural)
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


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Give the order of names in which part-2 comes before part-10."""
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


def kind_of(path: Path) -> Literal["svmlight", "npz"]:
    """Tell by its name how a file is read.

    Raises
    ------
    DataError
        If there is no such file, or files of that name are not read.
    """
    check_readable(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return "npz"
    if suffix in COMPRESSED_SUFFIXES:
        suffix = Path(path.stem).suffix.lower()
    if suffix in SVMLIGHT_SUFFIXES:
        return "svmlight"
    raise DataError(
        f"{path}: files that end in {suffix} are not read; give svmlight text (.svm, .txt or "
        f"no suffix, perhaps followed by {', '.join(COMPRESSED_SUFFIXES)}) or scipy .npz"
    )


def one_kind(paths: list[Path]) -> Literal["svmlight", "npz"]:
    """Tell how the files of one data set are read.

    Raises
    ------
    DataError
        If they are not all of one kind.
    """
    kinds = [kind_of(path) for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"{path}: {paths[0]} is of another kind ({kinds[0]}, not {kind}); "
                "the files of one data set must be of one kind"
            )
    return kinds[0]


def named(paths: list[Path]) -> str:
    """Name a data set for messages."""
    first = str(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"
