"""Small data, cut into partitions, and what a fit releases of them."""

import numpy as np
import scipy.sparse as sp


def records(n_rows=400, n_columns=60, seed=0):
    """Return sparse rows of numbers, some frequent columns among them, and labels they tell."""
    rng = np.random.default_rng(seed)
    density = rng.uniform(0.02, 0.7, n_columns)
    X = rng.normal(0.0, 0.8, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    y = (X[:, :5].sum(axis=1) + rng.normal(0.0, 0.5, n_rows) > 0).astype(int)
    return sp.csr_array(X), y


def cut(X, y, n_parts):
    """Cut rows at uneven places."""
    edges = np.rint(np.linspace(0, 1, n_parts + 1) ** 1.5 * X.shape[0]).astype(int)
    spans = [slice(first, last) for first, last in zip(edges, edges[1:], strict=False)]
    return [X[span] for span in spans], [y[span] for span in spans]


def released(model):
    """Return everything that a fit lets out, as bytes and plain values."""
    arrays = {name: one.tobytes() for name, one in model.model_.release.arrays().items()}
    return arrays, model.privacy_.to_dict(), model.classes_.tolist()
