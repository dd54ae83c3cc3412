"""Several outputs: exact gradients of residual vectors, and what one record can change of them."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.gradient_descent.schedule import Schedule
from dplasso.gradient_descent.solve import BLOCK
from dplasso.gradient_descent.steps import column_gradient_vectors, row_gradient_vectors
from dplasso.losses.contract import residual_vector
from dplasso.losses.multinomial import Multinomial, residual_norm_at_zero
from dplasso.matrix.numbering import Numbering
from dplasso.matrix.unit_rows import unit_row_margins
from dplasso.privacy.gaussian_noise import noise_table, noisy
from dplasso.privacy.mechanisms.gaussian import l2_sensitivity
from dplasso.privacy.randomness import word_buffers
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import descent, records, stream, unit_rows
from gradient_descent.reference import factor
from neighbours import pairs

K = 3
BOUND = residual_norm_at_zero(K)
UNIT = 2.0**32
SLACK = 2.0**-30


def classes(n_rows, seed=0):
    return np.random.default_rng([seed, 2]).integers(0, K, n_rows).astype(np.int32)


def loss(bound=BOUND):
    return Multinomial(K, bound)


def gradients(X, y, weights, *, bound=BOUND, constant=0.0, dtype=None):
    """Return the exact gradient of one step, shape (D, K) or (D + 1, K), as Python integers."""
    data = unit_rows(X, constant)
    scaled, totals = np.empty((len(y), K)), np.zeros(K, dtype=np.int64)
    row_gradient_vectors(
        data, loss(bound), y, weights, UNIT, bound * UNIT, 0, len(y), scaled, totals
    )
    columns = np.empty((data.n_columns, K), dtype=np.int64)
    column_gradient_vectors(data.columns, scaled, bound * UNIT, 0, data.n_columns, columns)
    return [*columns.ravel().tolist(), *(totals.tolist() if constant else [])]


def reference(X, y, weights, *, bound=BOUND, constant=0.0):
    """Return the same, one record and one entry at a time."""
    totals = [[0] * K for _ in range(X.shape[1] + bool(constant))]
    entry = constant * (1.0 - SLACK)
    for row, label in zip(np.asarray(X, dtype=np.float64).tolist(), y.tolist(), strict=True):
        scale, margins, residuals = factor(row, constant), np.zeros(K), np.empty(K)
        for k in range(K):
            product = 0.0
            for j, v in enumerate(row):
                if v != 0.0:
                    product += v * weights[j, k]
            margins[k] = product * scale + (entry * weights[-1, k] if constant else 0.0)
        residual_vector(loss(bound), margins, label, residuals)
        for k in range(K):
            for j, v in enumerate(row):
                totals[j][k] += int(residuals[k] * scale * UNIT * v)
            if constant:
                totals[-1][k] += int(residuals[k] * entry * UNIT)
    return [total for column in totals for total in column]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", ["mixed", "threes"])
@pytest.mark.parametrize(("bound", "constant"), [(BOUND, 0.1), (0.6, 0.0)])
def test_gradients_are_the_sums_of_the_reference_s_contributions(dtype, values, bound, constant):
    X, _ = records(dtype=dtype)
    y = classes(40)
    if values == "threes":
        X = np.where(X != 0.0, 3, 0).astype(dtype)
    for scale in (0.0, 1.0, 30.0, 1e200):
        weights = scale * np.random.default_rng(3).normal(size=(12 + bool(constant), K))
        found = gradients(X, y, weights, bound=bound, constant=constant)
        assert found == reference(X, y, weights, bound=bound, constant=constant)
        assert any(found)


def inside(difference, sensitivity):
    return sum(d * d for d in difference) <= (Fraction(sensitivity) * Fraction(UNIT)) ** 2


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("weights", ["none", "some", "large"])
def test_neighbours_differ_by_at_most_the_sensitivity(relation, weights):
    sensitivity, farthest = l2_sensitivity(BOUND, relation), 0.0
    size = {"none": 0.0, "some": 1.0, "large": 40.0}[weights]
    w = size * np.random.default_rng(6).normal(size=(13, K))
    for pair in pairs(relation):
        # A replaced record has the other of two labels: the third class keeps its records.
        one, other = (
            gradients(X, y.astype(np.int32), w, constant=0.1)
            for X, y in zip(pair.rows, pair.labels, strict=True)
        )
        difference = [a - b for a, b in zip(one, other, strict=True)]
        assert inside(difference, sensitivity), pair.name
        farthest = max(farthest, sum(d * d for d in difference) ** 0.5 / UNIT)
    if weights == "none" and relation == "add-remove":
        # Some of them use up what they may.
        assert farthest > 0.99 * sensitivity


SCHEDULE = Schedule(5, 0.02, 0.8, 4, 3.0, 0.5)


def solver(X, y, schedule=SCHEDULE, *, threads=ONE_THREAD, n_classes=K, **options):
    made = descent(
        unit_rows(X, 0.1, None, threads),
        Multinomial(n_classes, BOUND),
        y,
        schedule,
        stream(),
        threads=threads,
        **options,
    )
    made.advance(1, schedule.n_steps)
    return made


def test_steps_are_gradients_noise_and_momentum():
    X, _ = records()
    y = classes(40)
    run = solver(X, y)
    table = noise_table(SCHEDULE.noise_scale * run._unit)
    buffer = word_buffers(stream(), 1)[0]
    velocity = weights = averaged = np.zeros((13, K))
    for step in range(1, 6):
        scaled, totals = np.empty((40, K)), np.zeros(K, dtype=np.int64)
        data = unit_rows(X, 0.1)
        row_gradient_vectors(
            data, loss(), y, weights, run._unit, BOUND * run._unit, 0, 40, scaled, totals
        )
        columns = np.empty((12, K), dtype=np.int64)
        column_gradient_vectors(data.columns, scaled, BOUND * run._unit, 0, 12, columns)
        gradient = np.concatenate([columns.ravel(), totals])
        noisy(table, buffer, gradient)
        velocity = 0.8 * velocity + gradient.reshape(-1, K) * (1.0 / run._unit)
        weights = weights - 0.02 * velocity
        if step >= 4:
            averaged = averaged + weights
    np.testing.assert_array_equal(run.weights.reshape(-1, K), weights)
    np.testing.assert_array_equal(run.average().reshape(-1, K), averaged / 2.0)


def test_threads_blocks_and_numbers_do_not_show():
    """More columns than share a stream of noise, in an order of their own, on three threads."""
    n_columns = BLOCK // 7 + 40
    rng = np.random.default_rng(2)
    X = sp.random_array((30, n_columns), density=0.01, format="csr", rng=rng)
    y = rng.integers(0, 7, 30).astype(np.int32)
    options = {"schedule": Schedule(2, 0.1, 0.8, 1, 3.0, 0.5), "n_classes": 7}
    plain = solver(X, y, **options)
    assert len(plain._blocks) == 2
    with thread_pool(3) as threads:
        np.testing.assert_array_equal(
            solver(X, y, threads=threads, **options).weights, plain.weights
        )
    order = rng.permutation(n_columns)
    internal = np.empty(n_columns, dtype=np.int64)
    internal[order] = np.arange(n_columns)
    # Each row's entries in the order that they had, so that margins have the same bits.
    moved = sp.csr_array((X.data, internal[X.indices], X.indptr), shape=X.shape)
    again = solver(moved, y, numbering=Numbering(internal, order), **options)
    np.testing.assert_allclose(again.weights, plain.weights, rtol=1e-9, atol=1e-12)


def test_margins_of_all_outputs():
    X, _ = records()
    data, weights = unit_rows(X), np.random.default_rng(1).normal(size=(12, K))
    offset = np.array([0.5, -1.0, 0.0])
    found = unit_row_margins(data.rows, weights, data.factor, offset, ONE_THREAD)
    lengths = np.linalg.norm(X, axis=1)
    rows = np.divide(X, lengths[:, None], where=lengths[:, None] > 0, out=np.zeros_like(X))
    np.testing.assert_allclose(found, rows @ weights + offset, rtol=1e-8, atol=1e-8)
