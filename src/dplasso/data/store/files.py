"""The files of a store, arrays in ``.npy`` format and a JSON header (``docs/store.md``).

A store is written beside its place, and renamed when it is complete.
"""

import io
import json
import math
import mmap
import os
import platform
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dplasso.data.people import WORDS
from dplasso.data.source_files import is_address
from dplasso.errors import DataError, StoreError
from dplasso.files.disk import hold, make_folder, sync_directory

FORMAT = "dplasso-store"
# Versions 1 and 2 held every entry twice, by rows and by columns.
VERSION = 3
HEADER_FILE = "header.json"
PARTIAL_SUFFIX, REPLACED_SUFFIX = ".partial", ".replaced"
# Suffix of the copy of an array that gets a wider type during writing.
RECAST_SUFFIX = ".recast"
# Entry of the origin: whether D was declared at conversion rather than computed from the data.
COLUMNS_DECLARED = "columns_declared"
# Entry of the origin: the names of the columns, if they have any.
NAMES = "names"
# Bytes before an array's data: the length of numpy's own header of a flat array.
DATA_OFFSET = 128
LABELS, PEOPLE = "labels", "people"
INDICES, VALUES = "rows.indices", "rows.values"
_START, _INDEX, _VALUE = ("<i8",), ("<i4", "<i8"), ("<f4", "<f8")
_LABEL = ("|b1", "|i1", "|u1", *(f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)))
# The arrays of a store: their possible types, and their sizes in terms of N and nnz.
ARRAYS = {
    "rows.indptr": (_START, "N + 1"),
    INDICES: (_INDEX, "nnz"),
    VALUES: (_VALUE, "nnz"),
    LABELS: ((*_LABEL, "<f2", "<f4", "<f8"), "N"),
    PEOPLE: (("<i8",), "words"),
}
# Python defines mmap.MAP_NORESERVE only from 3.13 on.
_USUAL = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NO_RESERVE = int(getattr(mmap, "MAP_NORESERVE", 0x4000 if _USUAL else 0))


