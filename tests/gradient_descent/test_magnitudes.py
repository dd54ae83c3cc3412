"""What is found by the magnitudes and means of columns."""

import numpy as np
import pytest

from dplasso.gradient_descent.magnitudes import (
    HIDDEN,
    N_MAGNITUDES,
    bounds_of,
    centres_of,
    clear_counts,
    scale_exponents_of,
    scales_of_sums,
    share_of,
    sizes_of,
    squares_of,
)
from dplasso.matrix.scaling import MOST_SCALE_EXPONENT, UNLIMITED
from gradient_descent.cases import LOGISTIC, PLAIN, UNIT, laid_out


def test_differences_of_huge_numbers_are_finite():
    """A model predicts from any finite record, also in a column that is centred without a limit."""
    X, scaling = np.array([[1.7e308, 1.0]]), PLAIN._replace(centres=np.array([-1e308, 0.0]))
    laid = laid_out(X, [0.0], LOGISTIC)
    rows, _ = laid._rows(scaling._replace(limits=np.full(2, UNLIMITED)))
    assert np.isfinite(rows.values).all()


def clear_of(columns, deviation, seed=0):
    """Return what is clear of noisy counts of columns, of which each has so many entries of 4^k.

    `columns`: by k.
    """
    counts = np.random.default_rng(seed).normal(0.0, deviation, (len(columns), N_MAGNITUDES))
    for own, column in zip(counts, columns, strict=True):
        for k, count in column.items():
            own[k + 16] += count
    return clear_counts(counts, deviation)


@pytest.mark.parametrize("deviation", [0.0, 1.0])
def test_columns_are_halved_to_the_size_of_the_smallest(deviation):
    columns = [{0: 90.0}, {5: 90.0}, {-3: 90.0, -4: 90.0}, {0: 90.0}, {14: 90.0}, {-16: 3.0}, {}]
    exponents = scale_exponents_of(sizes_of(clear_of(columns, deviation))).tolist()
    if deviation:
        # What is hidden by noise counts as most do: here they are 6 powers of 2 larger.
        assert exponents == [6, 16, 0, 6, 34, 6, 6]
    else:
        whole = [min(MOST_SCALE_EXPONENT, 32 + e) for e in (0, 10, -6, 0, 28, -32, 0)]
        assert exponents == whole


def test_columns_of_about_one_size_keep_their_entries():
    columns = [{k: 90.0} for k in (0, 1, 1, 2)]
    assert not scale_exponents_of(sizes_of(clear_of(columns, 1.0))).any()
    assert scale_exponents_of(sizes_of(clear_of([*columns, {4: 90.0}], 1.0))).any()
    # Few small columns say nothing of the others; few large ones become like most.
    some = [{k: 90.0} for k in (1, 1, 0)] * 3
    assert not scale_exponents_of(sizes_of(clear_of([*some, {-9: 90.0}], 1.0))).any()
    large = scale_exponents_of(sizes_of(clear_of([*some, {3: 90.0}], 1.0)))
    assert large.tolist() == [0] * 9 + [4]


def test_few_entries_say_nothing_even_without_noise():
    columns = [{0: 3e4}, {0: 3e4, 15: 20.0}, {0: 3e4, -16: 20.0}]
    sizes = sizes_of(clear_of(columns, 0.0))
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes_of(clear_of([{0: 3e4, 15: 60.0}], 0.0))[0] > sizes[0]


def test_noise_alone_rarely_finds_a_column():
    """At most 20 are expected in 1,000 releases, and more than 40 with probability 0.00002."""
    found = 0
    for seed in range(1_000):
        found += np.count_nonzero(sizes_of(clear_of([{}] * 30, 1.0, seed)) != HIDDEN)
    assert 0 < found <= 40
    # Power: what all records have is found in all of them.
    shown = [{0: 30.0}, {9: 30.0}, *[{}] * 28]
    sizes = [sizes_of(clear_of(shown, 1.0, seed)) for seed in range(100)]
    assert all(size[1] - size[0] == 18 for size in sizes)


def test_counts_are_released_where_they_can_be_read():
    """With the whole budget, the noise of 2 % has a standard deviation of 1."""
    whole = 0.02**0.5
    assert share_of(101.0, 100, whole) == 0.02
    assert share_of(50.0, 100, whole) == pytest.approx(0.08)
    assert share_of(36.0, 100, whole) is None
    # More columns are not those of a table.
    assert share_of(174.0, 10_000, whole) == 0.02
    assert share_of(100.0, 10_000, whole) is None
    assert share_of(1.0, 10_000, 0.0) == 0.02


