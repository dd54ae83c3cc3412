"""Open a store: check it, and map its arrays into memory."""

import os
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.data.people import number_people
from dplasso.data.source_files import exhaust, natural_order
from dplasso.data.store.files import (
    COLUMNS_DECLARED,
    HEADER_FILE,
    INDICES,
    LABELS,
    PARTIAL_SUFFIX,
    PEOPLE,
    REPLACED_SUFFIX,
    UNFINISHED_FILES,
    VALUES,
    VERSION,
    StoreHeader,
    array_file,
    bytes_of,
    names_in,
    open_array,
    partial_directory,
    read_header,
)
from dplasso.errors import StoreError
from dplasso.files.disk import fill
from dplasso.matrix.compressed import Compressed, check_rows
from dplasso.matrix.edged_rows import EdgedRows

# A block fits in the cache, so checking its checksum and entries reads the memory once.
_BLOCK_ENTRIES = 1 << 17


@dataclass(frozen=True, eq=False)
class Store:
    """An open store; entries are read into memory when they are used."""

    ndim: ClassVar[int] = 2

    path: Path
    header: StoreHeader
    arrays: Mapping[str, NDArray[Any]]

    @property
    def rows(self) -> Compressed:
        """The matrix in compressed rows."""
        values = self.arrays.get(VALUES, np.empty(0, self.header.value_dtype))
        indptr, indices = self.arrays["rows.indptr"], self.arrays[INDICES]
        return Compressed(indptr, indices, values, self.header.constant or 0.0)

    def column_counts(self) -> NDArray[np.int64]:
        """Count the entries of each column, shape (D,)."""
        counts, indices = np.zeros(self.shape[1], np.int64), self.rows.indices
        step = max(_BLOCK_ENTRIES, counts.size)
        for begin in range(0, indices.size, step):
            counts += np.bincount(indices[begin : begin + step], minlength=counts.size)
        return counts

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.header.shape

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.header.nnz

    @property
    def columns_declared(self) -> bool:
        """Whether D was declared at conversion; False if it was computed from the data."""
        return bool(self.header.origin[COLUMNS_DECLARED])

    @property
    def feature_names(self) -> NDArray[np.object_] | None:
        """The names of the columns of a data frame; None for none."""
        return names_in(self.header.origin)

    @property
    def X(self) -> "Store":  # noqa: N802
        """The store itself, which `fit` accepts as a matrix."""
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return np.dtype(self.header.value_dtype)

    @cached_property
    def y(self) -> NDArray[Any]:
        """The labels, shape (N,): numbers or text."""
        labels, words = self.arrays[LABELS], self.header.label_words
        if words is None:
            return labels
        if labels.size and not 0 <= labels.min() <= labels.max() < len(words):
            refuse_damaged(self.path, "labels", "a number does not stand for a text label")
        named: NDArray[Any] = np.array(words, np.str_)[labels]
        return named

    @property
    def knows_people(self) -> bool:
        """Whether the store holds the person of each row."""
        return PEOPLE in self.arrays

    @property
    def people(self) -> NDArray[np.int64] | None:
        """A number for the person of each row, shape (N,); None if the store has no people."""
        return number_people(self.person_hashes) if self.knows_people else None

    @property
    def person_hashes(self) -> NDArray[np.int64]:
        """The hashes of the people, two numbers for each row, shape (2 N,)."""
        return np.asarray(self.arrays[PEOPLE])

    def scratch(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return an array in a temporary file beside the store, or in the system's folder for them.

        The file has no name, and disappears with the array. Raises OSError if there is no space.
        """
        dtype = np.dtype(dtype)
        if not size:
            return np.empty(0, dtype)
        for place in (os.fspath(self.path.parent), None):
            try:
                with tempfile.TemporaryFile(dir=place) as file:
                    fill(file, size * dtype.itemsize)
                    # Not the map itself: kernels are compiled for plain arrays.
                    return np.memmap(file, dtype, "r+", shape=size).view(np.ndarray)
            except OSError as error:
                last = error
        raise OSError(
            last.errno,
            f"A fit of {self.path} needs room for {size * dtype.itemsize / 1e6:,.1f} MB while it "
            "lasts, and there is none beside it or in the system's temporary folder "
            f"({last.strerror}); make room, or set TMPDIR to a folder that has it.",
        )

    def tocsr(self) -> csr_array:
        """Copy a small store into memory, with its origin."""
        rows, nnz = self.rows, self.nnz
        check_entries(self)
        values = rows.values.copy() if rows.values.size else np.full(nnz, rows.constant, self.dtype)
        origin = self.header.origin
        kind = EdgedRows if (origin.get("schema") or {}).get("edges") else csr_array
        X: Any = kind((values, rows.indices.copy(), rows.indptr.copy()), shape=self.shape)
        X.has_canonical_format, X.dplasso_origin = True, origin
        return X  # type: ignore[no-any-return]

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a store does not convert to an array; pass the store itself to fit, or copy a small "
            "store into memory with tocsr()"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path, not the data; another process opens the store again."""
        return open_store, (self.path,)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, shape={self.shape}, nnz={self.nnz})"


