"""Records whose true weights are known: columns drawn by Zipf's law, labels by the logistic law.

A row is 30 draws of a column, equal ones merged, all entries 1; the column of rank r is drawn
proportionally to r ** -1.05. A record is positive with probability sigma(margin - b), where b
makes the stated share of the records positive. Blocks of rows are drawn each from a stream of its
own, so that memory is that of the result.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import expit

DRAWS, EXPONENT, SPREAD = 30, 1.05, 0.7
# At the end, in addition to the rows asked for.
TEST_ROWS = 50_000
_BLOCK = 2**17
# Rows from which on there are so many columns.
_COLUMNS = {0: 20_000, 100_000: 70_000, 300_000: 200_000, 10_000_000: 1_000_000}
# In a sparse truth: the share of all columns with a weight, of the most frequent ones, and how
# many these are; and the factor on weights.
_SHARE, _SHARE_FIRST, _FIRST, _FACTOR = 0.01, 0.2, 200, 4.0


@dataclass(frozen=True)
class Truth:
    """How labels come about: which columns have weights, and the share of positive records."""

    title: str
    sparse: bool
    positive: float


TRUTHS = {
    "zipf-dense": Truth("weights on all columns, balanced", False, 0.5),
    "zipf-sparse": Truth("weights on 1 % of the columns, balanced", True, 0.5),
    "zipf-dense-rare": Truth("weights on all columns, 5 % positive", False, 0.05),
    "zipf-sparse-rare": Truth("weights on 1 % of the columns, 5 % positive", True, 0.05),
}


@dataclass(frozen=True)
class Known:
    """A data set to be drawn; everything follows from these."""

    truth: Truth
    n_rows: int
    seed: int

    @property
    def n_columns(self) -> int:
        """The number of columns, which grows with that of the rows."""
        return _COLUMNS[max(rows for rows in _COLUMNS if rows <= self.n_rows)]

    def margins(self, X: csr_array) -> NDArray[np.float64]:
        """Return the log-odds of rows, by the true weights."""
        return np.asarray(X @ _weights(self)) - _offset(self)

    def draw(self) -> tuple[csr_array, NDArray[np.int8]]:
        """Draw all records, those for testing at the end: float32, int32."""
        n_rows = self.n_rows + TEST_ROWS
        indices = np.empty(n_rows * DRAWS, np.int32)
        indptr = np.zeros(n_rows + 1, np.int64)
        y = np.empty(n_rows, np.int8)
        for block, first in enumerate(range(0, n_rows, _BLOCK)):
            last = min(first + _BLOCK, n_rows)
            rng, part = _block(self, block, last - first)
            begin = indptr[first]
            indptr[first + 1 : last + 1] = begin + part.indptr[1:]
            indices[begin : begin + part.nnz] = part.indices
            y[first:last] = rng.random(last - first) < expit(self.margins(part))
        entries = indptr[-1]
        narrow = indptr.astype(np.int32) if entries < 2**31 else indptr
        values = np.ones(entries, np.float32)
        X = csr_array((values, indices[:entries], narrow), shape=(n_rows, self.n_columns))
        X.has_canonical_format = True
        return X, y


def known(spec: str, n_rows: str, seed: int) -> Known:
    """Read a name of `TRUTHS` and the number of rows after @; ValueError for another."""
    if not (n_rows.isascii() and n_rows.isdigit() and int(n_rows)):
        raise ValueError(f"--data {spec}: after @ stands the number of rows, as {spec}@10000")
    return Known(TRUTHS[spec], int(n_rows), seed)


def _popularity(n_columns: int) -> NDArray[np.float64]:
    return np.asarray(np.cumsum(np.arange(1, n_columns + 1, dtype=np.float64) ** -EXPONENT))


@functools.lru_cache(1)
def _weights(data: Known) -> NDArray[np.float64]:
    rng = np.random.default_rng([data.seed, 0])
    weights = rng.normal(0.0, SPREAD, data.n_columns)
    if data.truth.sparse:
        held = rng.random(data.n_columns) < _SHARE
        held[:_FIRST] = rng.random(_FIRST) < _SHARE_FIRST
        weights = np.where(held, _FACTOR * weights, 0.0)
    return weights


@functools.lru_cache(1)
def _offset(data: Known) -> float:
    """Return b, by the first block of rows."""
    _, rows = _block(data, 0, min(_BLOCK, data.n_rows + TEST_ROWS))
    margins = rows @ _weights(data)

    def excess(b: float) -> float:
        return float(expit(margins - b).mean()) - data.truth.positive

    reach = float(np.abs(margins).max()) + 20.0
    return float(brentq(excess, -reach, reach, xtol=1e-6))


def _block(data: Known, block: int, n_rows: int) -> tuple[np.random.Generator, csr_array]:
    """Draw the columns of a block of rows; return the generator for the labels, too."""
    rng = np.random.default_rng([data.seed, block + 1])
    table = _popularity(data.n_columns)
    drawn = np.searchsorted(table, rng.random((n_rows, DRAWS)) * table[-1]).astype(np.int32)
    drawn.sort(axis=1)
    first = np.ones(drawn.shape, bool)
    first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    indptr = np.concatenate(([0], np.cumsum(first.sum(axis=1))))
    indices = drawn[first]
    values = np.ones(indices.size, np.float32)
    return rng, csr_array((values, indices, indptr), shape=(n_rows, data.n_columns))
