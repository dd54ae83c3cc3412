"""What a generated data set looks like, and the arrays of N and D from which its rows are filled.

Rows have a log-normal length; the popularity of columns falls like a shifted power law (as words
do: constants of News20 and RCV1 fitted to real text, those of the others chosen alike) in random
order; labels come from a sparse linear model with noise. Once the plan is drawn every row can be
filled alone, so the rows are the same in one piece, in blocks and from any number of threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evidence.twins.kernel import QUANTILES, count_dense, fill_rows

_PIECES_PER_THREAD = 4
# The longest row, in mean rows.
_LONGEST_ROW = 40
# Planted weights: how many, and among how many of the most popular columns.
_N_PLANTED, _PLANTED_RANKS = 60, 2_000
# Scale of the logistic noise on the labels, in standard deviations of the planted score.
_LABEL_NOISE = 0.15
# Scores of the first rows settle the labels' noise and threshold, so that no label needs all rows.
PILOT_ROWS = 20_480


@dataclass(frozen=True)
class Shape:
    """What a generated data set looks like.

    `mean_row`: mean number of non-zeros in a row.
    `row_spread`: standard deviation of the logarithm of the row length; 0 makes all rows alike.
    `exponent`, `shift`: a column of rank r is drawn proportionally to ``(r + shift) **
    -exponent``.
    `unit_rows`: values like tf-idf, rows of norm 1; otherwise ones.
    `n_dense`: informative columns that many rows have, with real values in (0, 1]; not with
    `unit_rows`.
    `dense_presence`: shares of the rows that hold the rarest and the commonest of them.
    `positive`: share of positive labels.
    """

    n_rows: int
    n_columns: int
    mean_row: float
    row_spread: float = 0.8
    exponent: float = 0.95
    shift: float = 30.0
    unit_rows: bool = True
    n_dense: int = 0
    dense_presence: tuple[float, float] = (0.15, 0.85)
    positive: float = 0.5

    @property
    def n_nonzeros(self) -> int:
        """Expected number of non-zeros."""
        return round(self.n_rows * self.mean_row)


# Rows, columns and non-zeros as published. URL's rows of 115.6 entries leave room for 200 dense
# columns in half of the rows each.
SHAPES = {
    "rcv1": Shape(20_242, 47_236, 1_498_952 / 20_242, 0.7, 1.55, 150.0, positive=0.52),
    "news20": Shape(19_996, 1_355_191, 9_097_916 / 19_996, 0.9, 0.88, 12.0),
    "url": Shape(
        2_396_130,
        3_231_961,
        277_058_644 / 2_396_130,
        0.5,
        1.0,
        30.0,
        unit_rows=False,
        n_dense=200,
        positive=0.33,
    ),
    "web": Shape(350_000, 16_609_143, 1_304_697_446 / 350_000, 0.8, 1.1, 100.0, positive=0.61),
    "kdda": Shape(8_407_752, 20_216_830, 305_613_510 / 8_407_752, 0.4, positive=0.85),
}


def scaled_shape(name: str, scale: float, n_rows: int | None, n_columns: int | None) -> Shape:
    """Return the shape of a data set like the named one; see `make_synthetic`.

    Raises ValueError for an unknown name or a scale that is not positive.
    """
    if name not in SHAPES:
        raise ValueError(f"there is no synthetic data like {name!r}; there are {', '.join(SHAPES)}")
    if not 0 < scale < np.inf:
        raise ValueError(f"scale must be a positive number, got {scale!r}")
    full = SHAPES[name]
    return replace(
        full,
        n_rows=max(1, round(full.n_rows * scale)) if n_rows is None else n_rows,
        n_columns=max(1, round(full.n_columns * scale)) if n_columns is None else n_columns,
    )


@dataclass(frozen=True)
class Plan:
    """Everything that is drawn before the rows; see `fill_rows` for the kernel's arrays.

    `shape`: what was asked for.
    `row_seed`: where the rows' own streams start.
    `columns`, shape (D,): column number of the dense columns, then of the ranks.
    `presence`, `dense_weight`, shape (n_dense,): share of the rows that hold each dense column,
    and its planted weight.
    `planted`: planted weights of the most popular sparse columns.
    `table`: quantiles of the ranks.
    `indptr`, shape (N + 1,): where each row starts.
    `noise`, shape (N,): standard logistic noise of each row's label.
    """

    shape: Shape
    row_seed: int
    columns: NDArray[np.int32]
    presence: NDArray[np.float64]
    dense_weight: NDArray[np.float64]
    planted: NDArray[np.float64]
    table: NDArray[np.float64]
    indptr: NDArray[np.int64]
    noise: NDArray[np.float64]


def draw_plan(shape: Shape, seed: int, threads: int) -> Plan:
    """Draw the plan of a data set, in memory of about ``24 N + 8 D`` bytes.

    `seed`: everything follows from it.
    `threads`: the result does not depend on it.

    Raises ValueError if the shape cannot be made.
    """
    _check_shape(shape)
    rng = np.random.default_rng(seed)
    row_seed = int(rng.integers(2**62))
    columns = rng.permutation(np.arange(shape.n_columns, dtype=np.int32))
    presence = np.linspace(*shape.dense_presence, shape.n_dense)
    dense_weight = rng.normal(size=shape.n_dense)
    planted = _planted_weights(shape, rng)
    lengths = _row_lengths(shape, float(presence.sum()), rng)
    noise = rng.logistic(size=shape.n_rows)
    if shape.n_dense:
        _in_pieces(
            0,
            shape.n_rows,
            threads,
            lambda first, last: count_dense(row_seed, first, last, presence, lengths),
        )
    indptr = np.zeros(shape.n_rows + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    table = _rank_quantiles(shape)
    return Plan(shape, row_seed, columns, presence, dense_weight, planted, table, indptr, noise)


def fill(
    plan: Plan, first: int, last: int, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float64]]:
    """Fill rows ``first`` to ``last``.

    `first`, `last`: the first row, and the one after the last.
    `threads`: the result does not depend on it.

    Returns `indices`: columns, ascending within each row; row i starts at ``indptr[i] -
    indptr[first]``.
    `values`: likewise.
    `score`, shape (last - first,): the planted model's score of each row.
    """
    n_entries = int(plan.indptr[last] - plan.indptr[first])
    indices = np.empty(n_entries, dtype=np.int32)
    values = np.empty(n_entries, dtype=np.float32)
    score = np.empty(last - first)
    _in_pieces(
        first,
        last,
        threads,
        lambda start, stop: fill_rows(
            plan.row_seed,
            start,
            stop,
            first,
            plan.indptr,
            indices,
            values,
            score,
            plan.presence,
            plan.dense_weight,
            plan.table,
            plan.planted,
            plan.columns,
            plan.shape.shift,
            plan.shape.unit_rows,
        ),
    )
    return indices, values, score


@dataclass(frozen=True)
class Labelling:
    """How a score becomes a label: ``score + noise_scale * noise > threshold``."""

    noise_scale: float
    threshold: float


def settle_labels(plan: Plan, score: NDArray[np.float64]) -> Labelling:
    """Settle noise and threshold of the labels.

    `score`: scores of the first rows, at least ``min(N, PILOT_ROWS)`` of them.
    """
    pilot = score[:PILOT_ROWS]
    noise_scale = _LABEL_NOISE * (float(pilot.std()) or 1.0)
    noisy = pilot + noise_scale * plan.noise[: pilot.size]
    return Labelling(noise_scale, float(np.quantile(noisy, 1.0 - plan.shape.positive)))


def label_rows(
    plan: Plan, labelling: Labelling, first: int, score: NDArray[np.float64]
) -> NDArray[np.int8]:
    """Return the labels, -1 and 1, of the rows from ``first`` on, from their scores."""
    noise = plan.noise[first : first + score.size]
    positive = score + labelling.noise_scale * noise > labelling.threshold
    return np.where(positive, 1, -1).astype(np.int8)


def _check_shape(shape: Shape) -> None:
    """Refuse what cannot be made."""
    sparse_columns = shape.n_columns - shape.n_dense
    room = 0.9 * sparse_columns
    dense = shape.n_dense * sum(shape.dense_presence) / 2
    if shape.n_rows < 1 or sparse_columns < 1:
        raise ValueError(
            "a data set needs at least one row and one column that is not dense, got "
            f"{shape.n_rows} rows and {sparse_columns} such columns"
        )
    if not dense <= shape.mean_row <= dense + room:
        raise ValueError(
            f"rows of {shape.mean_row:g} entries do not fit {shape.n_columns} columns, "
            f"{shape.n_dense} of them dense: give a length from {dense:g} to {dense + room:g}"
        )
    if shape.n_columns >= 2**31:
        raise ValueError(
            f"{shape.n_columns} columns do not fit 32-bit indices: give a smaller scale"
        )


def _row_lengths(shape: Shape, dense: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the number of sparse entries of each row; log-normal, with the mean met."""
    mean = shape.mean_row - dense
    longest = min(0.9 * (shape.n_columns - shape.n_dense), _LONGEST_ROW * mean)
    drawn = rng.lognormal(0.0, shape.row_spread, shape.n_rows)
    lengths = drawn * (mean / drawn.mean())
    for _ in range(8):
        # Cutting the longest rows takes something off the mean; give it back to the others.
        np.clip(lengths, min(1.0, mean), longest, out=lengths)
        lengths *= mean / lengths.mean()
    # An entry more or less, so that the mean is met to a fraction of an entry.
    rounded: NDArray[np.int64] = np.floor(lengths + rng.random(shape.n_rows)).astype(np.int64)
    np.minimum(rounded, max(1, int(longest)), out=rounded)
    return rounded


