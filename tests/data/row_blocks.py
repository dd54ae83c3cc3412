"""Row blocks put together, and the checks that every source's blocks must pass."""

import numpy as np
from scipy.sparse import csr_array


def gather(blocks, n_features=None):
    """Check and join blocks.

    Returns a CSR array, the labels and the number of blocks.
    """
    starts, indices, values, labels = [np.zeros(1, np.int64)], [], [], []
    n_blocks = 0
    for block in blocks:
        assert block.indptr.dtype == np.int64
        assert block.indptr[0] == 0
        assert block.indptr[-1] == block.indices.size == block.values.size
        assert block.indptr.size == block.labels.size + 1 > 1
        assert block.indices.dtype in (np.int32, np.int64)
        assert block.values.dtype in (np.float32, np.float64)
        rows = np.repeat(np.arange(block.labels.size), np.diff(block.indptr))
        assert np.all((np.diff(block.indices) > 0) | (np.diff(rows) > 0))
        assert np.all(block.indices >= 0)
        starts.append(block.indptr[1:] + starts[-1][-1])
        indices.append(block.indices)
        values.append(block.values)
        labels.append(block.labels)
        n_blocks += 1
    columns = np.concatenate(indices)
    if n_features is None:
        n_features = int(columns.max()) + 1
    assert columns.size == 0 or columns.max() < n_features
    X = csr_array(
        (np.concatenate(values), columns, np.concatenate(starts)),
        shape=(sum(part.size for part in labels), n_features),
    )
    return X, np.concatenate(labels), n_blocks
