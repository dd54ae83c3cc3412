"""Kernels against a slow reference, and what one record can change, exactly in integers."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.gradient_descent.schedule import Schedule
from dplasso.gradient_descent.steps import column_gradients, row_gradients, update
from dplasso.losses.logistic import Logistic
from dplasso.losses.weighted import weighted, weighted_targets
from dplasso.privacy.mechanisms.gaussian import l2_sensitivity
from gradient_descent.cases import records, solver, unit_rows
from gradient_descent.reference import contributions
from neighbours import INPUT_KINDS, added, hostile_records, in_form, pairs

UNIT = 2.0**33
BOUND = 0.5


def gradients(X, y, weights, *, bound=BOUND, unit=UNIT, constant=0.0, norm_bound=None, loss=None):
    """Return the exact gradient of one step as a list of integers, the constant last."""
    data = unit_rows(X, constant, norm_bound)
    scaled = np.empty(len(y))
    labels = np.asarray(y) if loss else np.asarray(y).astype(np.int8)
    loss = loss or Logistic(bound)
    limit = loss.residual_bound * unit
    last = row_gradients(data, loss, labels, weights, unit, limit, 0, len(y), scaled)
    totals = np.empty(data.n_columns, dtype=np.int64)
    column_gradients(data.columns, scaled, limit, 0, data.n_columns, totals)
    return [int(t) for t in totals] + ([int(last)] if constant else [])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", ["mixed", "ones", "threes"])
@pytest.mark.parametrize(("bound", "constant"), [(0.5, 0.1), (0.7, 0.0), (1.0, 0.1)])
def test_gradients_are_the_sums_of_the_reference_s_contributions(dtype, values, bound, constant):
    X, y = records(dtype=dtype)
    if values != "mixed":
        X = np.where(X != 0.0, {"ones": 1, "threes": 3}[values], 0).astype(dtype)
    for scale in (0.0, 1.0, 30.0, 1e200):
        weights = scale * np.random.default_rng(3).normal(size=12 + bool(constant))
        unit = 2.0**32 / bound
        expected = contributions(X, y, weights, bound=bound, unit=unit, constant=constant)
        found = gradients(X, y, weights, bound=bound, unit=unit, constant=constant)
        assert found == expected.sum(axis=0).tolist()
        assert any(found)


def test_a_residual_is_clipped_to_the_bound():
    X, y = np.eye(2), np.array([0, 1])
    for margin, expected in ((50.0, 0.5), (-50.0, -0.5)):
        found = gradients(X, y, np.array([margin, margin]))
        pulled = [found[0], 0] if margin > 0 else [0, found[1]]
        np.testing.assert_allclose(found, pulled, atol=2**-20)
        assert sum(found) / UNIT == pytest.approx(expected)


def test_weights_that_are_no_numbers_pull_with_nothing():
    X, y = records()
    assert not any(gradients(X, y, np.full(12, np.nan)))


def test_parts_of_the_work_add_up():
    X, y = records()
    weights = np.random.default_rng(4).normal(size=13)
    data, whole = unit_rows(X, 0.1), np.empty(40)
    arguments = data, Logistic(BOUND), y, weights, UNIT, BOUND * UNIT
    total = row_gradients(*arguments, 0, 40, whole)
    parts = np.full(40, np.nan)
    split = sum(row_gradients(*arguments, a, b, parts) for a, b in ((17, 40), (0, 0), (0, 17)))
    assert split == total
    np.testing.assert_array_equal(parts, whole)


def test_an_update_is_momentum_and_step():
    rng = np.random.default_rng(5)
    totals = rng.integers(-(2**40), 2**40, 6)
    velocity, weights, averaged = rng.normal(size=(3, 6))
    v = 0.8 * velocity + totals * (1.0 / UNIT)
    w = weights - 0.01 * v
    for averaging in (False, True):
        state = velocity.copy(), weights.copy(), averaged.copy()
        update(totals, UNIT, 0.8, 0.01, *state, averaging)
        np.testing.assert_array_equal(state, [v, w, averaged + w if averaging else averaged])


# --- Neighbours: the other draws frozen, one record more, less, or another -----------------------

WEIGHTS = {
    "none": np.zeros(13),
    "some": np.random.default_rng(6).normal(size=13),
    "large": 40 * np.random.default_rng(7).normal(size=13),
}


def moved(one, other):
    return [a - b for a, b in zip(one, other, strict=True)]


def inside(difference, sensitivity, unit=UNIT):
    return sum(d * d for d in difference) <= (Fraction(sensitivity) * Fraction(unit)) ** 2


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["mixed", "binary"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("norm_bound", [None, 1.0])
def test_neighbours_differ_by_at_most_the_sensitivity(relation, kind, weights, norm_bound):
    sensitivity = l2_sensitivity(BOUND, relation)
    farthest = 0.0
    for pair in pairs(relation, kind=kind):
        options = {"constant": 0.1, "norm_bound": norm_bound}
        one, other = (
            gradients(X, y, WEIGHTS[weights], **options)
            for X, y in zip(pair.rows, pair.labels, strict=True)
        )
        difference = moved(one, other)
        assert inside(difference, sensitivity), pair.name
        farthest = max(farthest, sum(d * d for d in difference) ** 0.5 / UNIT)
    # Some of them use up what they may.
    if weights == "none":
        assert farthest > 0.99 * sensitivity


@pytest.mark.parametrize("kind", ["mixed", "binary"])
@pytest.mark.parametrize("form", [form for form in INPUT_KINDS if "store" not in form])
def test_what_a_record_adds_is_what_it_adds_alone(form, kind):
    """So nothing of it shows in what the others add: no rounding, order, layout or path."""
    for name, entries in hostile_records(np.float32, kind).items():
        pair = added(name, entries, 1, 9, kind)
        (X, y), (more, labels) = in_form(form, pair)
        dtype, make = INPUT_KINDS[form]
        matrices = X, more, make(pair.rows[1][9:10].astype(dtype))
        if form in ("coo", "list"):
            # The estimator's checks make rows of these.
            matrices = tuple(sp.csr_array(matrix) for matrix in matrices)
        X, more, alone = matrices
        for weights in WEIGHTS.values():
            one, other = (
                gradients(m, t, weights, constant=0.1) for m, t in ((X, y), (more, labels))
            )
            assert moved(other, one) == gradients(alone, [1], weights, constant=0.1), name


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_weighted_neighbours_differ_by_at_most_the_sensitivity(relation):
    loss, sensitivity = weighted(Logistic(BOUND), regression=False), l2_sensitivity(BOUND, relation)
    for pair in pairs(relation):
        for own in (0.0, 0.4, 1.0, 1.9):
            found = []
            for X, y, shared in zip(pair.rows, pair.labels, pair.shared, strict=True):
                weights = np.full(y.size, own)
                weights[shared] = np.linspace(0.0, 1.0, shared.size)
                targets = weighted_targets(y, weights, regression=False)
                found.append(gradients(X, targets, WEIGHTS["some"], constant=0.1, loss=loss))
            assert inside(moved(*found), sensitivity), pair.name


def test_several_rows_of_one_person():
    X, y = records(30)
    rows, labels = np.tile([1.0] + [0.0] * 11, (7, 1)), np.ones(7, dtype=np.int8)
    one = gradients(X, y, np.zeros(12))
    more = gradients(np.vstack([X, rows]), np.concatenate([y, labels]), np.zeros(12))
    other = gradients(np.vstack([X, rows]), np.concatenate([y, 1 - labels]), np.zeros(12))
    for far, relation in ((more, "add-remove"), (other, "replace-one")):
        near = one if far is more else more
        sensitivity = l2_sensitivity(BOUND, relation, 7)
        assert inside(moved(far, near), sensitivity)
        assert not inside(moved(far, near), 0.99 * sensitivity)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_what_is_released_of_neighbours_with_the_noise_frozen(relation):
    """The first noisy gradient of two whole runs, noise and all, in integers."""
    schedule = Schedule(1, 1.0, 0.0, 1, 5.0, 0.5)
    for pair in pairs(relation):
        released = []
        for X, y in zip(pair.rows, pair.labels, strict=True):
            run = solver(X, y.astype(np.int8), schedule, constant=0.1)
            released.append([int(v * UNIT) for v in run.velocity])
        assert inside(moved(*released), l2_sensitivity(BOUND, relation))
