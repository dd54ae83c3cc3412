"""Facts about who charges a ledger, for its curator; none of them is ever released."""

import getpass
import os
import socket
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.privacy.ledger.composition import Charge


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


def data_fingerprint(labels: NDArray[np.int8]) -> str:
    """Return what tells one data set from another, however its columns are made.

    Parameters
    ----------
    labels : ndarray of int8, shape (N,)
        0 or 1, in the order of the records.

    Returns
    -------
    str
        16 hexadecimal digits of SHA-256 over the number of records and their labels. It is a
        function of private data: for the ledger, which stays with the curator.
    """
    bits = np.packbits(labels != 0).tobytes()
    return sha256(f"{labels.size}\n".encode() + bits).hexdigest()[:16]


def described(charge: Charge) -> dict[str, Any]:
    """Return a charge's values as a ledger's columns hold them."""
    values = asdict(charge)
    digits = {name: str(values[name]) for name in ("rho", "draw_delta")}
    return values | digits | {"eps0": values["eps0"] or 0.0}
