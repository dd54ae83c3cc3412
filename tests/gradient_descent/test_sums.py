"""Every sum over records: the reference's integers in any layout, and one record's share of it."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from dplasso.matrix import tiles
from dplasso.matrix.scaling import MOST_SCALE_EXPONENT, NO_CENTRES, UNLIMITED
from dplasso.phases.moments import symmetric, triangle_size
from dplasso.runtime.threads import thread_pool
from gradient_descent.cases import HOSTILE, PLAIN, SCALINGS, SUMS, UNIT, Moments, laid_out, records
from neighbours import INPUT_KINDS, moved_by, pairs

each_sum = pytest.mark.parametrize("of", SUMS.values(), ids=SUMS)
X, LABELS = records()
ROWS = {
    "mixed": X,
    "falling": X * (np.random.default_rng(2).random(X.shape) < np.geomspace(1.0, 0.05, 12)),
    "sizes": X * 4.0 ** np.arange(-18, 18, 3),
    "ones": 1.0 * (X != 0.0),
    "threes": 3.0 * (X != 0.0),
}
WEIGHTS = np.random.default_rng(1).random(40)


def labels_for(loss):
    return (LABELS + np.arange(40)) % max(2, loss.n_outputs)


def totals(of, rows, scaling):
    return np.concatenate(of.released(rows, scaling))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["whole", "weighted"])
@pytest.mark.parametrize("kind", ROWS)
@each_sum
def test_sums_are_those_of_the_reference(of, kind, weights):
    y = labels_for(of.loss)
    for name in of.scalings:
        for dtype in (np.float32, np.float64):
            rows = ROWS[kind].astype(np.float32).astype(dtype)
            expected = of.reference(rows, y, SCALINGS[name], weights).sum(axis=0)
            laid = laid_out(sp.csr_array(rows), y, of.loss, weights)
            found = totals(of, laid, SCALINGS[name])
            assert np.abs((found - expected).astype(np.float64)).max() <= of.tolerance, name
            assert found.any()


@pytest.mark.parametrize("form", [form for form in INPUT_KINDS if form not in ("coo", "list")])
@each_sum
def test_every_layout_and_number_of_threads_gives_the_same_sums(of, form, monkeypatch):
    """Also in small tiles, laid in either way, whose rows no cache holds."""
    dtype, make = INPUT_KINDS[form]
    y = labels_for(of.loss)

    def summed(matrix, n_threads):
        with thread_pool(n_threads) as threads:
            laid = laid_out(matrix, y, of.loss, WEIGHTS, threads=threads)
            return [totals(of, laid, SCALINGS[name]).tolist() for name in of.scalings[-2:]]

    for kind in ("falling", "threes"):
        rows = ROWS[kind].astype(np.float32)
        expected = summed(sp.csr_array(rows), 1)
        made = make(rows.astype(dtype))
        given_ = getattr(made, "store", made)
        assert all(summed(given_, n_threads) == expected for n_threads in (1, 3))
        with monkeypatch.context() as patch:
            small = {"ROW_BITS": 3, "COLUMN_BITS": 2, "_AHEAD": 3}
            for name, size in (small | {"_NEAR_ROWS": 0, "_NEAR_SCALED_ROWS": 0}).items():
                patch.setattr(tiles, name, size)
            for few in (0, 2**21):
                patch.setattr(tiles, "FEW", few)
                assert all(summed(given_, n_threads) == expected for n_threads in (1, 3))


@each_sum
@given(
    row=st.lists(HOSTILE, min_size=1, max_size=30),
    label=st.sampled_from([0.0, 1.0]),
    weight=st.floats(),
    constant=st.sampled_from([0.0, 0.1, 0.99]),
    norm_bound=st.sampled_from([None, 1e-3, 1.0, 1e10]),
    halvings=st.just([0]) | st.lists(st.integers(0, MOST_SCALE_EXPONENT), min_size=1, max_size=30),
    centres=st.just(()) | st.just((1e308, -5e-324, 0.0)),
    coarse=st.sampled_from([0, 3, 21, 40]),
)
@example([1.7e308] * 30, 0.0, 1.0, 0.0, None, [0], (), 0)
@example([1.7e308] * 30, 1.0, 1.0, 0.1, None, [1, 40, 2], (), 0)
@example([1.0] * 30, 1.0, 1.0, 0.1, None, [1, 40, 2], (), 0)
@example([-1.7e308, 5e-324], 1.0, np.inf, 0.1, None, [0], (1e308, -5e-324, 0.0), 0)
@example([1.0], 0.0, 1.0, 0.0, 1.0, [0], (), 0)
@example([5e-324], 0.0, np.nan, 0.0, None, [0], (), 0)
@example([np.nan, *[9.0] * 11], 1.0, 1.0, 0.1, 2.0, [0], (), 0)
def test_a_record_moves_each_sum_by_at_most_its_bound(
    of, row, label, weight, constant, norm_bound, halvings, centres, coarse
):
    """In integers, and in L2, whatever the record is; a file that is mapped may hold NaN."""
    halvings = np.resize(np.array(halvings, dtype=np.int8), len(row))
    centres = np.resize(centres, len(row)) if centres else NO_CENTRES
    scaling = PLAIN._replace(
        constant=constant,
        norm_bound=norm_bound,
        scale_exponents=halvings[: 0 if isinstance(of, Moments) else None],
        centres=centres,
        limits=np.full_like(centres, UNLIMITED),
    )
    unit = UNIT / 2.0**coarse
    laid = laid_out(sp.csr_array([row]), [label], of.loss, np.array([weight]))
    for sums in of.released(laid, scaling, unit):
        assert sum(t * t for t in sums.tolist()) <= Fraction(unit) ** 2


@each_sum
def test_a_record_may_use_its_bounds_up(of):
    """At some margin, for some label."""
    used = []
    for label in (0.0, 0.5, 1.0):
        laid = laid_out(np.array([[3.0]]), [label], of.loss)
        used += [np.linalg.norm(sums.astype(float)) for sums in of.released(laid, PLAIN)]
    most = np.reshape(used, (-1, of.n_parts)).max(axis=0)
    assert most.min() >= 0.999 * UNIT


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["mixed", "binary"])
@each_sum
def test_neighbours_differ_by_at_most_the_sensitivity(of, kind, relation):
    most = Fraction(moved_by(UNIT, relation))
    for pair in pairs(relation, kind=kind):
        laid = [laid_out(X, y, of.loss) for X, y in zip(pair.rows, pair.labels, strict=True)]
        for scaling in of.scalings:
            one, other = (of.released(rows, SCALINGS[scaling]) for rows in laid)
            for sums, others in zip(one, other, strict=True):
                moved = (sums - others).tolist()
                assert sum(d * d for d in moved) <= most**2, (pair.name, scaling)


@pytest.mark.parametrize(
    "changed",
    [{"scale_exponents": np.array([0, 3, 0], np.int8)}, {"length": 0.5}],
    ids=["halved", "shorter"],
)
def test_rows_that_moments_would_make_longer_than_1_are_refused(changed):
    """Halved columns, and rows of a part of the columns: a record would exceed its bound."""
    of = SUMS["moments, clipped"]
    rows = laid_out(np.array([[0.1, 9.0, 0.1]]), [1.0], of.loss)
    with pytest.raises(ValueError, match="as long as they are"):
        of.released(rows, PLAIN._replace(**changed))


def test_a_triangle_is_as_long_as_its_matrix():
    triangle = np.random.default_rng(0).normal(size=triangle_size(5))
    matrix = symmetric(triangle, 5)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.norm(matrix) == pytest.approx(np.linalg.norm(triangle))
    assert matrix[0, 0] == triangle[0]
    assert matrix[0, 1] == pytest.approx(triangle[1] / np.sqrt(2.0))
