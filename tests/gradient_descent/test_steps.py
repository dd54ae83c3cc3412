"""What the kernels of a step must do that no sum of records shows."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.margins import LinearModel
from dplasso.gradient_descent.steps import (
    halve_contributions,
    tile_gradient_vectors,
    tile_gradients,
)
from dplasso.losses.multinomial import Multinomial, norm_bound
from dplasso.losses.targets import targets_of
from dplasso.matrix import tiles
from dplasso.matrix.compressed import Compressed
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import LOGISTIC, PLAIN, UNIT, laid_out, records

OUTPUTS = pytest.mark.parametrize(
    "loss", [LOGISTIC, Multinomial(3, norm_bound(3, 0.5))], ids=["one", "several"]
)


@pytest.mark.parametrize("values", [0, 1])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_no_share_is_larger_than_the_bound(n_outputs, values):
    """Whatever a row's numbers say, and whatever its columns' scale_exponents."""
    indices, scale_exponents = np.arange(3, dtype=np.int32), np.array([0, 3, 40], np.int8)
    rows = Compressed(np.array([0, 3]), indices, np.ones(3 * values, np.float32), 1.0)
    laid = tiles.lay_tiles(rows, 3, n_outputs, ONE_THREAD)
    for pull in (2.0**62, -(2.0**62)):
        levels = np.zeros((41, n_outputs), dtype=np.int64)
        halve_contributions(np.full(n_outputs, pull), UNIT, 0, n_outputs, levels)
        shape, add = (1, 3), tile_gradient_vectors
        if n_outputs == 1:
            shape, add = (1,), tile_gradients
        totals = np.zeros((3, *shape[1:]), dtype=np.int64)
        given = scale_exponents, np.full(shape, pull), levels, UNIT
        ahead = (None,) if n_outputs == 1 else ()
        add(laid, np.array([0]), 0, 1, *given, totals, np.array([0]), *ahead)
        expected = np.sign(pull) * np.array([UNIT, UNIT, 2.0**22])
        assert totals.ravel().tolist() == np.repeat(expected, n_outputs).tolist()


def test_what_is_halved_is_bounded_after():
    """Of as many rows as are halved together, and some more, in the memory of the first level."""
    given = np.random.default_rng(7).normal(size=2500) * 2.0**34
    given[:4] = 2.0**72, -(2.0**72), 1e300, np.nan
    levels = np.zeros((41, given.size), dtype=np.int64)
    scaled = levels[0].view(np.float64)
    scaled[:] = given
    for first, last in ((0, 1100), (1100, given.size)):
        halve_contributions(scaled, UNIT, first, last, levels)
    for b, level in enumerate(levels):
        whole = np.nan_to_num(given * 0.5**b)
        assert level.tolist() == np.trunc(np.clip(whole, -UNIT, UNIT)).tolist()


@pytest.mark.parametrize("exponent", [3, 31, 40])
@OUTPUTS
def test_whether_all_entries_are_one_value_changes_no_contribution(loss, exponent):
    """Also in columns of a unit of their own, whose entries are halved up to 40 times."""
    scaling = PLAIN._replace(scale_exponents=np.array([exponent, 0], np.int8))
    weights = np.zeros((2, loss.n_outputs))
    alike, other = np.array([[1e9, 0.0]] * 3), np.array([[0.0, 2.0]])
    unit, found = UNIT / loss.residual_bound, []
    for X, counts in ((alike, [1.0, 1, 1]), (np.vstack([alike, other]), [1.0, 1, 1, 0])):
        part = laid_out(X, np.ones(len(X)), loss, np.array(counts)).part(scaling, unit)
        found.append(part.sums(weights.ravel()).tolist())
    assert found[0] == found[1]
    assert np.linalg.norm(found[0]) > 2.9 * UNIT


def test_threads_divide_the_entries_where_columns_differ_in_length(monkeypatch):
    """The first block of columns has nearly all entries here."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 40)) < np.geomspace(1.0, 0.01, 40), rng.normal(size=(60, 40)), 0.0)
    monkeypatch.setattr(tiles, "COLUMN_BITS", 5)
    with thread_pool(3) as threads:
        for used in (ONE_THREAD, threads):
            part = laid_out(X, np.ones(60), LOGISTIC, threads=used).part(PLAIN, UNIT)
            assert (0 in part._large) == (used is threads)


PRIOR = StartingModel(np.linspace(-2.0, 2.0, 30)[:, np.newaxis], np.zeros(1))


def short_rows(length):
    """Return records in 3 of 30 columns, in which some rows are empty, and how they are scaled."""
    X, y = records(60, 30)
    X = np.array(X)
    X[:5, :3] = 0.0
    X[5, 0] = 1e9
    X[6, 0], X[6, 3:] = 1e-300, 0.0
    known = targets_of(y), ONE_THREAD, np.arange(3)
    rows = build_gradient_rows(sp.csr_array(X), LOGISTIC, *known, prior=PRIOR)
    return rows, Scaling(np.zeros(0, dtype=np.int64), 0.1, None, length=length)


@pytest.mark.parametrize("length", [0.05, 0.3, 1.0])
def test_rows_that_are_divided_pull_no_further_than_unit_rows(length):
    (rows, scaling), unit = short_rows(length), 2.0**33
    for i in range(60):
        alone = replace(rows, targets=targets_of(rows.targets.labels, np.eye(60)[i]))
        pulled = alone.part(scaling, unit, PRIOR).sums(np.zeros(4))
        assert np.linalg.norm(pulled / unit) <= 0.5
    assert rows.part(scaling, unit, PRIOR).sums(np.zeros(4)).any()


def test_margins_start_at_the_same_place_whatever_rows_are_divided_by():
    margins = []
    for length in (1.0, 0.3):
        rows, scaling = short_rows(length)
        model = LinearModel(np.full((3, 1), 2.0 * length), np.array([0.1]), scaling)
        margins.append(rows.margins(model, PRIOR).parts)
    assert margins[0] == pytest.approx(margins[1], rel=1e-12)
