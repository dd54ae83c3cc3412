"""Small matrices written to stores."""

import numpy as np
import scipy.sparse as sp

from dplasso.data.blocks import BlockSource, RowBlock
from dplasso.data.store import write_store


def store_of_matrix(X, y, path, **options):
    """Write a matrix of float32 or float64 to a store, in two blocks of records."""
    csr = sp.csr_array(X)
    csr.sort_indices()
    y = np.asarray(y)

    def blocks(_memory, _progress=None):
        for first, last in ((0, csr.shape[0] // 2), (csr.shape[0] // 2, csr.shape[0])):
            if first < last:
                part = slice(csr.indptr[first], csr.indptr[last])
                yield RowBlock(
                    (csr.indptr[first : last + 1] - csr.indptr[first]).astype(np.int64),
                    csr.indices[part].astype(np.int32),
                    csr.data[part],
                    y[first:last],
                )

    source = BlockSource("a matrix", csr.shape[1], blocks, None)
    return write_store(source, path, memory=2**27, **options)
