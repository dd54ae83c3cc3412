"""Reading svmlight (LIBSVM) text: ``label index:value index:value ...``, one record a line.

The text comes in blocks of whole lines, which threads parse, each to arrays of its own; the results
are handed on in file order. So the memory beyond the result is a few blocks.
"""

from collections.abc import Generator
from contextlib import closing

from dplasso.data.blocks import BlockSource, Piece, files_source
from dplasso.data.formats import Layout
from dplasso.data.source_files import SourceFiles
from dplasso.data.streams import BLOCK_BYTES, in_order, line_blocks
from dplasso.data.svmlight.lines import LineError, parse_lines
from dplasso.errors import DataError
from dplasso.runtime.cores import usable_cores

# More would wait for the one that reads and decompresses.
_MOST_THREADS = 8
# A block of text makes arrays of up to about this many times its size, itself included: short
# entries make 12 bytes of 4, and the kernel's columns are wider while it works.
_ARRAYS_PER_TEXT = 8
# Blocks in memory besides one for each thread: read ahead, waiting, handed out.
_BESIDE_THREADS = 4
_LEAST_TEXT = 64 << 10


def row_source(
    files: SourceFiles,
    layout: Layout,
    *,
    block_bytes: int | None = None,
    n_threads: int | None = None,
) -> BlockSource:
    """Open svmlight text, plain or compressed, as row blocks of float32."""
    if layout.labels_path is not None:
        raise DataError(
            f"{files.paths[0]}: svmlight text has its own labels; leave `labels_path` out"
        )
    threads = n_threads or min(usable_cores(), _MOST_THREADS)

    def parse(block: tuple[bytes, int]) -> tuple[Piece, int]:
        return parse_lines(*block, layout)

    def read(i: int, memory_bytes: int) -> Generator[Piece]:
        path, line = files.paths[i], 0
        text = memory_bytes // ((threads + _BESIDE_THREADS) * _ARRAYS_PER_TEXT)
        size = block_bytes or min(max(text, _LEAST_TEXT), BLOCK_BYTES)
        with (
            closing(line_blocks(path, size)) as texts,
            closing(in_order(parse, texts, threads)) as results,
        ):
            try:
                for piece, n_lines in results:
                    line += n_lines
                    yield piece._replace(where=lambda _: str(path))
            except LineError as error:
                raise DataError(f"{path}, line {line + error.line}: {error}") from None

    return files_source(files, layout.n_features, read)
