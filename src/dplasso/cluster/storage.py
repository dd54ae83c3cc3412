"""Stores on object storage: a worker copies its own to its machine, and keeps no file of it."""

import os
from collections.abc import Iterator
from pathlib import Path

from dplasso.errors import DataError
from dplasso.runtime.extras import need

# Bytes between two answers to the coordinator.
PIECE = 1 << 26


def is_address(path: str) -> bool:
    """Return whether a store is not a folder of a machine, but at a place like s3://bucket/a."""
    return "://" in path


def copy_store(address: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Copy the files of a store, so that nobody else may read them.

    `address`: as fsspec takes it.
    `folder`: where to; closed to others.

    Yields the bytes copied and those to be copied, after every piece.

    Raises MissingExtraError without fsspec; DataError if there is nothing, or it cannot be read.
    """
    need("fsspec", "Reading object storage")
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(address)
        files = [one for one in system.ls(root, detail=True) if one["type"] == "file"]
        if not files:
            raise FileNotFoundError("there is no store")
        done, total = 0, sum(one["size"] for one in files)
        for one in files:
            place = folder / Path(one["name"]).name
            own = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(own, "wb") as target, system.open(one["name"], "rb") as source:
                while piece := source.read(PIECE):
                    target.write(piece)
                    done += len(piece)
                    yield done, total
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"{address} cannot be read: {error}") from None
