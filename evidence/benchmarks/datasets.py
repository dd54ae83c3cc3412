"""The data sets of the configuration: generated, packaged, or read from a folder of files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dplasso.data.files import Dataset, read_data
from dplasso.datasets.adult import crosses, load_adult
from dplasso.datasets.synthetic.generate import make_synthetic
from evidence.benchmarks.config import DataSpec


class UnavailableError(RuntimeError):
    """Something is not there on this machine; the report says so in the message's words."""


@dataclass(frozen=True)
class Context:
    """What all comparisons share.

    Attributes
    ----------
    folder : Path or None
        Where files are, as given by ``--data``.
    n_jobs : int
        Threads of whatever takes a number of threads.
    """

    folder: Path | None
    n_jobs: int


def load(spec: DataSpec, context: Context) -> Dataset:
    """Make or read a data set; labels become 0 and 1 (int8).

    Raises
    ------
    UnavailableError
        If it is a file, and not there.
    """
    if spec.twin is not None:
        made = make_synthetic(
            spec.twin,
            scale=spec.scale,
            seed=spec.seed,
            n_rows=spec.n_rows,
            n_columns=spec.n_columns,
            n_jobs=context.n_jobs,
        )
    elif spec.adult:
        made = load_adult("train")
        if spec.adult > 1:
            made = replace(made, X=crosses(made.X, order=spec.adult))
        made = replace(made, source=f"UCI Adult, order {spec.adult}")
    elif spec.file is None:
        raise UnavailableError(f"{spec.name} has neither twin, adult nor file")
    elif context.folder is None:
        raise UnavailableError(f"{spec.file} is read only with --data FOLDER")
    elif not (context.folder / spec.file).exists():
        raise UnavailableError(f"{spec.file} is not in the folder given by --data")
    else:
        made = replace(read_data(context.folder / spec.file), source=spec.file)
    if spec.binary:
        made = replace(made, X=_ones(made.X), source=f"{made.source}, values set to 1")
    return replace(made, y=(np.asarray(made.y) > 0).astype(np.int8))


def _ones(X: Any) -> Any:
    binary = X.copy()
    binary.data[:] = 1
    return binary


def describe(data: Dataset) -> dict[str, Any]:
    """Give the shape of a data set, JSON-safe."""
    return {
        "source": data.source,
        "rows": int(data.X.shape[0]),
        "columns": int(data.X.shape[1]),
        "nonzeros": int(data.X.nnz),
    }


def sizes(data: dict[str, Any]) -> str:
    """Write a shape as `describe` gives it for a table."""
    return f"{data['rows']:,} x {data['columns']:,}, {data['nonzeros']:,}"