def is_store(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a store, perhaps damaged, at `path`."""
    return (Path(path) / HEADER_FILE).is_file()


def holds_store(place: str | Path, name: str, files: Collection[str]) -> bool:
    """Return whether an item of a folder, with these files, is a store.

    Raises `StoreError` if it is an incomplete store, or holds others.
    """
    has_header = HEADER_FILE in files
    parts = (part in file for file in files for part in (*UNFINISHED_FILES, ".store"))
    looks_like_one = not has_header and (name.endswith(".store") or any(parts))
    if looks_like_one or name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)):
        raise StoreError(
            f"{place} is not a complete store: copy or convert it again, move it out of the "
            "folder, or pass stores instead of the folder"
        )
    return has_header


def stores_in(folder: Path) -> list[Path]:
    """Return the stores in a folder, part-2 before part-10; `StoreError` if one is incomplete."""
    stores = []
    for place in sorted(folder.iterdir(), key=natural_order):
        files = [file.name for file in place.iterdir()] if place.is_dir() else []
        if holds_store(place, place.name, files):
            stores.append(place)
    return stores


def open_store(
    path: str | os.PathLike[str],
    *,
    verify: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Store:
    """Open a store of `write_store` or ``dplasso convert``; many processes may share it.

    Parameters
    ----------
    path : str or path-like
        The directory.
    verify : bool, default=False
        Whether to read and check the entries too, as every fit does before it charges the budget.
    progress : callable, optional
        Called as ``progress(done, total)`` in bytes during verification.

    Raises
    ------
    StoreError
        If there is no complete store, or it is damaged or has another version.
    """
    directory = Path(path)
    while True:
        before = _folder_at(directory)
        try:
            store = _mapped(directory)
        except (OSError, ValueError):
            if _folder_at(directory) == before:
                raise
            continue
        # If a conversion has put another store here, the files may be of two.
        if _folder_at(directory) == before:
            break
    if verify:
        check_entries(store, progress=progress)
    return store


def _folder_at(path: Path) -> tuple[int, int] | None:
    """Return values that identify the folder at a path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _mapped(directory: Path) -> Store:
    """Return a store with its files mapped, and all but the entries checked."""
    _check_finished(directory)
    header = read_header(directory)
    arrays = {name: open_array(directory, name, entry) for name, entry in header.arrays.items()}
    store = Store(directory.resolve(), header, arrays)
    exhaust(compare_sums(store, [name for name in arrays if name not in (INDICES, VALUES)], 2))
    starts = store.rows.indptr
    if starts[0] != 0 or starts[-1] != header.nnz or (starts[1:] < starts[:-1]).any():
        refuse_damaged(directory, "rows.indptr", "the row pointers do not ascend from 0 to nnz")
    return store


def check_entries(
    store: Store, *, n_threads: int = 2, progress: Callable[[int, int], None] | None = None
) -> None:
    """Raise `StoreError` unless every array is undamaged and safe to use in kernels.

    Checks checksums, that every index lies inside the matrix, that no row has a column twice, and
    that every value is finite, in one pass.
    """
    done, total = 0, sum(entry.n_bytes for entry in store.header.arrays.values())
    for n_bytes in compare_sums(store, store.header.arrays, n_threads):
        done += n_bytes
        if progress is not None:
            progress(done, total)


def compare_sums(store: Store, names: Iterable[str], n_threads: int) -> Iterator[int]:
    """Check arrays piece by piece; yield the bytes of each good piece, and refuse a bad one."""
    pieces = [(name, *span) for name in names for span in store.header.arrays[name].spans()]
    with ThreadPoolExecutor(n_threads) as pool:
        faults = pool.map(lambda piece: _fault(store, *piece), pieces)
        for (name, begin, end, _), fault in zip(pieces, faults, strict=True):
            if fault:
                refuse_damaged(store.path, name, fault)
            yield (end - begin) * store.arrays[name].itemsize


def _fault(store: Store, name: str, begin: int, end: int, crc: int) -> str:
    """Describe the damage to a piece of an array; empty if there is none."""
    array, sums, fault = store.arrays[name], 0, ""
    for at in range(begin, end, _BLOCK_ENTRIES):
        stop = min(at + _BLOCK_ENTRIES, end)
        sums = zlib.crc32(bytes_of(array[at:stop]), sums)
        if name == VALUES and not np.isfinite(array[at:stop]).all():
            fault = fault or "a value is not a finite number"
        if name == INDICES:
            fault = fault or _wrong_row(store, at, stop)
    if sums != crc:
        size = array.itemsize
        return f"the checksum of bytes {begin * size} to {end * size} of the data is wrong"
    return fault


def _wrong_row(store: Store, begin: int, end: int) -> str:
    """Describe the first malformed row that begins in a range of entries; empty if none."""
    starts, limit = store.rows.indptr, store.shape[1]
    first, last = np.searchsorted(starts[:-1], [begin, end])
    outside, unordered, _ = check_rows(starts[first : last + 1], store.rows.indices, limit)
    if outside < 0 and unordered < 0:
        return ""
    row = first + (unordered if unordered >= 0 else outside) + 1
    return f"row {row} has columns that do not ascend, or a column outside 0 to {limit - 1}"


def refuse_damaged(directory: Path, name: str, problem: str) -> NoReturn:
    """Raise `StoreError` for a damaged array."""
    raise StoreError(f"{array_file(directory, name)} is damaged: {problem}; convert again")


def _check_finished(path: Path) -> None:
    """Raise `StoreError` unless a path is a complete store."""
    if path.name.endswith(PARTIAL_SUFFIX):
        raise StoreError(f"{path} is an unfinished store; run the conversion again")
    if (path / HEADER_FILE).is_file():
        return
    if path.is_dir():
        raise StoreError(f"{path} is not a dplasso store: it has no {HEADER_FILE}")
    if path.exists():
        raise StoreError(f"{path} is a file, not a dplasso store; convert it with dplasso convert")
    if partial_directory(path).is_dir():
        raise StoreError(
            f"{path} is incomplete: wait for its conversion, or run the conversion again if it was "
            "interrupted"
        )
    raise StoreError(f"{path}: no such store")


# Entries of a description that depend on the records without noise.
_CURATORS = (
    *("n_samples", "nnz", "constant", "largest_value", "labels", "n_labels", "bytes", "arrays"),
)


def describe(store: Store) -> dict[str, Any]:
    """Summarise a store as plain values; some of them depend on private data."""
    header = store.header
    labels, counts = np.unique(store.y, return_counts=True)
    shown = sorted(zip(labels.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1])
    sizes = {name: entry.n_bytes for name, entry in header.arrays.items()}
    origin = {k: v for k, v in header.origin.items() if k != COLUMNS_DECLARED}
    curators = [] if store.columns_declared else ["n_features"]
    return {
        "path": str(store.path),
        "version": VERSION,
        "written_by": header.written_by,
        "source": header.source,
        "origin": origin or None,
        "n_samples": store.shape[0],
        "n_features": store.shape[1],
        "columns_declared": store.columns_declared,
        "knows_people": store.knows_people,
        "nnz": store.nnz,
        "dtype": str(store.dtype),
        "constant": header.constant,
        "largest_value": header.largest_value,
        "labels": [list(pair) for pair in shown[:10]],
        "n_labels": len(shown),
        "bytes": sum(sizes.values()),
        "arrays": sizes,
        "not_for_release": [*_CURATORS, *curators],
    }
