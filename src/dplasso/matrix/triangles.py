"""Symmetric matrices as the entries of a triangle, whose length is the Frobenius norm."""

import math

import numpy as np
from numpy.typing import NDArray


def triangle_size(size: int) -> int:
    """Return the number of entries of a symmetric matrix."""
    return size * (size + 1) // 2


def symmetric(triangle: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the matrix, shape (n, n), of a triangle whose outer entries are times sqrt(2)."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    matrix = np.where(np.eye(size, dtype=bool), matrix, matrix / math.sqrt(2.0))
    return matrix + np.triu(matrix, 1).T
