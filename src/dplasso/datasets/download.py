"""One file over HTTP: resumed where it broke off, checked, whole under its name or not there.

While it is on its way the file is ``NAME.part``, with what the server said of it in
``NAME.part.json``. Its checksum is pinned in ``NAME.sha256`` when it is complete for the first time
(trust on first use), in the form that ``sha256sum --check`` reads.
"""

import errno
import fcntl
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pooch

from dplasso.data.streams import Progress
from dplasso.errors import DataError
from dplasso.files.atomic import atomic_write

if TYPE_CHECKING:
    import requests

# What a broken connection costs at most, and what is written at a time.
_CHUNK = 1 << 16
_TIMEOUT_S = 60
# Compressed on the way, a part would not be a part of the file.
_HEADERS = {"Accept-Encoding": "identity"}


class NotThereError(DataError):
    """The server has no such file."""


@dataclass(frozen=True)
class _Part:
    """An unfinished download: where it is, and what the server said of the whole file."""

    path: Path
    notes: Path


def download(
    url: str,
    target: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    attempts: int = 3,
    wait: float = 1.0,
) -> Path:
    """Download a file, or find it there, and check it against its pinned checksum.

    Parameters
    ----------
    url : str
        Where from.
    target : str or path-like
        Where to; the directory is made.
    progress : callable, optional
        Called as ``progress(done, total)`` in bytes; what an earlier run left counts as done.
    attempts : int, default=3
        How often a broken connection is taken up again before giving up.
    wait : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    NotThereError
        If the server has no such file.
    DataError
        If the file, downloaded or there already, differs from the checksum pinned at first.
    ConnectionError
        If the server cannot be reached, fails, or cuts the connection; another call goes on from
        what has arrived.
    OSError
        If the file cannot be written, for instance on a full disk.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    pin = pin_file(target)
    if target.exists():
        _check_pinned(target, pin)
        return target
    part = _Part(
        target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.part.json")
    )

    def transfer(url: str, output_file: str, _pooch: Any) -> None:
        for attempt in range(attempts):
            try:
                _transfer(url, part, progress)
                break
            except ConnectionError:
                if attempt + 1 == attempts:
                    raise
                time.sleep(wait)
        _check_pinned(part.path, pin, remove=(part.path, part.notes), name=target.name)
        part.path.replace(output_file)
        part.notes.unlink(missing_ok=True)

    with _quiet_pooch(), _alone(part, target):
        pooch.retrieve(
            url, known_hash=None, fname=target.name, path=target.parent, downloader=transfer
        )
    return target


def pin_file(target: Path) -> Path:
    """Give the name of the file that holds the checksum of another."""
    return target.with_name(f"{target.name}.sha256")


def _check_pinned(
    path: Path, pin: Path, remove: tuple[Path, ...] = (), name: str | None = None
) -> None:
    """Compare a file with its pinned checksum; pin it if there is none."""
    found = pooch.file_hash(str(path))
    if not pin.exists():
        with atomic_write(pin) as file:
            file.write(f"{found}  {name or path.name}\n".encode())
        return
    pinned = pin.read_text().split()
    if not pinned or len(pinned[0]) != 64:
        raise DataError(f"{pin}: there is no SHA-256 sum in this file; delete it to pin a new one")
    if found != pinned[0]:
        for each in remove:
            each.unlink(missing_ok=True)
        told = "what the server sent was not kept" if remove else "delete it to download it again"
        raise DataError(
            f"{pin.with_suffix('')}: the SHA-256 sum is {found}, but {pinned[0]} was pinned at the "
            f"first download: {told}; delete {pin.name} only if you trust the new file"
        )


def _transfer(url: str, part: _Part, progress: Progress | None) -> None:
    """Append what is missing to the part; return when it is complete."""
    import requests

    notes = _read_notes(part, url)
    have = _size(part.path) if notes else 0
    headers = dict(_HEADERS)
    if notes and 0 < have <= notes.total:
        if have == notes.total:
            return
        headers |= {"Range": f"bytes={have}-", "If-Range": notes.validator}
    done = total = 0
    try:
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_S) as response:
            start, total = _begin(response, url, have, notes)
            if not start:
                _write_notes(part, url, response, total)
            _check_disk(part.path, total - start if total else 0)
            with _open(part.path, start) as file:
                done = start
                for chunk in response.iter_content(_CHUNK):
                    _write(file, chunk, part.path)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, max(total, done))
                os.fsync(file.fileno())
    except requests.RequestException as error:
        raise ConnectionError(_network_failure(url, error, _size(part.path))) from error
    if done < total:
        raise ConnectionError(f"{url}: the connection broke{_go_on(done)}")
    if done > total > 0:
        part.path.unlink()
        raise ConnectionError(f"{url}: the server sent more than the {total:,} bytes it announced")


def _begin(
    response: "requests.Response", url: str, have: int, notes: "_Notes | None"
) -> tuple[int, int]:
    """Give the byte at which the answer starts and the size of the whole file, 0 if unknown."""
    status = response.status_code
    if status == 206:
        # Content-Range: bytes 1000-4999/5000
        content_range = response.headers.get("Content-Range", "")
        span, _, size = content_range.removeprefix("bytes ").partition("/")
        if notes and span.partition("-")[0] == str(have) and size == str(notes.total):
            return have, notes.total
        raise ConnectionError(f"{url}: the server sent another part than it was asked for")
    if status == 404:
        raise NotThereError(f"{url}: the server has no such file (404)")
    if status != 200:
        raise ConnectionError(f"{url}: the server answers {status} {response.reason}")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise ConnectionError(f"{url}: the server answers with a web page, not with a data file")
    return 0, int(response.headers.get("Content-Length") or 0)


@dataclass(frozen=True)
class _Notes:
    """What the server said of a file of which a part is here."""

    url: str
    validator: str
    total: int


def _read_notes(part: _Part, url: str) -> _Notes | None:
    """Give what is known of an unfinished download, if it can be gone on with from this address."""
    try:
        notes = _Notes(**json.loads(part.notes.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    usable = notes.url == url and isinstance(notes.total, int) and isinstance(notes.validator, str)
    return notes if usable and notes.validator else None


def _write_notes(part: _Part, url: str, response: "requests.Response", total: int) -> None:
    etag = response.headers.get("ETag", "")
    # A weak tag does not promise the same bytes.
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    # A part of an older file must not be taken for one of this file.
    part.path.unlink(missing_ok=True)
    with atomic_write(part.notes) as file:
        file.write(json.dumps(asdict(_Notes(url, validator, total))).encode())


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _open(path: Path, start: int) -> FileIO:
    # Without a buffer, whose rest would fail once more when the file is closed.
    file = path.open("r+b" if start else "wb", buffering=0)
    file.seek(start)
    return file


def _write(file: FileIO, chunk: bytes, path: Path) -> None:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise OSError(
            f"{path}: cannot be written: {error.strerror or error}; make room and run it again, "
            "to go on from what is there"
        ) from error


def _check_disk(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"{needed / 1e6:,.1f} MB are to come and the disk has {free / 1e6:,.1f} MB left",
            str(path),
        )


def _network_failure(url: str, error: Exception, have: int) -> str:
    """Say in a sentence why no answer came, or stopped coming."""
    import requests

    if isinstance(error, requests.Timeout):
        return f"{url}: no answer within {_TIMEOUT_S} seconds{_go_on(have)}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError) or "broken" in str(error):
        return f"{url}: the connection broke{_go_on(have)}"
    if isinstance(error, requests.ConnectionError):
        return f"{url}: the server cannot be reached; is there a network connection?{_go_on(have)}"
    return f"{url}: {error}"


def _go_on(have: int) -> str:
    return f" ({have:,} bytes have arrived; run it again to go on from there)" if have else ""


@contextmanager
def _alone(part: _Part, target: Path) -> Iterator[None]:
    """Keep two processes from writing one part."""
    lock = part.path.with_suffix(".lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(f"{target}: another process is downloading it") from error
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Keep pooch from printing; the command line has a progress bar of its own."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)