def test_a_release_of_many_columns_needs_more_to_find_one():
    """Few columns are found by counts that noise reaches in one of thousands."""
    assert sizes_of(clear_of([{3: 5.5}] * 4, 1.0, 1)).tolist() == [7] * 4
    many = sizes_of(clear_of([*[{3: 5.5}] * 4, *[{}] * 9_996], 1.0, 1))
    assert (many == HIDDEN).sum() > 9_996


@pytest.mark.parametrize("deviation", [0.0, 1.0])
def test_columns_without_zeros_have_bounds(deviation):
    """Of 900 records with 9 entries; those of 1 to 4 alone count as 0/1."""
    columns = [{3: 200.0, 2: 95.0}, {5: 300.0}, {0: 300.0}, {0: 100.0, 1: 200.0}, {3: 150.0}]
    bounds = bounds_of(clear_of([*columns, *[{0: 300.0}] * 4], deviation), deviation, 900.0)
    assert bounds.tolist() == [4.0**4, 4.0**6, 0.0, 4.0**2, 0.0, *[0.0] * 4]


def test_no_column_of_sparse_rows_has_bounds():
    """Of 900 records with 9 of 30 entries, the fullest column has a third of all."""
    assert not bounds_of(clear_of([{2: 90.0}] * 30, 0.0), 0.0, 900.0).any()
    assert not bounds_of(clear_of([{}] * 30, 1.0), 1.0, 900.0).any()


def test_means_are_those_of_the_sums_unless_noise_hides_them():
    bounds, sizes = np.array([4.0, 0.0, 64.0, 16.0]), np.array([1, 127, 5, -3], dtype=np.int8)
    scales, length = scales_of_sums(bounds, sizes, 1.0, 100.0)
    assert scales.tolist() == [0.5, 0.0, 2.0**-5, 8.0]
    sums = np.array([30.0, 0.0, -60.0, 2.0])
    means = centres_of(sums, scales, length, 1.0, 100.0)
    assert means.tolist() == pytest.approx([0.6 * length, 0.0, -19.2 * length, 0.0])
    # Or unless they are small beside the size of the column.
    assert not centres_of(sums, scales, length / 20.0, 1.0, 100.0).any()


def test_noise_alone_rarely_moves_a_centre():
    """At most 20 are expected in 1,000 releases, and more than 40 with probability 0.00002."""
    own = scales_of_sums(np.full(20, 4.0), np.ones(20, dtype=np.int8), 1.0, 10.0)
    noise, found = np.random.default_rng(3).normal(size=(1_000, 20)), 0
    for sums in noise:
        found += centres_of(sums, *own, 1.0, 10.0).any()
    assert 0 < found <= 40
    # Power: means that are as large as the entries are found in all of them.
    assert all(centres_of(sums + 9.0, *own, 1.0, 10.0).all() for sums in noise[:100])


def test_sums_clip_longer_rows_as_far_as_noise_would_move_centres():
    """From 1.2 per entry of a typical row to the bounds, which no row exceeds."""
    bounds, sizes = np.array([16.0, 64.0, 0.0]), np.array([1, 3, 0], dtype=np.int8)
    lengths = [scales_of_sums(bounds, sizes, 1.0, n)[1] for n in (10.0, 100.0, 1_000.0)]
    assert lengths == pytest.approx([1.2 * 2.0**0.5, 5.0, 8.0 * 2.0**0.5])
    assert scales_of_sums(bounds, sizes, 0.0, 10.0)[1] == lengths[-1]


def test_mean_squares_are_nearly_those_of_the_entries():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3_000, 8)) * 2.0 ** np.arange(8)
    X[rng.random(X.shape) < 0.3] = 0.0
    laid = laid_out(X, np.zeros(len(X)), LOGISTIC)
    counts = laid.magnitudes(PLAIN, UNIT).reshape(8, -1) / UNIT
    ratios = squares_of(clear_counts(counts, 0.0), np.zeros(8, dtype=np.int8), 0.0, 3_000.0) / (
        X**2
    ).mean(axis=0)
    assert ratios.min() > 0.7
    assert ratios.max() < 1.5