@dataclass(frozen=True)
class ArrayEntry:
    """The header's entry for an array; `pieces` are lengths in bytes and CRC-32 sums."""

    dtype: str
    size: int
    pieces: tuple[tuple[int, int], ...]

    @property
    def n_bytes(self) -> int:
        """Size of the data in bytes."""
        return self.size * np.dtype(self.dtype).itemsize

    def spans(self) -> list[tuple[int, int, int]]:
        """Return the first element, the end and the CRC-32 of each piece."""
        itemsize = np.dtype(self.dtype).itemsize
        ends = accumulate(length // itemsize for length, _ in self.pieces)
        return [
            (end - length // itemsize, end, crc)
            for end, (length, crc) in zip(ends, self.pieces, strict=True)
        ]


@dataclass(frozen=True)
class StoreHeader:
    """The header of a store.

    `constant`: the value of every entry, if all are equal; then there is no array of values.
    `largest_value`: private, so it must never become the default of the public `feature_bound`.
    `label_words`: text labels in the order of their numbers; None if labels are numbers.
    """

    written_by: str
    source: str
    origin: Mapping[str, Any]
    shape: tuple[int, int]
    nnz: int
    value_dtype: str
    constant: float | None
    largest_value: float
    label_words: tuple[str, ...] | None
    arrays: Mapping[str, ArrayEntry]


def array_file(directory: Path, name: str) -> Path:
    """Return the file of an array of a store."""
    return directory / f"{name}.npy"


_ARRAY_FILES = [array_file(Path(), name) for name in ARRAYS]
_STORE_FILES = {HEADER_FILE, *(file.name for file in _ARRAY_FILES)}
UNFINISHED_FILES = _STORE_FILES | {file.with_suffix(RECAST_SUFFIX).name for file in _ARRAY_FILES}


def npy_header(dtype: DTypeLike, size: int) -> bytes:
    """Return the header of a flat array's file, `DATA_OFFSET` bytes long."""
    buffer = io.BytesIO()
    layout = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (size,)}
    np.lib.format.write_array_header_1_0(buffer, layout)
    return buffer.getvalue()


def header_text(header: StoreHeader) -> str:
    """Return a header as JSON with its checksum; `ValueError` if the origin is not plain JSON."""
    document = _document(header)
    try:
        document["crc32"] = _checksum(document)
    except TypeError as error:
        raise ValueError(f"the origin of a store must be plain JSON: {error}") from error
    return json.dumps(document, allow_nan=False, indent=1) + "\n"


def _document(header: StoreHeader) -> dict[str, Any]:
    entries = asdict(header)
    names = {"dtype": "value_dtype", "constant": "constant", "largest": "largest_value"}
    value = {key: entries.pop(name) for key, name in names.items()}
    return {"format": FORMAT, "version": VERSION, **entries, "value": value}


def _checksum(document: Mapping[str, Any]) -> int:
    """Return the CRC-32 of a header's content, which does not depend on its layout."""
    content = {key: value for key, value in document.items() if key != "crc32"}
    text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return zlib.crc32(text.encode())


def names_in(origin: Mapping[str, Any]) -> NDArray[np.object_] | None:
    """Return the names of the columns in an origin; None for none."""
    names = origin.get(NAMES)
    return None if names is None else np.array(names, object)


def read_header(directory: Path) -> StoreHeader:
    """Read and check a header; `StoreError` if it is damaged or of another format or version."""
    path = directory / HEADER_FILE
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: it is not JSON text; convert again") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StoreError(f"{path} is not the header of a dplasso store")
    version = document.get("version")
    if type(version) is int and version != VERSION:
        advice = "install a newer dplasso" if version > VERSION else "convert the data again"
        raise StoreError(
            f"{directory} has version {version} of the store format, but this dplasso reads only "
            f"version {VERSION}; {advice}"
        )
    try:
        _require(document.get("crc32") == _checksum(document), "its checksum is wrong")
        header = _parse_header(document)
        _check_arrays(header)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise StoreError(f"{path} is damaged: {reason}; convert again") from error
    return header


def _parse_header(document: dict[str, Any]) -> StoreHeader:
    n_rows, n_columns = document["shape"]
    value, words, origin = document["value"], document["label_words"], document["origin"]
    constant, largest = value["constant"], value["largest"]
    for number in (largest, largest if constant is None else constant):
        finite = isinstance(number, float) and math.isfinite(number)
        _require(finite and largest >= 0, "the bound of the values is not a number")
    _require(value["dtype"] in _VALUE, "the type of the values is unknown")
    texts = [document["source"], document["written_by"], *(words or ())]
    _require(all(isinstance(text, str) for text in texts), "the labels or the source are not text")
    _require(
        isinstance(origin, dict) and isinstance(origin.get(COLUMNS_DECLARED), bool),
        "its origin does not say whether the columns were declared",
    )
    names = origin.get(NAMES, [""] * n_columns)
    _require([*map(type, names)] == [str] * n_columns, "its origin does not name every column")
    arrays = {
        name: ArrayEntry(
            entry["dtype"],
            _whole(entry["size"]),
            tuple((_whole(length), _whole(crc)) for length, crc in entry["pieces"]),
        )
        for name, entry in document["arrays"].items()
    }
    header = StoreHeader(
        written_by=document["written_by"],
        source=document["source"],
        origin=origin,
        shape=(_whole(n_rows), _whole(n_columns)),
        nnz=_whole(document["nnz"]),
        value_dtype=value["dtype"],
        constant=constant,
        largest_value=largest,
        label_words=None if words is None else tuple(words),
        arrays=arrays,
    )
    same = _checksum(_document(header)) == document["crc32"]
    _require(same, "its arrays do not match its version, or it has unknown entries")
    return header


def _check_arrays(header: StoreHeader) -> None:
    n, nnz = header.shape[0], header.nnz
    counts = {"N": n, "N + 1": n + 1, "nnz": nnz, "words": WORDS * n}
    left_out = {PEOPLE} - set(header.arrays)
    if header.constant is not None:
        left_out.add(VALUES)
    _require(set(header.arrays) == set(ARRAYS) - left_out, "arrays are missing or unknown")
    for name, entry in header.arrays.items():
        dtypes, counted = ARRAYS[name]
        _require(entry.size == counts[counted], f"array {name} has an impossible size")
        _require(entry.dtype in dtypes, f"array {name} has an unknown type")
        if name == VALUES:
            _require(entry.dtype == header.value_dtype, "the values have two types")
        if name == LABELS and header.label_words is not None:
            _require(np.dtype(entry.dtype).kind == "i", "text labels are not numbered")
        lengths, itemsize = [length for length, _ in entry.pieces], np.dtype(entry.dtype).itemsize
        whole = sum(lengths) == entry.n_bytes and not any(length % itemsize for length in lengths)
        _require(whole, f"the checksums of array {name} do not cover it")


def _whole(number: Any) -> int:
    if type(number) is not int or number < 0 or number >= 2**63:
        raise ValueError(f"{number!r} is not a size")
    return number


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def open_array(directory: Path, name: str, entry: ArrayEntry) -> NDArray[Any]:
    """Map an array; `StoreError` if its file has the wrong length or first bytes."""
    path = array_file(directory, name)
    try:
        with path.open("rb") as file:
            length, head = os.fstat(file.fileno()).st_size, file.read(DATA_OFFSET)
    except FileNotFoundError as error:
        raise StoreError(f"{path} is missing from the store; convert the data again") from error
    expected = DATA_OFFSET + entry.n_bytes
    if length != expected:
        problem = f"{length} bytes long instead of {expected}"
    elif head != npy_header(entry.dtype, entry.size):
        problem = "its first bytes are wrong"
    else:
        return map_array(path, entry.dtype, entry.size)
    raise StoreError(f"{path} is damaged: {problem}; convert again")


def map_array(path: Path, dtype: DTypeLike, size: int) -> NDArray[Any]:
    """Map a flat array of a file into memory; writing to the array does not change the file.

    The array is writable because kernels would otherwise be compiled again for read-only arrays.
    """
    dtype = np.dtype(dtype)
    if size == 0:
        return np.empty(0, dtype)
    length, access = DATA_OFFSET + size * dtype.itemsize, mmap.PROT_READ | mmap.PROT_WRITE
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), length, mmap.MAP_PRIVATE | _NO_RESERVE, access)
    return np.frombuffer(mapped, dtype, size, DATA_OFFSET)


