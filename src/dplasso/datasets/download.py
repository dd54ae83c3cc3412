"""One file over HTTP: resumed where it broke off, checked, and complete under its name or absent.

While it is under way the file is ``NAME.part``, dated as the server dates it, so that a server can
tell whether the rest it is asked for belongs to the same file. Its checksum is pinned in
``NAME.sha256`` when it is complete for the first time (trust on first use), in the form that
``sha256sum --check`` reads.
"""

import errno
import os
import shutil
import time
from contextlib import suppress
from email.utils import formatdate, parsedate_to_datetime
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplasso.data.streams import Progress
from dplasso.errors import DataError
from dplasso.files.atomic import atomic_write
from dplasso.files.lock import hold
from dplasso.runtime.extras import need

if TYPE_CHECKING:
    import requests

_TIMEOUT_S = 60
# Bytes written at a time: the most that a broken connection can cost.
_CHUNK = 1 << 16


class NotThereError(DataError):
    """The server has no such file."""


def download(
    url: str,
    target: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    attempts: int = 3,
    wait: float = 1.0,
) -> Path:
    """Download a file, unless it is there already, and check it against its pinned checksum.

    A broken download is taken up again `attempts` times, every `wait` seconds; then another call
    resumes with what has arrived, if the server dates its files and serves parts of them.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    pin = pin_file(target)
    if target.exists():
        _check_pinned(target, target, pin, "delete it to download it again")
        return target
    part = target.with_name(f"{target.name}.part")
    with hold(target, DataError(f"{target}: another process is downloading it")):
        for attempt in range(attempts):
            try:
                _transfer(url, part, progress)
                break
            except ConnectionError:
                if attempt + 1 == attempts:
                    raise
                time.sleep(wait)
        try:
            _check_pinned(part, target, pin, "what the server sent was not kept")
        except DataError:
            part.unlink()
            raise
        part.replace(target)
    return target


def pin_file(target: Path) -> Path:
    """Return the name of the file that holds the checksum of another."""
    return target.with_name(f"{target.name}.sha256")


def _check_pinned(path: Path, target: Path, pin: Path, advice: str) -> None:
    """Compare a file with its pinned checksum; pin it if there is none."""
    with path.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if not pin.exists():
        with atomic_write(pin) as file:
            file.write(f"{found}  {target.name}\n".encode())
        return
    pinned = pin.read_text().split()
    if not pinned or len(pinned[0]) != 64:
        raise DataError(f"{pin}: there is no SHA-256 sum in this file; delete it to pin a new one")
    if found != pinned[0]:
        raise DataError(
            f"{target}: the SHA-256 sum is {found}, but {pinned[0]} was pinned at the first "
            f"download: {advice}; delete {pin.name} only if you trust the new file"
        )


class _Part:
    """The file under way, as pooch's downloader writes it: kept, dated and reported."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._path, self._progress = path, progress
        self._date = path.stat().st_mtime if path.exists() else 0.0
        # Unbuffered: what is left in a buffer would fail once more when the file is closed.
        self._file = path.open("ab", buffering=0)
        self._response: requests.Response | None = None
        self.done = self._file.tell()
        self.total = 0

    def headers(self) -> dict[str, str]:
        """Ask for the missing part, provided that the server still has the same file."""
        # If the transfer were compressed, a part would not be a part of the file.
        plain = {"Accept-Encoding": "identity"}
        if not self.done or not self._date:
            return plain
        date = formatdate(self._date, usegmt=True)
        return plain | {"Range": f"bytes={self.done}-", "If-Range": date}

    def begin(self, response: "requests.Response", *_: Any, **__: Any) -> None:
        """Inspect the server's response headers."""
        self._response = response
        if response.is_redirect or not response.ok:
            return
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise ConnectionError(
                f"{response.url}: the server answers with a web page, not with a data file"
            )
        if response.status_code != 206:
            self._file.truncate(0)
            self.done = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {self.done}-"):
            raise ConnectionError(
                f"{response.url}: the server sent a different part from the one asked for"
            )
        try:
            self._date = parsedate_to_datetime(response.headers["Last-Modified"]).timestamp()
        except (KeyError, ValueError):
            self._date = 0.0
        missing = int(response.headers.get("Content-Length") or 0)
        self.total = self.done + missing
        free = shutil.disk_usage(self._path.parent).free
        if missing > free:
            raise OSError(
                errno.ENOSPC,
                f"{missing / 1e6:,.1f} MB are to come and {free / 1e6:,.1f} MB are free",
                str(self._path),
            )

    def write(self, chunk: bytes) -> None:
        """Append what has arrived."""
        rest = memoryview(chunk)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise OSError(
                error.errno,
                f"{self._path}: cannot be written: {error.strerror or error}; make room and run "
                "it again to resume",
            ) from error
        self.done += len(chunk)
        if self._progress is not None:
            self._progress(self.done, max(self.total, self.done))

    def flush(self) -> None:
        """Keep the server's date on the file, also if the process is killed now."""
        os.utime(self._path, (self._date, self._date))

    def close(self) -> None:
        """Sync the file to the disk; remove it if nothing has arrived."""
        if self._response is not None:
            self._response.close()
        with suppress(OSError), self._file:
            os.fsync(self._file.fileno())
        if self._path.exists() and not self._path.stat().st_size:
            self._path.unlink()


def _transfer(url: str, path: Path, progress: Progress | None) -> None:
    """Append what is missing to the part; return when it is complete."""
    need("pooch", "Downloading")
    import pooch
    import requests

    part = _Part(path, progress)
    get = pooch.HTTPDownloader(
        headers=part.headers(),
        hooks={"response": part.begin},
        timeout=_TIMEOUT_S,
        chunk_size=_CHUNK,
    )
    try:
        get(url, part, None)
    except requests.HTTPError as error:
        answer = error.response
        assert answer is not None
        if answer.status_code == 404:
            raise NotThereError(f"{url}: the server has no such file (404)") from error
        if answer.status_code == 416:
            path.unlink()  # longer than the server's file, or as long: not to be resumed
        raise ConnectionError(
            f"{url}: the server answers {answer.status_code} {answer.reason}"
        ) from error
    except requests.RequestException as error:
        raise ConnectionError(_network_failure(url, error, part.done)) from error
    finally:
        part.close()


def _network_failure(url: str, error: Exception, have: int) -> str:
    """Return a sentence that says why the server's answer is missing or incomplete."""
    import requests

    resume = f" ({have:,} bytes have arrived; run it again to resume)" if have else ""
    if isinstance(error, requests.Timeout):
        return f"{url}: no answer within {_TIMEOUT_S} seconds{resume}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError) or "broken" in str(error):
        return f"{url}: the connection broke{resume}"
    if isinstance(error, requests.ConnectionError):
        return f"{url}: the server cannot be reached; is there a network connection?{resume}"
    return f"{url}: {error}"
