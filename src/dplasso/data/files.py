"""One way in for every data file of numbered columns: the name says which reader to take."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.data.blocks import BlockSource, gather
from dplasso.data.formats import Layout, row_format
from dplasso.data.label_map import check_label_map
from dplasso.data.source_files import Paths, source_files
from dplasso.data.streams import Progress


@dataclass(frozen=True)
class Dataset:
    """Records and their labels.

    `X`: a sorted csr_array without duplicates, or a `StoreMatrix`.
    `people`: a number for the person of each row, where that was asked for.
    """

    X: Any
    y: NDArray[Any]
    source: str
    people: NDArray[np.int64] | None = None


def block_source(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    labels_path: str | Path | None = None,
    label_map: Mapping[str, float] | None = None,
) -> BlockSource:
    """Open data files as a stream of row blocks: svmlight text or scipy's sparse .npz.

    `paths`: one file, or several that make one data set, in this order; a name with ``*``, ``?`` or
    ``[`` that is no file is a pattern.
    `n_features`: columns. Default: the largest column in svmlight text, the largest stored shape in
    .npz. A column beyond it is an error.
    `zero_based`: whether svmlight indices count columns from 0.
    `labels_path`: for a single .npz, a .npy file of labels.
    `label_map`: what the labels mean, such as ``{"neg": 0, "pos": 1}``; others are errors.

    What is wrong inside the files is raised, with its place, while the blocks are read.
    """
    files = source_files(paths)
    meaning = None if label_map is None else check_label_map(label_map)
    labels = None if labels_path is None else Path(labels_path)
    layout = Layout(n_features, zero_based, labels, meaning)
    source: BlockSource = row_format(files).reader.row_source(files, layout)
    return source


def read_data(paths: Paths, *, progress: Progress | None = None, **options: Any) -> Dataset:
    """Read data files into memory; `options` are those of `block_source`."""
    source = block_source(paths, **options)
    X, y, _ = gather(source, progress)
    return Dataset(X, y, source.name)
