"""Latent directions of public rows without labels: which columns go together.

A geometry has the inverse document frequency of each column, and the leading right singular vectors
of the weighted public rows. Everything in it is public.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dplasso.errors import DataError, ModelFileError
from dplasso.files.archive import ArchiveKind, array_of, read_archive, write_archive
from dplasso.matrix.compressed import Compressed, compress, without_duplicates, working_dtype
from dplasso.matrix.scaling import Mix
from dplasso.matrix.unit_rows import row_factors
from dplasso.runtime.compilation import kernel
from dplasso.runtime.progress import Progress
from dplasso.runtime.threads import ONE_THREAD, Threads, even_parts

# The most directions, and the fewest that a fit uses if there are enough.
MOST_DIRECTIONS, FEWEST_DIRECTIONS = 300, 10
# Leading directions tell whether records resemble the public rows. A record lies along them if its
# energy in them is at least this part of the mean of the public rows.
LEADING, ALONG = 30, 0.5
# The most rows (drawn at random) and columns (of the largest energy) that directions are learnt
# from. More of them change little and take long.
_MOST_ROWS, _MOST_COLUMNS = 15_000, 100_000
_FEWEST_ROWS = 20
# This part of the rows measures the energy of new rows in the directions of the others.
_HELD_OUT = 0.2
# Extra directions and power iterations of the randomised decomposition.
_OVERSAMPLED, _ITERATIONS = 10, 2
# Progress steps of both decompositions.
_STEPS = 2 * (1 + _ITERATIONS)
# An eigenvalue is averaged over this part of the directions before it.
_WINDOW = 0.2
_SHOWN = 16
_ARRAYS = {"columns": "<i8", "directions": "<f4", "energies": "<f8", "column_energies": "<f4"}
_OLDER = "learn it again from the public rows"
_KIND = ArchiveKind("geometry", "dplasso-geometry", 1, ModelFileError, _OLDER)


@dataclass(frozen=True)
class Geometry:
    """Latent directions of public rows, for the parameter `public_rows` of the estimators.

    Parameters
    ----------
    n_features : int
        Number of columns D of the rows.
    n_rows : int
        Number of public rows.
    columns : ndarray of int64, shape (p,)
        Columns that the directions have weights for, ascending.
    directions : ndarray of float32, shape (p, k)
        The latent row of a row x is ``x[columns] @ directions / |x|``.
    energies : ndarray of float64, shape (k,)
        Mean squares of the latent rows of public rows that did not make the directions.
    column_energies : ndarray of float32, shape (p,)
        Mean squares of the columns of public unit rows.
    along : float
        Part of these public rows that lie along the leading directions.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from dplasso import Geometry
    >>> rows = random_array((100, 50), density=0.2, format="csr", rng=0)
    >>> Geometry.learn(rows).n_rows
    100
    """

    n_features: int
    n_rows: int
    columns: NDArray[np.int64] = field(repr=False)
    directions: NDArray[np.float32] = field(repr=False)
    energies: NDArray[np.float64] = field(repr=False)
    column_energies: NDArray[np.float32] = field(repr=False)
    along: float

    def __post_init__(self) -> None:
        columns, (n_columns, count) = self.columns, self.directions.shape
        sizes = self.energies.shape, self.column_energies.shape
        if not (columns.size == n_columns > 0 and count > 0 and sizes == ((count,), columns.shape)):
            raise ValueError("columns, directions and energies of a geometry do not fit together")
        if not (columns[0] >= 0 and columns[-1] < self.n_features and (np.diff(columns) > 0).all()):
            raise ValueError(f"the columns of a geometry are not some of {self.n_features:,}")
        numbers = self.directions, self.energies, self.column_energies
        if not all(np.isfinite(array).all() for array in numbers):
            raise ValueError("a geometry has NaN or infinity")
        if not 0.0 < self.along <= 1.0:
            raise ValueError("a geometry needs a part of rows along its directions, 0 to 1")

    @classmethod
    def learn(cls, rows: Any, *, random_state: int = 0, progress: Progress | None = None) -> Self:
        """Learn a geometry from public rows.

        Parameters
        ----------
        rows : sparse or dense matrix, shape (N, D)
            Public rows, encoded as the private rows are. No labels are needed.
        random_state : int, default=0
            Seed of the randomised decomposition.
        progress : callable, default=None
            Called with the steps done and their total.

        Returns
        -------
        Geometry
            The same for the same rows and seed on the same machine.

        Raises
        ------
        DataError
            For NaN or infinity, fewer than 20 rows, or rows that have no columns in common.
        """
        public = _canonical(rows)
        if public.shape[0] < _FEWEST_ROWS:
            raise DataError(
                f"`public_rows` has {public.shape[0]:,} rows, and directions need at least "
                f"{_FEWEST_ROWS}",
                advice="give more rows, or leave `public_rows` out",
            )
        rng = np.random.default_rng(random_state)
        chosen = rng.permutation(public.shape[0])[:_MOST_ROWS]
        held_out = int(_HELD_OUT * chosen.size)
        done = count(1)

        def step() -> None:
            if progress is not None:
                progress(next(done), _STEPS)

        columns, tried = _directions(public[chosen[held_out:]], rng, step)
        squares = np.square(public[chosen[:held_out]][:, columns] @ tried)
        energies, leading = np.mean(squares, axis=0), squares[:, :LEADING].sum(axis=1)
        columns, directions = _directions(public[chosen], rng, step)
        n_directions = min(energies.size, directions.shape[1])
        sums = np.bincount(public.indices, weights=public.data**2, minlength=public.shape[1])
        return cls(
            n_features=int(public.shape[1]),
            n_rows=int(public.shape[0]),
            columns=columns,
            directions=np.ascontiguousarray(directions[:, :n_directions], dtype=np.float32),
            energies=energies[:n_directions].astype(np.float64),
            column_energies=(sums[columns] / public.shape[0]).astype(np.float32),
            along=float(np.mean(leading >= ALONG * leading.mean())),
        )

    @property
    def n_directions(self) -> int:
        """Number of latent directions k."""
        return int(self.energies.size)

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that change with any of its numbers."""
        parts = (np.ascontiguousarray(getattr(self, k), dtype=v) for k, v in _ARRAYS.items())
        begun = repr((self.n_features, self.n_rows, self.along, self.directions.shape)).encode()
        return sha256(b"".join([begun, *(part.tobytes() for part in parts)])).hexdigest()

    @property
    def description(self) -> str:
        """What it is, for the statement."""
        return f"{self.n_rows:,} public rows without labels (digest {self.digest[:_SHOWN]})"

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Root mean squares of all columns in public unit rows, shape (D,); others as the least."""
        own = np.sqrt(self.column_energies.astype(np.float64))
        lengths = np.full(self.n_features, own.min())
        lengths[self.columns] = own
        return lengths

    def rms(self, count: int) -> float:
        """Return the length of latent rows of `count` directions, in root mean square."""
        return math.sqrt(max(float(self.energies[:count].sum()), 1e-30))

    def eigenvalue(self, count: int) -> float:
        """Return the part of the energy of `count` directions that the last of them has."""
        window = max(1, int(_WINDOW * count))
        return float(self.energies[count - window : count].mean()) / self.rms(count) ** 2

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the geometry to a file, which `load` and the parameter `public_rows` read.

        Parameters
        ----------
        path : path
            Replaced at once when everything is written, never left half-written.
        """
        header = {key: getattr(self, key) for key in ("n_features", "n_rows", "along")}
        arrays = {k: getattr(self, k).ravel().astype(v) for k, v in _ARRAYS.items()}
        write_archive(path, _KIND, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Geometry":
        """Read a geometry that `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Geometry
            With the digest that it had.

        Raises
        ------
        ModelFileError
            If the file is damaged, foreign or of another version.
        """

        def parse(header: dict[str, Any], members: dict[str, bytes]) -> Geometry:
            parts = {name: array_of(members, name, kind) for name, kind in _ARRAYS.items()}
            shape = parts["columns"].size, parts["energies"].size
            parts["directions"] = parts["directions"].reshape(shape)
            counts = int(header["n_features"]), int(header["n_rows"])
            return cls(*counts, **parts, along=float(header["along"]))  # type: ignore[arg-type]

        return read_archive(path, _KIND, parse)


def _canonical(rows: Any) -> csr_array:
    """Return rows of unit length in double precision, without stored zeros."""
    matrix = without_duplicates(rows)
    matrix = csr_array(matrix if hasattr(matrix, "tocsr") else np.asarray(matrix, dtype=np.float64))
    # A copy, which may be changed.
    unit: csr_array = matrix.astype(working_dtype(matrix))
    if not np.isfinite(unit.data).all():
        raise DataError("`public_rows` has NaN or infinity")
    factors = row_factors(compress(unit)[0], 0.0, None, ONE_THREAD)
    unit.data = unit.data * np.repeat(factors, np.diff(unit.indptr))
    unit.eliminate_zeros()
    return unit


def _directions(
    rows: csr_array, rng: np.random.Generator, step: Callable[[], None]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return columns, and the matrix that maps unit rows in these columns to latent rows."""
    n_rows, n_features = rows.shape
    seen = np.bincount(rows.indices, minlength=n_features)
    idf = np.log((1.0 + n_rows) / (1.0 + seen)) + 1.0
    weighted = rows.copy()
    weighted.data *= idf[rows.indices]
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1))).ravel()
    weighted.data /= np.repeat(np.where(lengths > 0.0, lengths, 1.0), np.diff(rows.indptr))
    columns = np.flatnonzero(seen > 1)
    if columns.size > _MOST_COLUMNS:
        energy = np.bincount(rows.indices, weights=weighted.data**2, minlength=n_features)
        largest = np.argsort(-energy[columns], kind="stable")[:_MOST_COLUMNS]
        columns = np.sort(columns[largest])
    if columns.size < 2:
        raise DataError(
            "`public_rows` has no two columns that occur in two rows each",
            advice="give more rows, or leave `public_rows` out",
        )
    vectors = _singular_vectors(weighted[:, columns].astype(np.float32), rng, step)
    return columns.astype(np.int64), vectors * idf[columns, np.newaxis]


def _singular_vectors(
    rows: csr_array, rng: np.random.Generator, step: Callable[[], None]
) -> NDArray[np.float64]:
    """Return the leading right singular vectors of rows without their mean direction, (p, k).

    Halko, Martinsson, Tropp: Finding structure with randomness (2011), algorithm 4.4.
    """
    mean = np.asarray(rows.mean(axis=0), dtype=np.float32).ravel()
    mean /= max(np.linalg.norm(mean), np.float32(1e-30))
    along, columns = rows @ mean, rows.T.tocsr()

    def times(right: Any) -> Any:
        return rows @ right - np.outer(along, mean @ right)

    def transposed(left: Any) -> Any:
        product = columns @ left
        return product - np.outer(mean, mean @ product)

    count = min(MOST_DIRECTIONS, min(rows.shape) - 1)
    size = min(count + _OVERSAMPLED, *rows.shape)
    basis = np.linalg.qr(rng.standard_normal((rows.shape[0], size)).astype(np.float32))[0]
    for _ in range(1 + _ITERATIONS):
        basis = np.linalg.qr(times(transposed(basis)))[0]
        step()
    right = transposed(basis).astype(np.float64)
    squares, turned = np.linalg.eigh(right.T @ right)
    order = np.argsort(-squares)[:count]
    order = order[squares[order] > 1e-10 * max(float(squares.max()), 1e-30)]
    return np.asarray(right @ (turned[:, order] / np.sqrt(squares[order])))


def _factors(geometry: Geometry, mix: Mix) -> tuple[float, float]:
    """Return the factors of the entries of unit rows and of latent rows."""
    own, latent = math.sqrt(1.0 - mix.part), math.sqrt(mix.part)
    return own, latent / geometry.rms(mix.n_directions)


def mixed_rows(rows: Compressed, geometry: Geometry, mix: Mix, threads: Threads) -> Compressed:
    """Return rows with k latent entries after their D own; only latent ones if `part` is 1."""
    own, latent = _factors(geometry, mix)
    n_rows, n_columns, count = rows.indptr.size - 1, geometry.n_features, mix.n_directions
    keeps = own > 0.0
    first = n_columns if keeps else 0
    place = np.full(n_columns, -1, dtype=np.int64)
    place[geometry.columns] = np.arange(geometry.columns.size)
    lengths = count + np.diff(rows.indptr) * keeps
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    kind = np.int32 if first + count < 2**31 else np.int64
    mixed = Compressed(
        indptr,
        np.empty(int(indptr[-1]), dtype=kind),
        np.empty(int(indptr[-1]), dtype=np.float32),
        0.0,
    )
    factor = row_factors(rows, 0.0, None, threads)
    directions = np.ascontiguousarray(geometry.directions[:, :count])
    edges = even_parts(rows.indptr, threads.count)

    def part(t: int) -> None:
        some = edges[t], edges[t + 1]
        _mix_rows(rows, factor, place, directions, own, latent, first, *some, mixed)

    if n_rows:
        threads.run(part)
    return mixed


@kernel
def _mix_rows(rows, factor, place, directions, own, latent, first, begin_row, end_row, mixed):
    values, count = rows.values, directions.shape[1]
    constant = np.float64(rows.constant)
    sums = np.empty(count)
    for i in range(begin_row, end_row):
        sums[:] = 0.0
        q = np.uint64(mixed.indptr[i])
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            value = (np.float64(values[p]) if values.size else constant) * factor[i]
            j = rows.indices[p]
            if first:
                mixed.indices[q] = j
                mixed.values[q] = np.float32(own * value)
                q += np.uint64(1)
            if place[np.uint64(j)] >= 0:
                direction = directions[np.uint64(place[np.uint64(j)])]
                for k in range(np.uint64(count)):
                    sums[k] += value * np.float64(direction[k])
        for k in range(np.uint64(count)):
            mixed.indices[q] = first + k
            mixed.values[q] = np.float32(latent * sums[k])
            q += np.uint64(1)


def unmixed(
    weights: NDArray[np.float64], geometry: Geometry, mix: Mix
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of the D original columns for weights of mixed rows, shape (D, K).

    Also their standard deviations, shape (D,), if those of all mixed weights are 1.
    """
    own, latent = _factors(geometry, mix)
    n_columns, columns = geometry.n_features, geometry.columns
    directions = geometry.directions[:, : mix.n_directions]
    original = own * weights[:n_columns]
    original[columns] += latent * (directions @ weights[n_columns:].astype(np.float32))
    squares = np.full(n_columns, own * own)
    squares[columns] += latent * latent * np.einsum("jk,jk->j", directions, directions)
    return original, np.sqrt(squares)
