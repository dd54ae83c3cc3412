"""Encoding a table by a schema, to a store: rows per second, memory, and scikit-learn beside it.

    python -m evidence benchmarks/encoding --rows 10e6 --memory 1e9

A Parquet file of 30 columns is generated (10 of categories, 10 of numbers, 10 of words to hash),
and converted to a store by ``dplasso convert``'s path in a process of its own. Beside it, on as
many rows as `compared` says, in memory: `PublicEncoder.transform` of a data frame and
scikit-learn's ColumnTransformer with the same columns declared (OneHotEncoder, KBinsDiscretizer,
FeatureHasher). Processor time is given too, because a busy machine has none to spare.
"""

import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from evidence.benchmarks.store import AnonymousPeak
from evidence.cells import in_own_process
from evidence.timing import clocks, interleave

TITLE = "Encoding a table by a schema"
QUICK = {"rows": 2e5, "compared": 5e4, "memory": 3e8, "repeats": 1}
_PIECE = 1 << 18
_CATEGORIES, _BINS, _BITS = 20, 16, 16


def schema() -> Any:
    """Return the schema: 10 columns of each kind."""
    from dplasso.encoding.hashed import Hashed
    from dplasso.encoding.parts import Bins, Categories
    from dplasso.encoding.schema import Schema

    words = tuple(f"c{k}" for k in range(_CATEGORIES))
    parts = [Categories(f"category{i}", words) for i in range(10)]
    edges = tuple(np.linspace(-4.0, 4.0, _BINS + 1).tolist())
    parts += [Bins(f"number{i}", edges) for i in range(10)]
    return Schema([*parts, *(Hashed(f"word{i}", _BITS) for i in range(10))], "label")


def piece(number: int, n_rows: int) -> dict[str, Any]:
    """Return columns of a piece of the table; one value in 100 is missing."""
    rng = np.random.default_rng(number)
    distinct = np.array([f"w{k}" for k in range(5000)], dtype=object)
    names = np.array([f"c{k}" for k in range(_CATEGORIES)], dtype=object)
    columns: dict[str, Any] = {}
    for i in range(10):
        columns[f"category{i}"] = names[rng.integers(0, _CATEGORIES, n_rows)]
        columns[f"number{i}"] = rng.normal(size=n_rows)
        columns[f"word{i}"] = distinct[(5000 * rng.random(n_rows) ** 3).astype(int)]
    for values in columns.values():
        values[rng.random(n_rows) < 0.01] = np.nan if values.dtype == float else None
    return columns | {"label": rng.integers(0, 2, n_rows)}


def write_table(path: Path, n_rows: int) -> None:
    """Write the Parquet file, a piece at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Pieces repeat after a while: making them takes longer than encoding them.
    made = [pa.table(piece(k, _PIECE)) for k in range(min(4, -(-n_rows // _PIECE)))]
    with pq.ParquetWriter(path, made[0].schema) as writer:
        for k, first in enumerate(range(0, n_rows, _PIECE)):
            writer.write_table(made[k % len(made)].slice(0, n_rows - first))


def convert(path: Path, target: Path, memory: float) -> dict[str, Any]:
    """Encode alone, then convert, in this process."""
    from dplasso.data.store import write_blocks
    from dplasso.encoding.data_files import encode_files
    from dplasso.encoding.origin import Origin

    source = encode_files(path, schema())
    n_rows, used = 0, time.process_time()
    for block in source.blocks(int(memory) // 4):
        n_rows += block.labels.size
    encoding = time.process_time() - used
    peak = AnonymousPeak()
    began, used = time.perf_counter(), time.process_time()
    store = write_blocks(source, target, memory=int(memory), origin=Origin(schema()).to_json())
    spent = time.perf_counter() - began
    return {
        "rows": n_rows,
        "nnz": store.nnz,
        "file": path.stat().st_size,
        "bytes": sum(file.stat().st_size for file in target.iterdir()),
        "encoding_processor_seconds": encoding,
        "seconds": spent,
        "processor_seconds": time.process_time() - used,
        "anonymous_peak": peak.stop(),
    }


def compare(n_rows: int, repeats: int) -> dict[str, float]:
    """Return rows per second of processor time of both, in memory."""
    import pandas as pd

    from dplasso import PublicEncoder

    frame = pd.DataFrame(piece(0, n_rows))
    ours, theirs = PublicEncoder(schema()), transformer().fit(frame)
    runs = {
        "PublicEncoder": partial(ours.transform, frame),
        "ColumnTransformer": partial(theirs.transform, frame),
    }
    timed = interleave({name: partial(clocks, work) for name, work in runs.items()}, repeats)
    return {name: n_rows / median(used for _, used in times) for name, times in timed.items()}


def transformer() -> Any:
    """Return scikit-learn's way to the same columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder

    words = [f"c{k}" for k in range(_CATEGORIES)]
    one_hot = OneHotEncoder(categories=[words] * 10, handle_unknown="ignore", dtype=np.float32)
    bins = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=0.0),
        KBinsDiscretizer(_BINS, strategy="uniform", subsample=None, dtype=np.float32),
    )
    hasher = FeatureHasher(1 << _BITS, input_type="string", dtype=np.float32)

    def hashed(column: Any) -> Any:
        name = column.columns[0]
        return hasher.transform([f"{name}={word}"] for word in column[name])

    hashing = [
        (f"word{i}", FunctionTransformer(hashed, accept_sparse=True), [f"word{i}"])
        for i in range(10)
    ]
    return ColumnTransformer(
        [
            ("categories", one_hot, [f"category{i}" for i in range(10)]),
            ("numbers", bins, [f"number{i}" for i in range(10)]),
            *hashing,
        ],
        sparse_threshold=1.0,
    )


def measure(
    *,
    rows: float = 10e6,
    compared: float = 2e5,
    memory: float = 1e9,
    repeats: int = 3,
    directory: Path | None = None,
) -> dict[str, Any]:
    """Convert once, and compare in memory."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, int(rows))
        work = partial(convert, path, Path(folder) / "out.store", memory)
        found, _ = in_own_process(work)
    if "failure" in found:
        return found
    return found | {
        "memory": memory,
        "compared": int(compared),
        "rates": compare(int(compared), repeats),
    }


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the rates, in words."""
    (found,) = results
    kinds = ("seconds", "processor_seconds", "encoding_processor_seconds")
    rate, used, encoding = (found["rows"] / found[name] for name in kinds)
    ours, theirs = (found["rates"][name] for name in ("PublicEncoder", "ColumnTransformer"))
    return [
        f"Parquet of {found['rows']:,} rows x 30 columns, {found['file'] / 1e6:.0f} MB, to a store "
        f"of {found['bytes'] / 1e9:.2f} GB: {found['seconds']:.1f} s, {rate:,.0f} rows a second, "
        f"{used:,.0f} a second of processor time (reading and encoding alone: {encoding:,.0f}); "
        "anonymous memory at most "
        f"{found['anonymous_peak'] / 1e6:.0f} MB, {found['anonymous_peak'] / found['memory']:.2f} "
        "of --memory",
        f"in memory, {found['compared']:,} rows, {ours:,.0f} rows a second of processor time, "
        f"scikit-learn's ColumnTransformer {theirs:,.0f}; ratio {ours / theirs:.1f}",
    ]
