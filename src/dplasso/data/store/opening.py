"""Opening a store: checking it, and mapping its arrays into memory."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.data.people import number_people
from dplasso.data.store.checks import (
    ArrayCheck,
    compare,
    indices_check,
    refuse_damaged,
    values_check,
)
from dplasso.data.store.header import (
    COLUMNS_DECLARED,
    HEADER_FILE,
    LABELS,
    PARTIAL_SUFFIX,
    PEOPLE,
    StoreHeader,
    open_array,
    read_header,
)
from dplasso.data.store.kernel import first_outside, maps_agree
from dplasso.data.store.place import partial_directory
from dplasso.data.streams import exhaust
from dplasso.errors import StoreError
from dplasso.files.lock import is_held, scratch
from dplasso.matrix.compressed import Compressed

_SIDES = ("rows", "columns")


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
            refuse_damaged(self.path, "labels", "a label without a word")
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
    alone are checked, with their checksums. The entries themselves are for `check_entries`, which
    every fit calls before it spends anything.

    Parameters
    ----------
    path : str or path-like
        The directory.
    verify : bool, default=False
        Whether to read the entries too: `check_entries`.
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
        check_entries(store, progress=progress)
    return store


def _map_store(directory: Path) -> Store:
    header = read_header(directory)
    arrays = {name: open_array(directory, name, one) for name, one in header.arrays.items()}
    store = Store(directory.resolve(), header, arrays)
    exhaust(compare(directory, _numbering_checks(store, _SIDES)))
    for name in (f"{side}.indptr" for side in _SIDES):
        starts = arrays[name]
        if starts[0] != 0 or starts[-1] != header.nnz or (starts[1:] < starts[:-1]).any():
            refuse_damaged(directory, name, "its numbers do not rise to that of the entries")
    if not maps_agree(arrays["internal_column"], arrays["original_column"]):
        refuse_damaged(directory, "original_column", "it does not fit internal_column")
    return store


def _is_still(directory: Path, before: os.stat_result) -> bool:
    """Return whether a store has not been replaced since, so that its files belong together."""
    try:
        return os.path.samestat(directory.stat(), before)
    except FileNotFoundError:
        return False


def check_entries(
    store: Store,
    which: Literal["rows", "columns", "both"] = "both",
    *,
    n_threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Raise `StoreError` unless all arrays, or those of one orientation, are as they were written.

    Every byte is compared with its checksum. In the same pass over the memory, the entries are
    looked at: no kernel can leave its arrays, no column is twice in a row or row twice in a column,
    and every value is finite. So a damaged store is refused even where its checksums fit.
    """
    sides = _SIDES if which == "both" else (which,)
    # Where each row starts comes first: the entries are looked at row by row.
    passes = _numbering_checks(store, sides), _entry_checks(store, sides)
    done, total = 0, sum(check.entry.n_bytes for checks in passes for check in checks)
    for checks in passes:
        for n_bytes in compare(store.path, checks, n_threads=n_threads):
            done += n_bytes
            if progress is not None:
                progress(done, total)


def _numbering_checks(store: Store, sides: Sequence[str]) -> list[ArrayCheck]:
    """Return the checks of all arrays that grow with rows or columns alone."""
    names = ["internal_column", "original_column", LABELS, PEOPLE]
    names += [f"{side}.indptr" for side in sides]
    arrays, entries = store.arrays, store.header.arrays
    return [ArrayCheck(name, arrays[name], entries[name]) for name in names if name in arrays]


def _entry_checks(store: Store, sides: Sequence[str]) -> list[ArrayCheck]:
    """Return the checks of entries."""
    arrays, entries = store.arrays, store.header.arrays
    checks = []
    for side in sides:
        # Entries of a row are in the order of the original columns, those of a column by row.
        limit, numbers = store.shape[0], arrays["original_column"][:0]
        if side == "rows":
            limit, numbers = store.shape[1], arrays["original_column"]
        name, starts = f"{side}.indices", arrays[f"{side}.indptr"]
        checks.append(indices_check(name, arrays[name], entries[name], starts, limit, numbers))
        if (name := f"{side}.values") in arrays:
            checks.append(values_check(name, arrays[name], entries[name]))
    return checks


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
        raise StoreError(
            f"{path} is incomplete because its conversion was interrupted; run the conversion again"
        )
    raise StoreError(f"{path}: no such store")


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
