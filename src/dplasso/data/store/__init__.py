"""Data sets on disk, mapped into memory; the format is described in ``docs/store.md``."""

from dplasso.data.store.reader import (
    Store,
    StoreMatrix,
    check_entries,
    describe,
    is_store,
    open_store,
)
from dplasso.data.store.writer import write_store

__all__ = [
    "Store",
    "StoreMatrix",
    "check_entries",
    "describe",
    "is_store",
    "open_store",
    "write_store",
]
