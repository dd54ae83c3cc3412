"""Opening a store: checking it, and mapping its arrays into memory."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.data.people import number_people
from dplasso.data.store.arrays import checksum
from dplasso.data.store.format import (
    COLUMNS_DECLARED,
    HEADER_FILE,
    LABELS,
    PARTIAL_SUFFIX,
    PEOPLE,
    ArrayEntry,
    StoreHeader,
    array_file,
    open_array,
    read_header,
)
from dplasso.data.store.kernel import first_outside, maps_agree
from dplasso.data.store.place import partial_directory
from dplasso.errors import StoreError
from dplasso.files.disk_space import scratch
from dplasso.files.lock import is_held
from dplasso.matrix.compressed import Compressed

# Pieces fit a core's cache and cost little to start.
_CHECK_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Store:
    """An opened store; nothing of its entries is in memory before it is touched."""

    path: Path
    header: StoreHeader
    arrays: Mapping[str, NDArray[Any]]

    @property
    def rows(self) -> Compressed:
        """Entries by rows: internal column numbers, in the order of the original ones."""
        return self._orientation("rows")

    @property
    def columns(self) -> Compressed:
        """Entries by columns, in internal order; rows ascend."""
        return self._orientation("columns")

    @property
    def internal_column(self) -> NDArray[Any]:
        """Internal number of each original column: most entries first, ties by number."""
        return self.arrays["internal_column"]

    @property
    def original_column(self) -> NDArray[Any]:
        """Original number of each internal column."""
        return self.arrays["original_column"]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.header.shape

    @property
    def nnz(self) -> int:
        """Entries."""
        return self.header.nnz

    @property
    def columns_declared(self) -> bool:
        """Whether D was declared at conversion; False if it was taken from the data."""
        return bool(self.header.origin[COLUMNS_DECLARED])

    @property
    def X(self) -> "StoreMatrix":  # noqa: N802
        """The matrix, to be given to `fit`."""
        return StoreMatrix(self)

    @cached_property
    def y(self) -> NDArray[Any]:
        """The labels as they were read, shape (N,): numbers, or words."""
        labels, words = self.arrays[LABELS], self.header.label_words
        if words is None:
            return labels
        if first_outside(labels, len(words)) >= 0:
            _damaged(self.path, "labels", "a label without a word")
        named: NDArray[Any] = np.array(words, np.str_)[labels]
        return named

    @property
    def knows_people(self) -> bool:
        """Whether the store says to which person each row belongs."""
        return PEOPLE in self.arrays

    @property
    def people(self) -> NDArray[np.int64] | None:
        """A number for the person of each row, shape (N,); None where the store does not say."""
        return number_people(self.person_hashes) if self.knows_people else None

    @property
    def person_hashes(self) -> NDArray[np.int64]:
        """Two numbers of each row, its person's hash, shape (2 N,); see `number_people`."""
        return np.asarray(self.arrays[PEOPLE])

    def scratch(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return room for so many numbers in a temporary file beside the store."""
        return scratch(self.path, size, dtype)

    def _orientation(self, name: str) -> Compressed:
        values = self.arrays.get(f"{name}.values", np.empty(0, self.header.value_dtype))
        indptr, indices = self.arrays[f"{name}.indptr"], self.arrays[f"{name}.indices"]
        return Compressed(indptr, indices, values, self.header.constant or 0.0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path, not the data: another process opens the store itself."""
        return open_store, (self.path,)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, shape={self.shape}, nnz={self.nnz})"


class StoreMatrix:
    """The matrix of a store, for `fit`: it is never converted behind the user's back."""

    ndim = 2

    def __init__(self, store: Store) -> None:
        self.store = store
        self.shape, self.nnz = store.shape, store.nnz
        self.dtype = np.dtype(store.header.value_dtype)

    def tocsr(self) -> csr_array:
        """Copy a small matrix into memory, with the original columns."""
        rows, nnz = self.store.rows, self.nnz
        check_entries(self.store, "rows")
        values = rows.values.copy() if rows.values.size else np.full(nnz, rows.constant, self.dtype)
        columns = self.store.original_column[rows.indices]
        X = csr_array((values, columns, rows.indptr.copy()), shape=self.shape)
        X.has_canonical_format = True
        return X

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a store is not copied into memory unasked; give it to fit as it is, or copy a small "
            "one with tocsr()"
        )

    def __repr__(self) -> str:
        return f"StoreMatrix(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype})"


