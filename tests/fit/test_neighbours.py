"""Fits of neighbours that are hard on the data, the numbers or the settings of a fit."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
)
from neighbours import N_COLUMNS, common_records
from recorder import compare
from small_fits import short_runs


def test_an_unsorted_row_leaves_the_others_as_they_are():
    """It must not change in what order their entries are added up when a fit converts their type.

    In stored order an entry adds up to 2, in another one to anything from -1e30 to 1e30.
    """
    parts, n_rows, n_zeros = (1.0, -1e30, 1e30, -1.0, 1.0, 1.0), 1000, 35
    columns = np.tile(np.r_[np.zeros(6, int), 1 : n_zeros + 1], n_rows)
    entries = np.tile(np.r_[parts, np.zeros(n_zeros)], n_rows)
    ends = np.arange(0, columns.size + 1, 6 + n_zeros)
    rows = sp.csr_array((entries, columns, ends), shape=(n_rows, n_zeros + 1))
    more = sp.csr_array(
        (np.r_[entries, 1.0, 1.0], np.r_[columns, 3, 0], np.r_[ends, ends[-1] + 2]),
        shape=(n_rows + 1, n_zeros + 1),
    )
    y = np.arange(n_rows) % 5 > 0

    def work(data):
        X, y = data
        # Not by scipy, whose conversions add up duplicates.
        X.data = X.data.astype(np.longdouble)
        return DPLogisticRegression(1.0, classes=[False, True]).fit(X, y)

    assert compare(work, (rows, y), (more, np.append(y, True))).violations == ()


@pytest.mark.parametrize("kind", [DPLassoClassifier, DPLasso])
def test_a_record_of_weight_0_moves_nothing(kind):
    """All entries of the others are equal, and beyond a bound that is no float32."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 40)) < 0.5).astype(np.float32)
    y, prior = rng.integers(0, 2, 400), rng.normal(size=(1, 40))
    more = np.vstack([X, np.where(np.arange(40), 0.0, 0.5)]).astype(np.float32)
    pair = (X, y, np.ones(400)), (more, np.append(y, 1), np.append(np.ones(400), 0.0))
    options = {"max_weights": 3, "feature_bound": 0.1, "prior": prior}
    options |= {"target_bounds": (0.0, 1.0)} if kind is DPLasso else {}

    def work(data):
        X, y, weights = data
        with short_runs():
            return kind(1000.0, **options).fit(X, y, sample_weight=weights)

    found = compare(work, *pair)
    assert found.violations == ()
    assert found.largest == 0.0


@pytest.mark.parametrize("odd", ["target", "row"])
def test_no_record_ends_a_charged_fit_where_numpy_raises_errors(odd):
    """Of a number so small that its square, or its product with a factor, is 0."""
    X, y = common_records(dtype=np.float64)
    y, prior = y.astype(float), np.append(0.0, np.ones(N_COLUMNS - 1))
    if odd == "target":
        y[3] = 1e-200
    else:
        X[3] = np.append(1e300, np.full(N_COLUMNS - 1, 5e-324))
    model = DPLinearRegression(1.0, target_bounds=(-1.0, 1.0), prior=prior)
    ended = ""
    with np.errstate(all="raise"), short_runs():
        try:
            model.fit(X, y)
        except FloatingPointError as error:
            ended = str(error)
    assert ended == ""


def powers(lowest, highest):
    """Return numbers of every magnitude."""
    return st.floats(math.log10(lowest), math.log10(highest)).map(lambda power: 10.0**power)


# Settings of a fit.
ACCEPTED = st.fixed_dictionaries(
    {
        "l1_radius": powers(1e-300, 1e250),
        "feature_bound": powers(1e-100, 1e100),
        "epsilon": powers(1e-6, 1e3),
        "delta": powers(1e-9, 0.5),
        "drift_tol": st.one_of(st.none(), st.just("auto"), powers(1e-300, 1e300), st.just(0.0)),
        "neighbors": st.sampled_from(["add-remove", "replace-one"]),
        # Nothing is counted, which would need a delta for its own rounding.
        "fit_intercept": st.just(False),
        "n_records": st.just(8),
    }
).filter(lambda options: options["l1_radius"] * options["feature_bound"] <= 1e100)


@settings(max_examples=25, deadline=None)
@given(options=ACCEPTED, seed=st.integers(0, 2**16))
def test_one_record_moves_no_statistic_by_more_than_its_sensitivity(options, seed):
    rng = np.random.default_rng(7)
    X = sp.random_array((9, 5), density=0.6, format="csr", rng=rng)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.data = rng.choice([-1.0, 1.0], X.data.size) * rng.choice([1.0, 1e-3, 1e30], X.data.size)
    X.data *= min(options["feature_bound"], 1e150)
    y = rng.integers(0, 2, 9)

    def fit(rows):
        model = DPFrankWolfeClassifier(n_iter=8, classes=(0, 1), random_state=seed, **options)
        with np.errstate(over="ignore"):
            model.fit(X[rows], y[rows])
        assert model.privacy_.epsilon <= options["epsilon"]
        assert np.isfinite(model.coef_.data).all()
        assert np.isfinite(model.intercept_).all()
        return model

    other = [*range(7), 8] if options["neighbors"] == "replace-one" else range(7)
    compared = compare(fit, range(8), other)
    assert compared.violations == ()
    assert compared.statistics == 8
