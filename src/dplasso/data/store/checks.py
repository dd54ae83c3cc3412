"""Whether the arrays of a store are those that were written, and safe for kernels to follow."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dplasso.data.store.arrays import bytes_of
from dplasso.data.store.header import ArrayEntry, array_file
from dplasso.data.store.kernel import first_outside, first_unordered
from dplasso.errors import StoreError

# A block fits a core's cache, so that its checksum and its entries take one pass over the memory.
_BLOCK_ENTRIES = 1 << 17


def _any_entry(_begin: int, _end: int) -> int:
    return -1


@dataclass(frozen=True)
class ArrayCheck:
    """An array to compare with its checksums, and what its entries must be.

    `first_fault`: returns the position of the first entry from `begin` to `end` - 1 that is not
    what `rule` says, or -1.
    """

    name: str
    array: NDArray[Any]
    entry: ArrayEntry
    rule: str = ""
    first_fault: Callable[[int, int], int] = _any_entry


def indices_check(
    name: str,
    array: NDArray[Any],
    entry: ArrayEntry,
    starts: NDArray[np.int64],
    limit: int,
    numbers: NDArray[Any],
) -> ArrayCheck:
    """Return the check that indices lie in 0 to `limit` - 1, and none of them twice in a row.

    The entries of each row (or column) must ascend strictly, in the `numbers` of their indices
    if there are any.
    """
    return ArrayCheck(
        name,
        array,
        entry,
        f"one of 0 to {limit - 1} and greater than the entry before it",
        lambda begin, end: int(first_unordered(array, starts, numbers, limit, begin, end)),
    )


def values_check(name: str, array: NDArray[Any], entry: ArrayEntry) -> ArrayCheck:
    """Return the check that values are finite."""
    # Without its sign bit, a number that is not finite is at least infinity's bit pattern.
    words = array.view(np.int32 if array.itemsize == 4 else np.int64)
    infinity = int(np.array(np.inf, array.dtype).view(words.dtype))
    mask = (1 << (8 * array.itemsize - 1)) - 1

    def first_fault(begin: int, end: int) -> int:
        at = int(first_outside(words[begin:end], infinity, mask))
        return at if at < 0 else begin + at

    return ArrayCheck(name, array, entry, "a finite number", first_fault)


def compare(directory: Path, checks: Sequence[ArrayCheck], *, n_threads: int = 2) -> Iterator[int]:
    """Make checks, each array in one pass; yield the bytes of every piece that passed.

    Raises StoreError for the first piece that did not.
    """
    pieces = [(check, *span) for check in checks for span in check.entry.spans()]
    with ThreadPoolExecutor(n_threads) as pool:
        faults = pool.map(lambda piece: _fault(*piece), pieces)
        for (check, begin, end, _), fault in zip(pieces, faults, strict=True):
            if fault:
                refuse_damaged(directory, check.name, fault)
            yield (end - begin) * check.array.itemsize


def _fault(check: ArrayCheck, begin: int, end: int, crc: int) -> str:
    """Return what is wrong with a piece of an array, in words; nothing if it is whole."""
    sums, fault = 0, -1
    for at in range(begin, end, _BLOCK_ENTRIES):
        stop = min(at + _BLOCK_ENTRIES, end)
        sums = zlib.crc32(bytes_of(check.array[at:stop]), sums)
        if fault < 0:
            fault = check.first_fault(at, stop)
    if sums != crc:
        size = check.array.itemsize
        return (
            f"its checksum does not fit between bytes {begin * size} and {end * size} of the data"
        )
    return f"entry {fault} is not {check.rule}" if fault >= 0 else ""


def refuse_damaged(directory: Path, name: str, problem: str) -> NoReturn:
    """Raise StoreError for a damaged array, which names its file."""
    raise StoreError(f"{array_file(directory, name)} is damaged: {problem}; convert again")
