"""The files behind a stream of row blocks: named, sized, and watched for changes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dplasso.data.streams import FileMark, check_readable, check_unchanged


@dataclass(frozen=True)
class SourceFiles:
    """Files that make one data set, in their order.

    Attributes
    ----------
    paths : tuple of Path
        At least one.
    marks : tuple of FileMark
        What they looked like at first.
    """

    paths: tuple[Path, ...]
    marks: tuple[FileMark, ...]

    @property
    def name(self) -> str:
        """The first file, and how many there are beside it."""
        more = len(self.paths) - 1
        return f"{self.paths[0]} and {more} more" if more else str(self.paths[0])

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(mark.size for mark in self.marks)

    def before(self, i: int) -> int:
        """Bytes of the files before file ``i``."""
        return sum(mark.size for mark in self.marks[:i])

    def check_unchanged(self, i: int) -> None:
        """Raise `DataError` if file ``i`` is no longer what it was at first."""
        check_unchanged(self.paths[i], self.marks[i])


def source_files(paths: str | Path | Iterable[str | Path]) -> SourceFiles:
    """Look the files of a data set up.

    Raises
    ------
    ValueError
        If none is given, or one twice.
    DataError
        If one is missing.
    """
    given = [paths] if isinstance(paths, str | Path) else paths
    files = tuple(Path(path) for path in given)
    if not files:
        raise ValueError("give at least one file")
    if len({path.resolve() for path in files}) != len(files):
        raise ValueError(
            f"{files[0]} or another file is given twice; its records would count twice"
        )
    for path in files:
        check_readable(path)
    return SourceFiles(files, tuple(FileMark.of(path) for path in files))
