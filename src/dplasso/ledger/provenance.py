"""Facts about who charges a ledger, for its curator; none of them is ever released."""

import getpass
import hmac
import os
import secrets
import socket
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from dplasso.files.private import descriptor

_KEY_BYTES = 32


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def user_host() -> tuple[str, str]:
    """Return the names of the user and of the machine, as far as the system knows them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container whose user has no name
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return user, socket.gethostname() or "unknown"


def program() -> str:
    """Return the program's name and version."""
    return f"dplasso {version('dplasso')}"


def data_fingerprint(labels: NDArray[np.int8] | NDArray[np.float64]) -> str:
    """Return what tells one data set from another, however its columns are made.

    A hash without a key of the number of records and their labels, 0 or 1 in the order of the
    records: who knows all labels but one can read that one from it. It leaves memory as `keyed`
    makes it, and no other way.
    """
    bits = np.packbits(labels != 0).tobytes()
    return sha256(f"{labels.size}\n".encode() + bits).hexdigest()


def keyed(path: str | os.PathLike[str], fingerprint: str) -> str | None:
    """Return a fingerprint as an entry of a ledger holds it: of no use without the ledger's key.

    That is which key, a colon, and HMAC-SHA-256 under it, cut to 8 and 16 hexadecimal digits. The
    key is 32 random bytes in a file beside the ledger, ``NAME.key``, for its owner's eyes. It is
    made when it is first needed; the caller holds the ledger's lock. None where there can be no
    key: another user's, or a folder that takes no file.
    """
    place = f"{os.path.realpath(path)}.key"
    try:
        with os.fdopen(descriptor(place, os.O_RDWR | os.O_CREAT), "r+b") as file:
            key = file.read()
            if not key:
                key = secrets.token_bytes(_KEY_BYTES)
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        return None
    if len(key) != _KEY_BYTES:
        return None
    which = sha256(b"dplasso: which key\n" + key).hexdigest()[:8]
    return f"{which}:{hmac.new(key, fingerprint.encode(), sha256).hexdigest()[:16]}"
