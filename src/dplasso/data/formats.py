"""The formats of data files, and the reader of files with numbered columns.

The suffix of a file determines the module that reads it. A module for numbered columns has
`row_source`. A module for tables has `column_names`, `labels` and `batches`.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import MOST_COLUMNS, BlockSource, gather
from dplasso.data.source_files import COMPRESSED_SUFFIXES, Paths, SourceFiles, source_files
from dplasso.errors import DataError, need


@dataclass(frozen=True)
class FileFormat:
    """A file format; `compressible` files may be compressed as a whole, such as .csv.gz."""

    suffixes: tuple[str, ...]
    module: str
    is_table: bool = False
    compressible: bool = False

    @property
    def reader(self) -> Any:
        """The module that reads it; `MissingExtraError` if a package is missing."""
        if self.module == "arrow_tables":
            need("pyarrow", "Reading Parquet and Arrow files")
        return import_module(f"dplasso.data.{self.module}")


# LIBSVM's own collection names its files a9a, a9a.t, news20.binary, kdd12.tr, ...
_COLLECTION = (".binary", ".scale", ".t", ".tr", ".te", ".train", ".test", ".val")
_SVMLIGHT = ("", ".svm", ".svmlight", ".libsvm", ".txt", ".dat", ".data", *_COLLECTION)
FORMATS = (
    FileFormat(_SVMLIGHT, "svmlight", compressible=True),
    FileFormat((".npz",), "npz"),
    FileFormat((".csv", ".tsv", ".jsonl", ".ndjson"), "text_tables", True, True),
    FileFormat((".parquet", ".pq", ".arrow", ".feather", ".ipc"), "arrow_tables", True),
)


@dataclass(frozen=True)
class Layout:
    """How to read files of numbered columns.

    `n_features`: number of columns. Default: the largest column in svmlight text, the largest
    stored shape in .npz. A column beyond it is an error.
    `zero_based`: whether svmlight indices count columns from 0.
    `labels_path`: for a single .npz, a .npy file of labels.
    `labelled`: whether to read the labels of .npz files; otherwise they are all 0.
    """

    n_features: int | None = None
    zero_based: bool = False
    labels_path: str | Path | None = None
    labelled: bool = True

    def __post_init__(self) -> None:
        if self.n_features is not None and not 1 <= self.n_features <= MOST_COLUMNS:
            raise DataError(f"`n_features` must be from 1 to 2**63 - 1, not {self.n_features}")


def plain_suffix(path: Path) -> str:
    """Return the suffix of a file's name, without one for compression."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSED_SUFFIXES else suffix


def is_table(path: str | Path) -> bool:
    """Return whether a file is a table, from its suffix: CSV, JSON lines, Parquet or Arrow."""
    file_format = _find(Path(path))
    return file_format is not None and file_format.is_table


def table_format(path: Path) -> FileFormat:
    """Return the format of a table; `DataError` if the suffix is not one of a table."""
    file_format = _find(path)
    if file_format is None or not file_format.is_table:
        text, binary = (", ".join(kind.suffixes) for kind in FORMATS if kind.is_table)
        raise DataError(
            f"{path} is not a table; the suffix must be {text} (also compressed), {binary}"
        )
    return file_format


def row_format(files: SourceFiles) -> FileFormat:
    """Return the common format of files of numbered columns; `DataError` if there is none."""
    formats = [_find(path) for path in files.paths]
    for path, file_format in zip(files.paths, formats, strict=True):
        if file_format is None or file_format.is_table:
            raise DataError(
                f"{path}: files that end in {plain_suffix(path)} cannot be read; pass svmlight "
                "text (.svm, .txt or no suffix, perhaps followed by "
                f"{', '.join(COMPRESSED_SUFFIXES)}), scipy .npz, or a table for a schema (.csv, "
                ".tsv, .jsonl, .parquet, .arrow)"
            )
        if file_format is not formats[0]:
            raise DataError(
                f"{path} and {files.paths[0]} have different formats; the files of a data set must "
                "have the same format"
            )
    assert formats[0] is not None
    return formats[0]


def _find(path: Path) -> FileFormat | None:
    suffix = plain_suffix(path)
    compressed = suffix != path.suffix.lower()
    matches = (kind for kind in FORMATS if suffix in kind.suffixes)
    return next((kind for kind in matches if kind.compressible or not compressed), None)


@dataclass(frozen=True)
class Dataset:
    """Records and their labels.

    `X`: a sorted csr_array without duplicates, or a `Store`. `people`: a number per row, or None.
    """

    X: Any
    y: NDArray[Any]
    source: str
    people: NDArray[np.int64] | None = None


def block_source(paths: Paths, **options: Any) -> BlockSource:
    """Open svmlight text or .npz files as a stream of row blocks; `options` are of `Layout`.

    `paths`: one file, or several that make one data set, in this order. A name with ``*``, ``?`` or
    ``[`` is a pattern, unless a file has this name.

    Errors in the files are raised, with their place, while the blocks are read.
    """
    files = source_files(paths)
    source: BlockSource = row_format(files).reader.row_source(files, Layout(**options))
    return source


def read_data(paths: Paths, **options: Any) -> Dataset:
    """Read data files into memory; `options` are those of `Layout`."""
    source = block_source(paths, **options)
    X, y, _ = gather(source)
    return Dataset(X, y, source.name)