def _rank_quantiles(shape: Shape) -> NDArray[np.float64]:
    """Tabulate the inverse of the ranks' distribution function."""
    n_ranks = shape.n_columns - shape.n_dense
    u = np.linspace(0.0, 1.0, QUANTILES + 1)
    low, high = shape.shift, n_ranks + shape.shift
    power = 1.0 - shape.exponent
    if power == 0.0:
        return np.asarray(low * (high / low) ** u - low)
    return np.asarray((low**power + u * (high**power - low**power)) ** (1.0 / power) - low)


def _planted_weights(shape: Shape, rng: np.random.Generator) -> NDArray[np.float64]:
    """Choose informative columns, popular and rare ones, and their weights."""
    n_ranks = min(_PLANTED_RANKS, shape.n_columns - shape.n_dense)
    planted = np.zeros(n_ranks)
    ranks = np.unique((n_ranks ** rng.random(_N_PLANTED)).astype(np.int64) - 1)
    # A few strong columns and many weak ones, rare columns louder: else the few popular ones would
    # be the whole model.
    strength = rng.permutation(1.0 / np.sqrt(np.arange(1, ranks.size + 1)))
    useful_slope = (1.0 + ranks / max(shape.shift, 1.0)) ** (shape.exponent / 4.0)
    planted[ranks] = rng.choice([-1.0, 1.0], ranks.size) * strength * useful_slope
    return planted


def _in_pieces(first: int, last: int, threads: int, work: Callable[[int, int], object]) -> None:
    """Run `work` on pieces of the rows, in several threads."""
    n_pieces = min(last - first, threads * _PIECES_PER_THREAD)
    edges = np.linspace(first, last, n_pieces + 1).astype(np.int64)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1].tolist(), edges[1:].tolist()))
