"""Margins set right and slopes of a start: found where the records say so, and paid for."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from dplasso import DPLogisticRegression
from dplasso.gradient_descent import calibration, gradient_rows
from dplasso.gradient_descent.calibration import (
    calibrate_margins,
    find_slopes,
    find_start,
    part_taken,
    weigh,
)
from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.margins import LONGEST, LinearModel, Margins, margin_counts_of
from dplasso.losses.logistic import Logistic, ManyLogistic, sigma
from dplasso.losses.multinomial import Multinomial
from dplasso.losses.squared import Squared
from dplasso.losses.targets import targets_of
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.phases.releases import Calibrated
from dplasso.runtime.threads import ONE_THREAD, thread_pool
from gradient_descent.cases import records, stream
from gradient_descent.reference import on_the_grid, residuals

UNIT = 2.0**33
C = 0.5


def calibrated(
    margins, labels, loss, *, mu=200.0, seed=0, threads=ONE_THREAD, intercept=True, centre=0.0
):
    public = {"n_records": len(labels), "mu": mu, "sensitivity": loss.residual_bound}
    margins = Margins(margins[:, np.newaxis], loss, targets_of(labels), threads)
    options = public | {"fit_intercept": intercept, "centre": centre}
    return Calibrated(*calibrate_margins(margins, loss, stream(seed), **options))


def labelled(slope, shift, *, n_rows=40_000, seed=1):
    """Return margins, and labels as likely as the stretched margins say (link of C = 1/2)."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(0.0, 0.6, n_rows)
    p = np.array([sigma(m) for m in slope * margins + shift])
    p = np.where(p < 0.5, p / (0.5 + p), 1.0 - (1.0 - p) / (1.5 - p))
    return margins[:, np.newaxis], (rng.random(n_rows) < p).astype(np.float64)


def test_margins_of_a_rare_class_are_stretched_around_their_centre():
    """Far from 0, slope and constant would be hard to tell apart."""
    margins, labels = labelled(2.5, -3.0)
    found = calibrated(margins, labels, Logistic(C), centre=np.array([-3.0]))
    assert found.slope == pytest.approx(2.5, abs=0.3)
    assert found.shift[0] - 3.0 * found.slope == pytest.approx(-3.0, abs=0.2)
    around_zero = calibrated(margins - 3.0, labels, Logistic(C))
    assert abs(around_zero.slope - 2.5) > 2.0 * abs(found.slope - 2.5)
    # Without a constant to find, the centre stays where it is.
    fixed = calibrated(margins, labels, Logistic(C), centre=np.array([-3.0]), intercept=False)
    assert fixed.shift[0] - 3.0 * fixed.slope == pytest.approx(-3.0, rel=1e-12)


finite = st.floats(-1e9, 1e9)
# Margins of rows whose entries are near the ends of the range of doubles.
anything = st.floats()


def sums(loss, parts, labels, parameters, weights=None, threads=ONE_THREAD):
    """Return the exact sums in slopes and constants, as Python's integers.

    Margins of two dimensions are one part, which nothing shortens.
    """
    parts, longest = np.array(parts), (LONGEST,)
    if parts.ndim == 2:
        parts, longest = parts[:, np.newaxis], ()
    targets = targets_of(np.array(labels, dtype=np.float64), weights)
    margins = Margins(parts, loss, targets, threads, *longest)
    return margins.sums(np.array(parameters), UNIT).tolist()


@given(anything, anything, st.integers(0, 1), finite, finite, finite, anything)
@example(2.0, 2.0, 1, -1e3, -1e3, 0.0, 1.0)
def test_a_record_moves_the_sums_by_no_more_than_its_residual(one, two, label, a, b, c, weight):
    known = [label], [a, b, c], np.array([weight])
    assert math.hypot(*sums(Logistic(C), [[one]], [label], [a, c], known[-1])) <= C * UNIT
    for loss in (Logistic(C), Squared(C)):
        assert math.hypot(*sums(loss, [[[one], [two]]], *known)) <= C * UNIT


