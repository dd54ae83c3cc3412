"""Synthetic data sets like those of arXiv 2310.19978: their shapes, not their contents.

A synthetic data set has the rows, columns and non-zeros of its original, and labels that a sparse
linear model explains (`evidence.twins.plan` says how). Everything follows from the
seed: the rows are the same in memory (`make_synthetic`), as a stream of blocks
(`synthetic_source`) and from any number of threads.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.formats import Dataset
from dplasso.data.source_files import Progress
from evidence.twins.plan import (
    PILOT_ROWS,
    SHAPES,
    Labelling,
    Plan,
    Shape,
    draw_plan,
    fill,
    label_rows,
    scaled_shape,
    settle_labels,
)

__all__ = ["SHAPES", "Shape", "generate", "make_synthetic", "shape_source", "synthetic_source"]

_BYTES_PER_ENTRY = 8
# A block is large enough to keep all threads busy, and small enough for a progress bar.
_LARGEST_BLOCK = 64 << 20


def make_synthetic(
    name: str,
    *,
    scale: float = 1.0,
    seed: int = 0,
    n_rows: int | None = None,
    n_columns: int | None = None,
    n_jobs: int = -1,
) -> Dataset:
    """Generate a data set like one of the paper's in memory.

    Parameters
    ----------
    name : {"rcv1", "news20", "url", "web", "kdda"}
        The original (arXiv 2310.19978, table 1).
    scale : float, default=1.0
        Factor on rows and columns; the length of rows stays.
    seed : int, default=0
        Everything follows from it.
    n_rows, n_columns : int, optional
        Instead of the scaled numbers.
    n_jobs : int, default=-1
        Threads; -1 uses all cores. The result does not depend on it.

    Returns
    -------
    Dataset
        float32 values, int32 indices, sorted, without duplicates; labels -1 and 1 (int8).

    Raises
    ------
    ValueError
        For an unknown name, a scale that is not positive, or a shape that cannot be made.
    """
    shape = scaled_shape(name, scale, n_rows, n_columns)
    return replace(generate(shape, seed=seed, n_jobs=n_jobs), source=_title(name, shape, seed))


def generate(shape: Shape, *, seed: int = 0, n_jobs: int = -1) -> Dataset:
    """Generate a data set of any shape in memory.

    `seed`: everything follows from it.
    `n_jobs`: threads; -1 uses all cores. The result does not depend on it.

    Returns: as `make_synthetic` returns it.

    Raises ValueError if the shape cannot be made, or not with 32-bit indices.
    """
    if shape.n_nonzeros >= 2**31:
        raise ValueError(
            f"{shape.n_nonzeros} non-zeros do not fit 32-bit indices: give a smaller scale"
        )
    threads = effective_n_jobs(n_jobs)
    plan = draw_plan(shape, seed, threads)
    indices, values, score = fill(plan, 0, shape.n_rows, threads)
    y = label_rows(plan, settle_labels(plan, score), 0, score)
    X = csr_array(
        (values, indices, plan.indptr.astype(np.int32)), shape=(shape.n_rows, shape.n_columns)
    )
    X.has_canonical_format = True
    return Dataset(X, y, f"generated, {shape.n_rows} x {shape.n_columns}, seed {seed}")


def synthetic_source(
    name: str,
    scale: float = 1.0,
    seed: int = 0,
    *,
    n_rows: int | None = None,
    n_columns: int | None = None,
    n_jobs: int = -1,
) -> BlockSource:
    """Generate a data set like one of the paper's as a stream of blocks of rows.

    The rows are those of `make_synthetic`, bit for bit. Memory is that of the blocks asked for and
    of arrays of ``16 N + 4 D`` bytes, whatever the number of non-zeros.

    `name`, `scale`, `seed`, `n_rows`, `n_columns`, `n_jobs`: as for `make_synthetic`.

    Returns: progress is counted in rows.

    Raises ValueError for an unknown name, a scale that is not positive, or a shape that cannot be
    made.
    """
    shape = scaled_shape(name, scale, n_rows, n_columns)
    return shape_source(shape, seed=seed, n_jobs=n_jobs, title=_title(name, shape, seed))


def shape_source(
    shape: Shape, *, seed: int = 0, n_jobs: int = -1, title: str = "generated"
) -> BlockSource:
    """Generate a data set of any shape as a stream of blocks of rows.

    `shape`, `seed`, `n_jobs`: as for `generate`.
    `title`: the source's name.

    Returns: with the rows that `generate` makes.
    """
    threads = effective_n_jobs(n_jobs)

    # Drawn now, so that whoever plans the memory of the blocks sees these arrays.
    plan = draw_plan(shape, seed, threads)

    @functools.cache
    def labelling(block_entries: int) -> Labelling:
        pilot = min(shape.n_rows, PILOT_ROWS)
        scores = [
            fill(plan, first, last, threads)[2]
            for first, last in _row_ranges(plan, pilot, block_entries)
        ]
        return settle_labels(plan, np.concatenate(scores))

    def blocks(memory_bytes: int, progress: Progress | None = None) -> Iterator[RowBlock]:
        # One block may still be with the caller while the next one is filled.
        block_entries = min(memory_bytes // 2, _LARGEST_BLOCK) // _BYTES_PER_ENTRY
        labels = labelling(block_entries)
        for first, last in _row_ranges(plan, shape.n_rows, block_entries):
            indices, values, score = fill(plan, first, last, threads)
            indptr = plan.indptr[first : last + 1] - plan.indptr[first]
            yield RowBlock(indptr, indices, values, label_rows(plan, labels, first, score))
            del indices, values
            if progress is not None:
                progress(last, shape.n_rows)

    return BlockSource(title, shape.n_columns, blocks, shape.n_rows)


def _row_ranges(plan: Plan, n_rows: int, block_entries: int) -> Iterator[tuple[int, int]]:
    """Cut the first rows into ranges of about that many entries, of one row at least."""
    first = 0
    while first < n_rows:
        limit = plan.indptr[first] + block_entries
        last = int(np.searchsorted(plan.indptr, limit, side="right")) - 1
        last = min(max(last, first + 1), n_rows)
        yield first, last
        first = last


def _title(name: str, shape: Shape, seed: int) -> str:
    return f"twin of {name}, {shape.n_rows} x {shape.n_columns}, seed {seed}"
