"""Changes to row blocks as they pass: labels mapped, values made binary."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.label_map import check_label_map, map_labels
from dplasso.data.streams import Progress
from dplasso.errors import DataError


def binarized(source: BlockSource) -> BlockSource:
    """Turn every non-zero value into 1.

    `source`: the records. Explicit zeros stay zeros.
    """

    def ones(block: RowBlock, first: int) -> RowBlock:
        finite = np.isfinite(block.values)
        if not finite.all():
            at = int(np.argmin(finite))
            row = first + int(np.searchsorted(block.indptr, at, side="right"))
            raise DataError(
                f"{source.name}: row {row} holds NaN or infinity; give finite numbers only"
            )
        return block._replace(values=(block.values != 0).astype(block.values.dtype))

    return _changed(source, ones)


def with_mapped_labels(source: BlockSource, label_map: Mapping[str, float]) -> BlockSource:
    """Map the labels of records whose reader does not.

    `label_map`: what the labels mean; any other label is an error, found when its block is read.

    Raises DataError if the map cannot be used.
    """
    meaning = check_label_map(label_map)

    def mapped(block: RowBlock, first: int) -> RowBlock:
        return block._replace(labels=map_labels(block.labels, meaning, source.name, first))

    return _changed(source, mapped)


def _changed(source: BlockSource, change: Callable[[RowBlock, int], RowBlock]) -> BlockSource:
    """Apply `change` to every block; it is told how many records came before."""

    def blocks(memory_bytes: int, progress: Progress | None = None, /) -> Iterator[RowBlock]:
        first = 0
        for block in source.blocks(memory_bytes, progress):
            yield change(block, first)
            first += block.labels.size

    return replace(source, blocks=blocks)