@given(st.lists(anything, min_size=6, max_size=6), st.integers(0, 2), finite, finite, anything)
def test_so_does_one_of_several_classes(margins, label, a, b, weight):
    constants, own, loss = [0.0, -b, b], np.array([weight]), Multinomial(3, 0.7)
    for parts, slopes in ((np.reshape(margins, (1, 2, 3)), [a, b]), ([margins[:3]], [a])):
        assert math.hypot(*sums(loss, parts, [label], [*slopes, *constants], own)) <= 0.7 * UNIT


@given(st.lists(anything, min_size=3, max_size=3), st.integers(0, 7), finite, finite, anything)
def test_so_does_one_of_many_labels_that_have_a_slope_each(margins, there, slope, shift, weight):
    labels, parameters = [there & 1, there >> 1 & 1, there >> 2], [slope, 1.0, shift, shift, 0.0, 2]
    totals = sums(ManyLogistic(3, 0.9), [margins], [labels], parameters, np.array([weight]))
    assert math.hypot(*totals) <= 0.9 * UNIT


def test_the_sums_of_many_labels_are_the_gradient_written_out():
    rng = np.random.default_rng(0)
    s, y, own = rng.normal(0.0, 3.0, (50, 2)), rng.integers(0, 2, (50, 2)), rng.random(50)
    for weights in (None, own):
        totals = sums(ManyLogistic(2, C * 2**0.5), s, y, [1.7, 0.3, -0.4, 0.2], weights)
        stretched = s * [1.7, 0.3] + 0.5 * np.array([-0.4, 0.2])
        q = np.clip(1.0 / (1.0 + np.exp(-stretched)) - y, -C, C) / np.hypot(s, 0.5)
        q = q if weights is None else q * weights[:, np.newaxis]
        expected = np.concatenate([(q * s).sum(axis=0), 0.5 * q.sum(axis=0)])
        assert np.array(totals) / UNIT == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "loss", [Logistic(C), Multinomial(3, 0.7), Squared(2.0)], ids=["two", "three", "numbers"]
)
@pytest.mark.parametrize("n_parts", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_sums_are_the_gradient_written_out(loss, n_parts, weighted):
    rng, size = np.random.default_rng(0), loss.n_outputs
    s, y = rng.normal(0.0, 3.0, (50, n_parts, size)), rng.integers(0, max(2, size), 50)
    own = rng.random(50) if weighted else None
    slopes, constants = np.array([1.7, 0.3][:n_parts]), np.array([-0.4, 0.2, 0.5][:size])
    expected, longest = np.zeros(n_parts + size), 0.0
    for row, label, weight in zip(s, y, np.ones(50) if own is None else own, strict=True):
        if isinstance(loss, Logistic):
            # Margins of two classes are rounded.
            row = on_the_grid(row, {1: 6, 2: 3}[n_parts])
        length = np.sqrt((row**2).sum() + 0.25)
        q = np.array(residuals(loss, (slopes @ row + 0.5 * constants).tolist(), float(label)))
        q *= weight / length * (min(1.0, LONGEST / length) if n_parts == 2 else 1.0)
        expected += [*(row @ q), *(0.5 * q)]
        longest = max(longest, length)
    assert longest > LONGEST
    given = loss, s if n_parts == 2 else s[:, 0], y, [*slopes, *constants], own
    assert np.array(sums(*given)) / UNIT == pytest.approx(expected, abs=1e-6)
    with thread_pool(3) as threads:
        assert sums(*given, threads) == sums(*given)


def test_an_offset_of_the_loss_is_not_added_twice():
    """The margins hold it already, and the loss that goes with them has none."""
    X, y = records()
    given_ = ONE_THREAD, np.arange(12)
    scaling = Scaling(np.zeros(0, dtype=np.int64), 0.1, None)
    model = LinearModel(np.ones((12, 1)), np.zeros(1), scaling)
    plain, moved = (
        build_gradient_rows(X, loss, targets_of(y), *given_).margins(model)
        for loss in (Logistic(C), Logistic(C, 0.4))
    )
    np.testing.assert_array_equal(moved.parts, plain.parts + 0.4)
    assert moved.loss == plain.loss == Logistic(C)


def test_the_bits_do_not_depend_on_threads_and_do_on_the_stream():
    margins, labels = labelled(2.0, 0.3, n_rows=999)
    first = calibrated(margins, labels, Logistic(C), mu=0.1)
    with thread_pool(3) as threads:
        again = calibrated(margins, labels, Logistic(C), mu=0.1, threads=threads)
    assert (again.slope, again.shift) == (first.slope, first.shift)
    assert calibrated(margins, labels, Logistic(C), mu=0.1, seed=1).slope != first.slope


def test_sums_add_up_whatever_records_are_alike():
    rng = np.random.default_rng(5)
    s, y = rng.normal(0.0, 1.0, (300, 2, 1)).round(1), rng.integers(0, 2, 300)
    for weights in (None, rng.choice([0.0, 0.3, 1.0, 2.0, math.nan], 300)):
        own = [None if weights is None else weights[i : i + 1] for i in range(300)]
        each = [
            sums(Logistic(C), s[i : i + 1], y[i : i + 1], [0.7, 2.0, 0.1], own[i])
            for i in range(300)
        ]
        assert sums(Logistic(C), s, y, [0.7, 2.0, 0.1], weights) == np.sum(each, axis=0).tolist()


@given(st.floats(-1e9, 1e9), st.sampled_from([1, 2]))
@example(1e-300, 2)
@example(2.0**10, 1)
@example(-0.0, 2)
def test_rounded_margins_are_near_and_at_most_a_thousand(margin, n_parts):
    points = margin_counts_of(
        np.full((1, n_parts, 1), margin), Logistic(C), targets_of(np.ones(1)), 4.0, ONE_THREAD
    )
    bits = {1: 6, 2: 3}[n_parts]
    assert points.parts.ravel().tolist() == [on_the_grid(np.array(margin), bits)] * n_parts
    if abs(margin) < 1_000.0:
        assert abs(points.parts[0, 0, 0] - margin) <= 2.0 ** -(bits + 1) * (abs(margin) + 2.0**-6)


def slopes_found(parts, y, loss, *, mu=200.0, seed=0, begin=None):
    return find_slopes(
        Margins(parts, loss, targets_of(y), ONE_THREAD, LONGEST),
        loss,
        stream(seed),
        begin or (1.0,) * parts.shape[1],
        np.zeros(loss.n_outputs),
        n_records=len(y),
        mu=mu,
        sensitivity=loss.residual_bound,
        fit_intercept=True,
    )


@pytest.mark.parametrize("slopes", [(1.0, 0.0), (0.0, 1.0), (8.0, 1.0), (0.5, 2.0)])
def test_slopes_that_the_records_ask_for_are_found(slopes):
    rng = np.random.default_rng(1)
    scale = 0.3 if slopes[0] > 1.0 else 1.5
    parts = np.stack([rng.normal(0.0, scale, 20_000), rng.normal(0.0, 1.0, 20_000)], axis=1)
    p = np.array([sigma(m) for m in parts @ slopes + 0.3])
    y = (rng.random(len(p)) < p).astype(np.float64)
    for mu in (math.inf, 5.0):
        own, shift = slopes_found(parts[:, :, np.newaxis], y, Logistic(1.0), mu=mu)
        assert own == pytest.approx(slopes, rel=0.15, abs=0.05)
        assert shift == pytest.approx([0.3], abs=0.06)


def test_what_of_a_start_was_left_comes_back():
    rng = np.random.default_rng(6)
    parts = rng.normal(0.0, [[2.0], [0.5]], (20_000, 2, 1))
    p = np.array([sigma(m) for m in parts[:, 0, 0]])
    y = (rng.random(len(p)) < p).astype(np.float64)
    own, _ = slopes_found(parts, y, Logistic(1.0), mu=0.05, begin=(0.125, 1.0))
    assert own == pytest.approx((1.0, 0.0), abs=0.2)


class FromPrior:
    """Records whose prior gives a margin to each, beside its intercept."""

    def __init__(self, prior, y, loss, own):
        self.prior, self.loss, self._y, self._own = prior, loss, y, own

    def margins(self, _, model):
        margins = self._own[:, np.newaxis] * model.weights[0] + model.intercept
        parts, targets = margins[:, np.newaxis], targets_of(self._y)
        return Margins(parts, self.loss, targets, ONE_THREAD, LONGEST)


def test_slopes_after_slopes_multiply(monkeypatch):
    found = [np.array([0.5, 2.0]), np.array([0.1])]
    monkeypatch.setattr(calibration, "find_slopes", lambda *_, **__: found)
    prior = StartingModel(np.ones((1, 1)), np.zeros(1))
    records = FromPrior(prior, np.zeros(2), Logistic(C), np.ones(2))
    model = LinearModel(np.ones((1, 1)), np.zeros(1), None)
    slope, shift, prior_slope, _ = weigh(records, model, None, np.array([2.0, 0.3]), 0.5)
    assert (slope, shift, prior_slope) == (2.0, pytest.approx([0.4]), 2.0)
    found[0] = found[0][:1]
    assert weigh(records, model, None, np.array([2.0, 0.3]), 0.5)[0] == 1.0


@pytest.mark.parametrize("intercept", [-3.0, 0.5, 1e308])
def test_the_slope_of_a_start_is_that_of_its_weights_whatever_the_intercept(intercept):
    # As of raw rows three times as long: margins are stretched, the intercept is not.
    rng = np.random.default_rng(4)
    own = rng.normal(1.0, 0.5, 20_000)
    true = intercept if intercept < 1e3 else 0.0
    y = (rng.random(own.size) < [sigma(m) for m in 3.0 * own + true]).astype(np.float64)
    prior = StartingModel(np.ones((1, 1)), np.array([intercept]))
    known = {"n_records": own.size, "mu": 50.0, "sensitivity": 1.0, "fit_intercept": True}
    records = FromPrior(prior, y, Logistic(1.0), own)
    start = find_start(records, None, stream(0), **known)
    assert start[0] == pytest.approx(3.0, rel=0.15)
    assert np.isfinite(start).all()
    if intercept < 1e3:
        constant = prior.stretched(start[0], start[1:]).intercept
        assert constant == pytest.approx([true], abs=0.4)


def test_less_of_a_start_is_taken_the_more_is_learnt():
    budgets = [1e-9, 0.028, 0.056, 0.112, 1e4, math.inf]
    assert [part_taken(1_000.0, mu, 56.0) for mu in budgets] == [1.0, 1.0, 1.0, 0.5, 0.125, 0.125]


@pytest.mark.parametrize("neighbors", ["label", "add-remove", "replace-one"])
def test_margins_depend_on_labels_only_where_whole_records_are_private(neighbors, monkeypatch):
    """Two labels of one record have near residuals for equal margins, not for different ones."""
    taken = []
    monkeypatch.setattr(gradient_rows, "leave_out", lambda *_: taken.append(True))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    DPLogisticRegression(40.0, classes=[0, 1], neighbors=neighbors).fit(X, y)
    assert bool(taken) == (neighbors != "label")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_large_budget_does_not_believe_the_rows_that_it_fitted(n_classes):
    # Labels are pure chance, which a fit of more columns than rows learns by heart.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 500)), rng.integers(0, n_classes, 600)
    model = DPLogisticRegression(40.0, classes=range(n_classes), random_state=0)
    told = model.fit(X[:200], y[:200]).predict_proba(X[200:])
    assert log_loss(y[200:], told) < 1.5 * math.log(n_classes)
