"""`coef_` of a model with few weights: sparse, and safe with numpy's functions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

# Columns beyond this are too many to write out.
MOST_DENSE = 10**8


def check_writable_out(n_columns: int) -> None:
    """Refuse to write out a zero for every column where there are too many.

    Raises
    ------
    ValueError
        If there are more than 10^8.
    """
    if n_columns > MOST_DENSE:
        raise ValueError(
            f"the weights of {n_columns:,} columns do not fit an array; model.weights() lists "
            "those that are not zero, and coef_.indices and coef_.data hold them"
        )


def _dense(self: Any, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """Return the array that numpy's functions work on; numpy takes a sparse array for one object.

    So ``np.argsort(coef_[0])``, which would be ``[0]``, orders all columns, and is refused where
    there are too many.
    """
    if copy is False:
        raise ValueError("a sparse array has no dense memory to share")
    check_writable_out(self.shape[-1])
    dense: NDArray[Any] = self.toarray()
    return dense if dtype is None else dense.astype(np.dtype(dtype), copy=False)


class SparseRow(coo_array):
    """One row of `SparseWeights`."""

    __array__ = _dense


class SparseWeights(csr_array):
    """A csr_array that numpy's functions read as the matrix it is."""

    __array__ = _dense

    def __getitem__(self, key: Any) -> Any:
        """Return an entry or a part; a row stays readable for numpy."""
        part = super().__getitem__(key)
        return SparseRow(part) if isinstance(part, coo_array) else part
