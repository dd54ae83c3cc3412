"""Small matrices written to stores."""

from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store


def store_of_matrix(X, y, path):
    """Write a matrix of float32 or float64 and its labels to a store."""
    return write_store(matrix_source(X, y), path, memory=2**27)
