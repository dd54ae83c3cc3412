"""Magnitudes of columns: the reference's integers, one record's share, and units that are found."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from dplasso import DPLinearRegression, DPLogisticRegression
from dplasso.data.store import write_store
from dplasso.encoding.data_files import encode_files, read_records
from dplasso.encoding.origin import Origin, with_origin
from dplasso.encoding.parts import Number
from dplasso.encoding.schema import Schema
from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.magnitudes import N_MAGNITUDES, pays, scale_exponents_of
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import targets_of
from dplasso.matrix.scaling import MOST_SCALE_EXPONENT
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import HOSTILE, records
from gradient_descent.reference import magnitudes
from neighbours import INPUT_KINDS, moved_by, pairs

UNIT = 2.0**32


def released(X, weights=None, *, threads=ONE_THREAD, unit=UNIT):
    """Return the exact counts."""
    targets = targets_of(np.zeros(X.shape[0]), weights)
    return build_gradient_rows(X, Logistic(0.5), targets, threads).magnitudes(unit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [form for form in INPUT_KINDS if form not in ("coo", "list")])
def test_counts_are_the_sums_of_the_reference_s(dtype, weighted, form):
    """Of every layout and number of threads, also of entries that are all alike."""
    mixed, _ = records()
    sizes = mixed * 4.0 ** np.arange(-18, 18, 3)
    for X in (sizes, np.where(mixed != 0.0, 3.0, 0.0)):
        X = X.astype(np.float32).astype(dtype)
        weights = np.random.default_rng(1).random(40) if weighted else None
        expected = magnitudes(X, UNIT, weights=weights).sum(axis=0)
        assert np.count_nonzero(expected) > 10
        own, make = INPUT_KINDS[form]
        made = make(X.astype(own))
        for n_threads in (1, 3):
            with thread_pool(n_threads) as threads:
                found = released(getattr(made, "store", made), weights, threads=threads)
            assert found.tolist() == expected.tolist()


@given(st.lists(HOSTILE, min_size=1, max_size=40), st.floats(), st.sampled_from([0, 3, 21, 40]))
@example([1.7e308] * 40, 1.0, 0)
@example([1.0], 1.0, 0)
@example([5e-324], np.nan, 0)
def test_a_record_moves_counts_by_at_most_one(row, weight, coarse):
    """In integers, and in L2, whatever the record is."""
    unit = UNIT / 2.0**coarse
    found = released(np.array([row]), np.array([weight]), unit=unit).tolist()
    assert min(found) >= 0
    square = sum(t * t for t in found)
    assert square <= Fraction(unit) ** 2
    if weight >= 1.0 and any(row) and not coarse:
        assert square >= 0.999 * unit**2


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["mixed", "binary"])
def test_neighbours_differ_by_at_most_the_sensitivity(relation, kind):
    sensitivity = Fraction(moved_by(1.0, relation))
    for pair in pairs(relation, kind=kind):
        one, other = (released(X).tolist() for X in pair.rows)
        difference = [a - b for a, b in zip(one, other, strict=True)]
        assert sum(d * d for d in difference) <= (sensitivity * Fraction(UNIT)) ** 2, pair.name


def counts_of(columns, deviation, seed=0):
    """Return noisy counts of columns, each a mapping of k to the number of entries of size 4^k."""
    counts = np.random.default_rng(seed).normal(0.0, deviation, (len(columns), N_MAGNITUDES))
    for own, column in zip(counts, columns, strict=True):
        for k, count in column.items():
            own[k + 16] += count
    return counts


@pytest.mark.parametrize("deviation", [0.0, 1.0])
def test_columns_are_halved_to_the_size_of_the_smallest(deviation):
    columns = [{0: 90.0}, {5: 90.0}, {-3: 90.0, -4: 90.0}, {0: 90.0}, {14: 90.0}, {-16: 3.0}, {}]
    if deviation:
        # What is hidden by noise counts as most do: here they are 7 powers of 2 larger.
        assert scale_exponents_of(counts_of(columns, 1.0), 1.0).tolist() == [7, 17, 0, 7, 35, 7, 7]
    else:
        whole = [min(MOST_SCALE_EXPONENT, 32 + e) for e in (0, 10, -7, 0, 28, -32, 0)]
        assert scale_exponents_of(counts_of(columns, 0.0), 0.0).tolist() == whole


def test_columns_of_about_one_size_keep_their_entries():
    columns = [{k: 90.0} for k in (0, 1, 2, 3)]
    assert not scale_exponents_of(counts_of(columns, 1.0), 1.0).any()
    assert scale_exponents_of(counts_of([*columns, {4: 90.0}], 1.0), 1.0).any()


def test_noise_alone_finds_no_column():
    """In 1,000 releases of 30 columns without entries: the probability of a false one is 0.02."""
    for seed in range(1_000):
        assert not scale_exponents_of(counts_of([{}] * 30, 1.0, seed), 1.0).any()
    # Power: what all records have is found in all of them.
    shown = [{0: 30.0}, {9: 30.0}, *[{}] * 28]
    assert all(scale_exponents_of(counts_of(shown, 1.0, s), 1.0)[1] == 18 for s in range(100))


def test_counts_are_released_where_they_can_be_read():
    assert pays(111.0, 100, 1.0)
    assert not pays(110.0, 100, 1.0)
    assert pays(191.0, 10_000, 1.0)
    assert pays(1.0, 10_000, 0.0)


def unlike(n_rows=6_000, n_columns=12):
    """Return rows in one unit, units of the columns from 0.01 to 10,000, and margins."""
    rng = np.random.default_rng(5)
    X, weights = rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_columns)
    return X, 10.0 ** rng.permutation(np.linspace(-2.0, 4.0, n_columns)), X @ weights


@pytest.mark.parametrize("max_weights", [None, 6])
def test_a_column_of_large_numbers_hides_no_other(max_weights):
    """Nearly as good as in one unit; a short list depends on the rounding of units."""
    X, units, margins = unlike()
    y = (margins > 0).astype(int)
    model = DPLogisticRegression(1.0, max_weights=max_weights, classes=[0, 1], random_state=0)
    found = []
    for rows in (X, X * units, sp.csc_array(X * units)):
        model.fit(rows[:4_000], y[:4_000])
        found.append(roc_auc_score(y[4_000:], model.decision_function(rows[4_000:])))
    assert found[0] > (0.97 if max_weights is None else 0.8)
    assert found[1] == found[2] > found[0] - 0.05
    kept = model.coef_.indices if max_weights else np.arange(12)
    assert np.ptp(np.log2(model.column_scale_ * units[kept])) < 3.0
    assert "magnitudes" in {release.name for release in model.privacy_.releases}


def test_columns_of_a_schema_have_one_unit():
    schema = Schema([Number(f"x{j}", 5.0, 0.0, "ignore") for j in range(12)])
    X, _, margins = unlike(2_000)
    model = DPLogisticRegression(1.0, classes=[0, 1], random_state=0)
    model.fit(with_origin(sp.csr_array(X), Origin(schema)), margins > 0)
    assert "magnitudes" not in {release.name for release in model.privacy_.releases}


@pytest.mark.parametrize("binarize", [False, True])
def test_files_without_a_schema_may_have_any_units(tmp_path, binarize):
    X, units, margins = unlike(2_000)
    path = tmp_path / "rows.svm"
    dump_svmlight_file(X * units, margins > 0, str(path), zero_based=False)
    source, origin = encode_files([path], n_features=12, binarize=binarize)
    model = DPLogisticRegression(1.0, classes=[0, 1], random_state=0)
    rows = read_records(path, n_features=12, binarize=binarize)
    for data in (rows, write_store(source, tmp_path / "rows.store", origin=origin)):
        model.fit(data.X, data.y)
        released = {release.name for release in model.privacy_.releases}
        assert ("magnitudes" in released) == (not binarize)


def test_a_regression_finds_units_too():
    X, units, margins = unlike()
    model = DPLinearRegression(1.0, target_bounds=(-1.0, 1.0), random_state=0)
    y = np.sign(margins)
    assert model.fit(X * units, y).score(X * units, y) > 0.5


def test_a_number_as_row_norm_says_that_columns_have_one_unit():
    X, _, margins = unlike(2_000)
    model = DPLogisticRegression(1.0, row_norm=3.0, classes=[0, 1], random_state=0)
    model.fit(X, margins > 0)
    assert "magnitudes" not in {release.name for release in model.privacy_.releases}
