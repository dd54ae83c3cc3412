"""The container of this package's own files: a zip of plain arrays and a JSON header.

Model files and checkpoints share it (docs/model-file.md). It has no pickle, nothing is compressed,
and a SHA-256 of the members detects any damage.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dplasso.files.disk import atomic_write, program

_DIGEST = "sha256"
_Parsed = TypeVar("_Parsed")
_KINDS = "biufU"
# Types of labels that ``.npy`` cannot hold; their values go by a plain type.
LabelsType = Literal["plain", "object", "string"]
_TYPES: dict[str, np.dtype[Any]] = {"object": np.dtype(object), "string": np.dtypes.StringDType()}


@dataclass(frozen=True)
class ArchiveKind:
    """One kind of file, perhaps for its owner alone, and the error of a damaged one.

    `older`: what to do with a file of an older version.
    """

    noun: str
    magic: str
    version: int
    error: type[ValueError]
    older: str
    private: bool = False


def write_archive(
    path: str | os.PathLike[str],
    kind: ArchiveKind,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    temporary: str | None = None,
) -> None:
    """Write a file as `atomic_write` does, the arrays in their order."""
    preamble = {"magic": kind.magic, "version": kind.version, "written_by": program()}
    text = json.dumps(preamble | dict(header), allow_nan=False, separators=(",", ":"))
    members = {"header": npy(np.frombuffer(text.encode(), dtype=np.uint8))}
    members |= {name: npy(array) for name, array in arrays.items()}
    members[_DIGEST] = npy(np.frombuffer(digest(members), dtype=np.uint8))
    with (
        atomic_write(path, temporary=temporary, private=kind.private) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        for name, content in members.items():
            # A ZipInfo made by hand carries a fixed date: the same content gives the same bytes.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)


def read_archive(
    path: str | os.PathLike[str],
    kind: ArchiveKind,
    parse: Callable[[dict[str, Any], dict[str, bytes]], _Parsed],
) -> _Parsed:
    """Return what `parse` makes of a file's header and of its members' bytes, all checked."""
    shown = os.fspath(path)
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            members = _read_members(file, size, kind)
            header = _read_header(members, kind)
            if _DIGEST not in members:
                raise ValueError("it has no checksum")
            claimed = array_of(members, _DIGEST, "|u1").tobytes()
            del members[_DIGEST]
            if claimed != digest(members):
                raise ValueError("its checksum does not fit")
            return parse(header, members)
        except kind.error as error:
            raise kind.error(f"{shown} {error}") from error.__cause__
        except Exception as error:
            # zipfile and numpy raise a dozen types on damaged bytes; all mean damage here.
            reason = str(error).rstrip(".") or type(error).__name__
            raise kind.error(f"{shown} is damaged or incomplete: {reason}.") from error


def _read_members(file: Any, size: int, kind: ArchiveKind) -> dict[str, bytes]:
    if not zipfile.is_zipfile(file):
        raise kind.error(f"is not a dplasso {kind.noun} file, or is incomplete; pass another file.")
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if "header.npy" not in entries:
            raise kind.error(f"is not a dplasso {kind.noun} file.")
        for entry in entries.values():
            # Stored members cannot be larger than the file: nothing to unpack, nothing to bomb.
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
                raise kind.error("is damaged: a part of it is compressed or too large.")
        return {name.removesuffix(".npy"): archive.read(name) for name in entries}


def _read_header(members: dict[str, bytes], kind: ArchiveKind) -> dict[str, Any]:
    """Parse the header and settle whether this version can read the rest."""
    text = array_of(members, "header", "|u1").tobytes()
    header = None
    with suppress(ValueError):
        header = json.loads(text)
    if not isinstance(header, dict) or header.get("magic") != kind.magic:
        raise kind.error(f"is not a dplasso {kind.noun} file.")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise kind.error(f"names no known version of the {kind.noun} format: {version!r}.")
    if str(header.get("written_by")).startswith(("dplasso 0.1", "dplasso 0.2")):
        raise kind.error(f"was written before dplasso 0.3: {kind.older}.")
    if version != kind.version:
        advice = "install a newer dplasso" if version > kind.version else kind.older
        raise kind.error(
            f"has version {version} of the {kind.noun} format and this dplasso reads version "
            f"{kind.version}: {advice}."
        )
    return header


def npy(array: NDArray[Any]) -> bytes:
    """Serialise an array in numpy's .npy format."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def parse_array(member: bytes) -> NDArray[Any]:
    """Parse one member of any type but objects; `ValueError` if it is no array."""
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)
    return array


def array_of(members: Mapping[str, bytes], name: str, kind: str) -> NDArray[Any]:
    """Parse one member; ValueError unless it is a flat array of a type in numpy's short form."""
    array = parse_array(members[name])
    if array.dtype.str != kind or array.ndim != 1:
        raise ValueError(f"its part {name!r} is not a flat array of type {kind}")
    return array


def digest(members: Mapping[str, bytes]) -> bytes:
    """Hash the members' bytes in the order of their names, lengths included."""
    total = hashlib.sha256()
    for name in sorted(members):
        total.update(f"{name} {len(members[name])}\n".encode())
        total.update(members[name])
    return total.digest()


def labels_to_array(labels: Any) -> tuple[NDArray[Any], LabelsType]:
    """Return labels as an array without pickle, in the shortest type, and their kind."""
    original = np.asarray(labels)
    if original.ndim != 1:
        raise ValueError(f"Labels must be a flat list, got an array of shape {original.shape}.")
    kinds: dict[str, LabelsType] = {"O": "object", "T": "string"}
    kind = kinds.get(original.dtype.kind, "plain")
    values, array = original.tolist(), original
    is_plain = all(isinstance(value, bool | int | float | str) for value in values)
    if is_plain and (kind != "plain" or original.dtype.kind == "U"):
        array = np.array(values, dtype=None if values else np.str_)
    if array.dtype.kind not in _KINDS or array.tolist() != values:
        raise ValueError(
            f"Labels of type {original.dtype} cannot be written to a model file; use numbers, "
            "strings or booleans, all of one kind."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("A label that is NaN or infinite cannot be written to a model file.")
    return array, kind


def labels_from_array(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return the labels that `labels_to_array` stored; ValueError for others."""
    if array.ndim != 1 or array.dtype.kind not in _KINDS:
        raise ValueError(f"labels cannot be an array of type {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("a label is not finite")
    if kind not in ("plain", *_TYPES) or (kind == "string" and array.dtype.kind != "U"):
        raise ValueError(f"labels cannot be of type {kind!r}")
    return array if kind == "plain" else array.astype(_TYPES[kind])