def bytes_of(part: NDArray[Any]) -> memoryview:
    """Return the data of an array as bytes."""
    # A view as uint8, because an empty memoryview of another type cannot be cast.
    return np.ascontiguousarray(part).view(np.uint8).data


def partial_directory(path: Path) -> Path:
    """Return the directory in which the store `path` is written."""
    return path.with_name(path.name + PARTIAL_SUFFIX)


def check_place(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Return the place of a new store; raise an error if no store can be written there.

    `force` allows replacing a store.
    """
    if is_address(str(path)):
        raise DataError(
            "a store is made on a disk: copy the finished folder to object storage, for example "
            "with aws s3 sync"
        )
    path = Path(path).resolve()
    if path.name.endswith((PARTIAL_SUFFIX, REPLACED_SUFFIX)) or not path.name:
        raise StoreError(
            f"{path} cannot be the name of a store: {PARTIAL_SUFFIX} and {REPLACED_SUFFIX} mark "
            "unfinished stores; choose another name"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: there is no folder {path.parent}; create it first."
        )
    try:
        # Looked at once: another process may be replacing it.
        files = {entry.name for entry in path.iterdir()}
    except FileNotFoundError:
        return path
    except NotADirectoryError:
        raise StoreError(f"{path} exists and is not a store; choose another name") from None
    if files and not (HEADER_FILE in files and files <= _STORE_FILES):
        raise StoreError(f"{path} is a folder with other files; choose another name")
    if files and not force:
        raise StoreError(f"{path} exists already", advice="pass `force=True` to replace it")
    return path


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Make an empty directory beside `path` for this process only; remove it on failure."""
    partial = partial_directory(path)
    with hold(path, StoreError(f"{path} is being written by another process; wait for it")):
        make_folder(partial)
        strange = sorted({entry.name for entry in partial.iterdir()} - UNFINISHED_FILES)
        if strange:
            raise StoreError(
                f"{partial} contains {strange[0]}, which no conversion writes; move it first"
            )
        try:
            _restore_replaced(path)
            for entry in partial.iterdir():
                entry.unlink()
            yield partial
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def put_in_place(partial: Path, path: Path) -> None:
    """Move a complete store to its place, and then remove an older one."""
    sync_directory(partial)
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    older = path.exists()
    if older:
        path.rename(replaced)
    try:
        partial.rename(path)
    except BaseException:
        if older:
            replaced.rename(path)
        raise
    sync_directory(path.parent)
    if older:
        shutil.rmtree(replaced, ignore_errors=True)


def _restore_replaced(path: Path) -> None:
    """Undo or complete an interrupted replacement of a store."""
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    if replaced.is_dir() and {entry.name for entry in replaced.iterdir()} <= _STORE_FILES:
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)
