"""svmlight text in memory, read with the block size and the threads that a case asks for."""

from typing import Any

from dplasso.data.blocks import gather
from dplasso.data.formats import Layout
from dplasso.data.source_files import Paths, source_files
from dplasso.data.svmlight import row_source


def read_svmlight(
    paths: Paths,
    *,
    block_bytes: int | None = None,
    n_threads: int | None = None,
    **layout: Any,
) -> tuple[Any, Any]:
    """Return matrix and labels; the options are those of `Layout` and `row_source`."""
    how = Layout(**layout)
    return gather(
        row_source(source_files(paths), how, block_bytes=block_bytes, n_threads=n_threads)
    )[:2]