def is_store(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a store, perhaps damaged, at `path`."""
    return (Path(path) / HEADER_FILE).is_file()


def open_store(
    path: str | os.PathLike[str],
    *,
    verify: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Store:
    """Open a store that `write_store` wrote; any number of processes may do so at a time.

    The header, the length and first bytes of every file, and all that grows with rows or columns
    alone are checked. The entries themselves are for `check_entries`, which every fit calls before
    it spends anything.

    Parameters
    ----------
    path : str or path-like
        The directory.
    verify : bool, default=False
        Whether to read everything and compare the checksums.
    progress : callable, optional
        Called as ``progress(done, total)`` while verifying, in bytes.

    Returns
    -------
    Store

    Raises
    ------
    StoreError
        If there is no complete store of a known version, or it is damaged.
    OSError
        If it cannot be read.
    """
    directory, store = Path(path), None
    while store is None:
        _check_finished(directory)
        before = directory.stat()
        try:
            found = _map_store(directory)
            store = found if _is_still(directory, before) else None
        except (StoreError, OSError, ValueError):
            if _is_still(directory, before):
                raise
    if verify:
        done, total = 0, sum(entry.n_bytes for entry in store.header.arrays.values())
        for name, entry in store.header.arrays.items():
            for n_bytes in checked_pieces(store.path, name, store.arrays[name], entry):
                done += n_bytes
                if progress is not None:
                    progress(done, total)
        check_entries(store)
    return store


def _map_store(directory: Path) -> Store:
    header = read_header(directory)
    arrays = {name: open_array(directory, name, one) for name, one in header.arrays.items()}
    for name in ("rows.indptr", "columns.indptr"):
        starts = arrays[name]
        if starts[0] != 0 or starts[-1] != header.nnz or (starts[1:] < starts[:-1]).any():
            _damaged(directory, name, "its numbers do not rise to that of the entries")
    if not maps_agree(arrays["internal_column"], arrays["original_column"]):
        _damaged(directory, "original_column", "it does not fit internal_column")
    return Store(directory.resolve(), header, arrays)


def _is_still(directory: Path, before: os.stat_result) -> bool:
    """Return whether a store has not been replaced since, so that its files belong together."""
    try:
        return os.path.samestat(directory.stat(), before)
    except FileNotFoundError:
        return False


def check_entries(
    store: Store, which: Literal["rows", "columns", "both"] = "both", *, n_threads: int = 2
) -> None:
    """Raise `StoreError` unless no kernel can leave its arrays and every value is finite."""
    # Each piece of an array: its name, where it begins, its words, their limit and their mask.
    pieces: list[tuple[str, int, NDArray[Any], int, int]] = []
    limits = {"rows": store.shape[1], "columns": store.shape[0]}
    for side in limits if which == "both" else (which,):
        checks = [(f"{side}.indices", store.arrays[f"{side}.indices"], limits[side], -1)]
        if (name := f"{side}.values") in store.arrays:
            values = store.arrays[name]
            # Without its sign bit, a number that is not finite is at least infinity's bit pattern.
            words = values.view(np.int32 if values.itemsize == 4 else np.int64)
            infinity = int(np.array(np.inf, values.dtype).view(words.dtype))
            checks.append((name, words, infinity, (1 << (8 * values.itemsize - 1)) - 1))
        for name, words, limit, mask in checks:
            for begin in range(0, words.size, _CHECK_ENTRIES):
                some = words[begin : begin + _CHECK_ENTRIES]
                pieces.append((name, begin, some, limit, mask))
    with ThreadPoolExecutor(n_threads) as pool:
        found = pool.map(lambda piece: first_outside(*piece[2:]), pieces)
        for (name, begin, _, limit, mask), at in zip(pieces, found, strict=True):
            if at >= 0:
                allowed = f"one of 0 to {limit - 1}" if mask == -1 else "a finite number"
                _damaged(store.path, name, f"entry {begin + at} is not {allowed}")


def checked_pieces(
    directory: Path, name: str, array: NDArray[Any], entry: ArrayEntry
) -> Iterator[int]:
    """Compare an array with its checksums; yield the bytes of each piece."""
    ends = np.cumsum([length for length, _ in entry.pieces], dtype=np.int64)
    parts = np.split(array.view(np.uint8), ends[:-1])
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(checksum, parts)
        for end, piece, sums in zip(ends, entry.pieces, found, strict=False):
            if sums != piece:
                where = f"its checksum does not fit between bytes {end - piece[0]} and {end}"
                _damaged(directory, name, f"{where} of the data")
            yield piece[0]


def _check_finished(path: Path) -> None:
    """Refuse anything that is not a finished store, and say what it is."""
    if path.name.endswith(PARTIAL_SUFFIX):
        raise StoreError(f"{path} is an unfinished store; run the conversion again")
    if (path / HEADER_FILE).is_file():
        return
    if path.is_dir():
        raise StoreError(f"{path} is not a dplasso store: it has no {HEADER_FILE}")
    if path.exists():
        raise StoreError(f"{path} is a file, not a dplasso store; make a store of it with convert")
    if is_held(path):
        raise StoreError(f"{path} is still being written; wait for it")
    if partial_directory(path).is_dir():
        raise StoreError(f"{path} is unfinished: its conversion was cut off; run it again")
    raise StoreError(f"{path}: there is no such store")


def _damaged(directory: Path, name: str, problem: str) -> NoReturn:
    raise StoreError(f"{array_file(directory, name)} is damaged: {problem}; convert again")


def describe(store: Store) -> dict[str, Any]:
    """Summarise what a store holds, as plain values; some of them depend on private data."""
    header = store.header
    starts = store.columns.indptr
    labels, counts = np.unique(store.y, return_counts=True)
    shown = sorted(zip(labels.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1])
    sizes = {name: entry.n_bytes for name, entry in header.arrays.items()}
    origin = {k: v for k, v in header.origin.items() if k != COLUMNS_DECLARED}
    return {
        "path": str(store.path),
        "version": header.version,
        "written_by": header.written_by,
        "source": header.source,
        "origin": origin or None,
        "n_samples": store.shape[0],
        "n_features": store.shape[1],
        "columns_declared": store.columns_declared,
        "knows_people": store.knows_people,
        "nnz": store.nnz,
        "columns_used": int(np.searchsorted(starts, store.nnz)),
        "longest_column": int(starts[1]),
        "dtype": str(store.X.dtype),
        "constant": header.constant,
        "largest_value": header.largest_value,
        "labels": [list(pair) for pair in shown[:10]],
        "n_labels": len(shown),
        "bytes": sum(sizes.values()),
        "arrays": sizes,
    }
