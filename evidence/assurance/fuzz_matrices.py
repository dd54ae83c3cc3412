"""Fuzz targets for matrices in files: svmlight, plain or compressed, and scipy's .npz.

Each is compared with a slow reference, or with what numpy alone reads.
"""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dplasso.data.formats import Layout
from dplasso.data.npz import read_npz
from dplasso.errors import DataError
from evidence.assurance import fuzz_mutations as corrupt
from evidence.assurance.fuzz_tables import Misread, refused
from evidence.reference.svmlight import BadLineError, svmlight_records
from evidence.svmlight import read_svmlight

# --- svmlight ----------------------------------------------------------------------------

_SVMLIGHT = (
    b"1 1:0.5 3:1 7:-2.25\n-1 2:1e-3 # remark\n\n+1 1:1 2:.5 3:5. 40:3.14159265358979\n",
    b"0 1:1 2:2\n1 3:1\n2.5 1:123456789012345678901\n",
    b"1\n0 1:1\r\n1 2:0\n",
    b"-1 1:0.1000000000000000055 5:16777217 6:1e-45 7:1.17549435e-38\n1 2147483648:1",
)


def svmlight_seeds() -> list[bytes]:
    return list(_SVMLIGHT)


def _same_records(X: Any, y: Any, records: list[Any], path: Path) -> None:
    labels = np.array([label for label, _ in records])
    columns = [column for _, entries in records for column, _ in entries]
    values = np.array([value for _, entries in records for _, value in entries], np.float32)
    lengths = [len(entries) for _, entries in records]
    if not (
        y.tobytes() == labels.astype(np.float64).tobytes()
        and X.indices.tolist() == columns
        and X.data.tobytes() == values.tobytes()
        and np.diff(X.indptr).tolist() == lengths
        and X.shape == (len(records), 1 + max(columns))
    ):
        raise Misread(f"{path.name} was read as something else")


def _svmlight(data: bytes, path: Path, text: bytes | None) -> str:
    """Compare the reader with the slow one; `text` is None where the stream is damaged."""
    try:
        records = None if text is None else svmlight_records(text)
        line = 0
    except BadLineError as error:
        records, line = None, error.args[0]
    path.write_bytes(data)
    try:
        X, y = read_svmlight(path, block_bytes=random.Random(data).choice((1, 7, 64, 1 << 20)))
    except DataError as error:
        if records and any(entries for _, entries in records):
            # Only a stream may be refused for what is no text: another format's first bytes.
            if "the content is" not in str(error):
                raise Misread(f"a good file was refused: {error}") from error
        elif line and f"line {line}:" not in str(error) and "the content is" not in str(error):
            raise Misread(f"line {line} is the bad one: {error}") from error
        return refused(error, path)
    if records is None:
        raise Misread("a bad file was read")
    _same_records(X, y, records, path)
    return "accepted"


def check_svmlight(data: bytes, folder: Path) -> str:
    return _svmlight(data, folder / "input.svm", data)


_COMPRESSIONS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".gz": (lambda data: gzip.compress(data, mtime=0), gzip.decompress),
    ".bz2": (bz2.compress, bz2.decompress),
    ".xz": (lzma.compress, lzma.decompress),
}


@cache
def compressed_seeds() -> list[bytes]:
    texts = (_SVMLIGHT[0], _SVMLIGHT[3], b"1 1:1 5:2\n" * 300)
    return [
        suffix.encode() + b"|" + squeeze(text)
        for suffix, (squeeze, _) in _COMPRESSIONS.items()
        for text in texts
    ] + [b".gz|" + gzip.compress(texts[0], mtime=0) + gzip.compress(texts[1], mtime=0)]


def corrupt_compressed(data: bytes, rng: random.Random) -> bytes:
    suffix, _, rest = data.partition(b"|")
    return suffix + b"|" + corrupt.corrupt_bytes(rest, rng)


def check_compressed(data: bytes, folder: Path) -> str:
    suffix, bar, rest = data.partition(b"|")
    name = suffix.decode(errors="replace")
    if not bar or name not in _COMPRESSIONS:
        name, rest = ".gz", data
    text: bytes | None
    try:
        text = _COMPRESSIONS[name][1](rest)
    except Exception:
        text = None
    path = folder / f"input.svm{name}"
    if text is not None:
        return _svmlight(rest, path, text)
    path.write_bytes(rest)
    try:
        read_svmlight(path)
    except DataError as error:
        return refused(error, path)
    raise Misread("a damaged stream was read")


# --- npz ---------------------------------------------------------------------------------


@cache
def npz_seeds() -> list[bytes]:
    import io

    rng = np.random.default_rng(0)
    X = sp.random_array((6, 9), density=0.4, rng=rng, format="csr", dtype=np.float32)
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    seeds = []
    for labels in (np.arange(6) % 2, np.array(list("ababab"))):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, format=np.array(b"csr"), y=labels, **arrays)
        seeds.append(buffer.getvalue())
    for layout in ("csr", "csc", "coo"):
        buffer = io.BytesIO()
        sp.save_npz(buffer, X.asformat(layout), compressed=False)
        members = corrupt.members_of(buffer.getvalue())
        members["y.npy"] = corrupt.npy(np.arange(6) % 2)
        seeds.append(corrupt.packed(members))
    return seeds


def check_npz(data: bytes, folder: Path) -> str:
    path = folder / "input.npz"
    path.write_bytes(data)
    try:
        X, y = read_npz(path, Layout())
    except DataError as error:
        return refused(error, path)
    if X.indices.size and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise Misread("a column is out of range")
    if X.shape[0] != y.size or X.indptr[-1] != X.data.size or not np.isfinite(X.data).all():
        raise Misread("the arrays do not fit each other")
    with np.load(path, allow_pickle=False) as arrays:
        shape, triples = _plainly(arrays)
        labels = arrays["y" if "y" in arrays else "labels"]
    ours = X.tocoo()
    if (
        shape != X.shape
        or triples != _triples(ours.row, ours.col, ours.data)
        or labels.tolist() != y.tolist()
    ):
        raise Misread("numpy alone reads another matrix")
    return "accepted"


def _plainly(arrays: Any) -> tuple[tuple[int, ...], list[tuple[int, int, float]]]:
    """Read the layout of scipy's .npz entry by entry."""
    layout = arrays["format"].item()
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout == "coo":
        major, minor = arrays["row"].tolist(), arrays["col"].tolist()
    else:
        lengths = np.diff(arrays["indptr"].tolist())
        major = np.repeat(np.arange(lengths.size), lengths).tolist()
        minor = arrays["indices"].tolist()
    rows, columns = (minor, major) if layout == "csc" else (major, minor)
    return tuple(arrays["shape"].tolist()), _triples(rows, columns, arrays["data"])


def _triples(rows: Any, columns: Any, data: Any) -> list[tuple[int, int, float]]:
    return sorted(zip(map(int, rows), map(int, columns), map(float, data), strict=True))
