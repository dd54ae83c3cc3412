"""Records in files of every format, and row blocks put together and checked."""

import gzip
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from scipy.sparse import csr_array

from dplasso.data.blocks import Piece, Rows, files_source
from dplasso.data.formats import block_source, is_table
from dplasso.data.source_files import source_files
from dplasso.data.table_batches import DETECTED, TableReader
from dplasso.data.table_batches import Dialect as Dialect
from dplasso.encoding.data_files import encode_files

# Every format, each with the module that reads it; the first hold numbered columns.
NUMBERED = (".svm", ".svm.gz", ".npz")
SUFFIXES = (*NUMBERED, ".parquet", ".arrow")


def write_table(path, table, **options):
    """Write a table in the kind of file that the name says."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, **options)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=options.get("row_group_size"))
    return path


def npz_parts(X, **changes):
    """Return the arrays of a CSR matrix as scipy stores them; None leaves one out."""
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array(X.shape),
        "data": X.data,
        "indices": X.indices,
        "indptr": X.indptr,
        "y": np.arange(X.shape[0]),
    }
    return {name: array for name, array in (arrays | changes).items() if array is not None}


def write_npz(path, X, y):
    """Write a CSR matrix and its labels to one .npz."""
    np.savez_compressed(path, **npz_parts(X, y=np.asarray(y)))


def write_rows(path, X, y, **options):
    """Write a CSR matrix and its labels in the kind of file that the name says."""
    if path.suffix == ".npz":
        write_npz(path, X, y)
    elif is_table(path):
        lists = {
            name: [values[a:b].tolist() for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
            for name, values in (("x", X.indices), ("v", X.data))
        }
        kinds = pa.list_(pa.int64()), pa.list_(pa.float32())
        columns = {
            name: pa.array(lists[name], kind) for name, kind in zip("xv", kinds, strict=True)
        }
        write_table(path, pa.table(columns | {"y": y}), **options)
    else:
        lines = []
        for i, label in enumerate(y.tolist()):
            at = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[at].tolist(), X.data[at].tolist(), strict=True)
            lines.append(" ".join([str(label), *(f"{k + 1}:{value!r}" for k, value in pairs)]))
        text = "\n".join(lines).encode() + b"\n"
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def rows_of_lists(batch):
    """Return the rows of a batch whose records are lists of column numbers and values."""
    x, v = batch.columns["x"], batch.columns["v"]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in x.to_pylist()], dtype=np.int64)))
    indices = x.flatten().to_numpy().astype(np.int32)
    return Rows(starts, indices, v.flatten().to_numpy().astype(np.float32))


def open_rows(paths, n_features=None):
    """Open what `write_rows` wrote, one file or several."""
    first = paths if not isinstance(paths, list) else paths[0]
    if is_table(first):
        files = source_files(paths)

        def read(i, memory_bytes):
            reader = TableReader(files.paths[i], DETECTED)
            for batch in reader.batches("xvy", memory_bytes):
                labels = reader.module.labels(batch, "y")
                yield Piece(rows_of_lists(batch), labels, batch.done, partial(batch.where, "y"))

        return files_source(files, n_features, read)
    return block_source(paths, n_features=n_features)


def gather(blocks, n_features=None):
    """Check and join blocks: a CSR array, the labels and the number of blocks."""
    matrices, labels = [], []
    for block in blocks:
        assert block.indptr.dtype == np.int64
        assert block.indptr[0] == 0
        assert block.indptr[-1] == block.indices.size == block.values.size
        assert block.indptr.size == block.labels.size + 1 > 1
        assert block.indices.dtype in (np.int32, np.int64)
        assert block.values.dtype in (np.float32, np.float64)
        n_columns = n_features or int(block.indices.max(initial=0)) + 1
        X = csr_array(block[2:0:-1] + block[:1], shape=(block.labels.size, n_columns))
        X.check_format(full_check=True)
        assert X.has_canonical_format
        matrices.append(X)
        labels.append(block.labels)
    n_columns = max(X.shape[1] for X in matrices)
    for X in matrices:
        X.resize((X.shape[0], n_columns))
    return csr_array(sp.vstack(matrices)), np.concatenate(labels), len(matrices)


def gather_table(path, schema, memory=1 << 20, **options):
    """Encode a table, or several, and join its blocks."""
    return gather(encode_files(path, schema, **options).blocks(memory), schema.n_features)


def check_same(X, y, expected, labels):
    """Assert that two matrices and their labels are the same bits."""
    assert X.shape == expected.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(X, name), getattr(expected, name))
    assert X.dtype == expected.dtype
    np.testing.assert_array_equal(y, labels)
