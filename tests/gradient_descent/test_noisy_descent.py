"""Whole runs: the reference's bits, whatever the layout; and the optimum, without noise."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from dplasso.gradient_descent import noisy_descent
from dplasso.gradient_descent.noisy_descent import gradient_unit
from dplasso.gradient_descent.schedule import Schedule, schedule_for
from dplasso.losses.logistic import Logistic
from dplasso.losses.multinomial import Multinomial
from dplasso.privacy.accounting import LARGEST_SCALE
from dplasso.runtime.threads import thread_pool
from gradient_descent.cases import average, records, solver, some_halvings, stream
from gradient_descent.reference import descend, noise

NOISY = Schedule(12, 0.05, 0.8, 9, 3.0, 0.5)
EXACT = Schedule(12, 0.05, 0.8, 9, 0.0, 0.5)


def state(run):
    return np.concatenate([run.weights, run.velocity, run.averaged])


@pytest.mark.parametrize("constant", [0.0, 0.1])
@pytest.mark.parametrize("schedule", [NOISY, EXACT], ids=["noisy", "exact"])
@pytest.mark.parametrize("loss", [Logistic(0.5), Multinomial(3, 0.5)], ids=["one", "several"])
@pytest.mark.parametrize("values", ["mixed", "scaled", "threes scaled", "two", "scaled five"])
def test_a_run_is_the_reference_s_to_the_bit(values, loss, schedule, constant):
    X, y = records(dtype=np.float32)
    if "threes" in values:
        X = np.where(X != 0.0, 3.0, 0.0).astype(np.float32)
    size, unit = (12 + bool(constant)) * loss.n_outputs, 2.0**33
    added = np.zeros((12, size), dtype=np.int64)
    if schedule.noise_scale:
        added = noise(stream(), size, (schedule.noise_scales * unit).tolist())
    start = np.random.default_rng(8).normal(size=size)
    options = {"constant": constant, "start": start}
    options |= {"scale_exponents": some_halvings()} if "scaled" in values else {}
    if values in ("two", "scaled five"):
        options |= {"most": 2 if values == "two" else 5, "constant_steps": 3.0}
        options["sizes"] = np.random.default_rng(9).uniform(0.2, 2.0, 12)
    iterates, expected = descend(X, y, schedule, added, loss, unit, **options)
    run = solver(X, y, schedule, loss=loss, **options)
    np.testing.assert_array_equal(run.weights, iterates[-1])
    np.testing.assert_array_equal(average(run), expected)
    # The caller's start is a copy.
    assert start is not run.weights


def test_threads_and_blocks_do_not_show_in_several_outputs():
    """More columns than share a stream of noise, on three threads."""
    n_columns = noisy_descent.BLOCK // 7 + 40
    rng = np.random.default_rng(2)
    X = sp.random_array((30, n_columns), density=0.01, format="csr", rng=rng)
    y, loss = rng.integers(0, 7, 30), Multinomial(7, 0.8)
    options = {"schedule": Schedule(2, 0.1, 0.8, 1, 3.0, 0.5), "loss": loss, "constant": 0.1}
    plain = solver(X, y, **options)
    assert len(plain._blocks) == 2
    with thread_pool(3) as threads:
        np.testing.assert_array_equal(
            solver(X, y, threads=threads, **options).weights, plain.weights
        )


def test_how_columns_are_cut_into_blocks_shows_only_in_the_noise(monkeypatch):
    X, y = records()
    expected, noisy_run = (state(solver(X, y, s, constant=0.1)) for s in (EXACT, NOISY))
    # 13 coordinates: the constant alone in the last block, too.
    for block in (1, 4, 12):
        monkeypatch.setattr(noisy_descent, "BLOCK", block)
        np.testing.assert_array_equal(state(solver(X, y, EXACT, constant=0.1)), expected)
        assert (state(solver(X, y, NOISY, constant=0.1)) != noisy_run).mean() > 0.5


def test_no_two_blocks_and_no_two_runs_share_noise(monkeypatch):
    monkeypatch.setattr(noisy_descent, "BLOCK", 4)
    nothing, y = np.zeros((5, 40)), np.zeros(5)
    words = stream()
    found = [solver(nothing, y, NOISY, words=words).velocity for _ in range(2)]
    values = np.abs(np.concatenate(found))
    assert np.unique(values).size == values.size == 80


@pytest.mark.parametrize("bound", [0.5, 0.7, 1.0])
def test_units_leave_room_for_sums_and_for_noise(bound):
    assert bound * gradient_unit(bound, 0.0) == pytest.approx(2.0**32, rel=1e-15)
    for scale in (1e-3, 1e3, 1e5, 1e9, 1e60):
        unit = gradient_unit(bound, scale)
        assert bound * unit <= 2.0**32 * (1 + 2**-52)
        assert scale * unit <= LARGEST_SCALE
        assert unit == gradient_unit(bound, 0.0) or scale * unit > LARGEST_SCALE / 2


def test_without_noise_it_comes_to_the_optimum():
    X, y = records(300, 8, density=0.7, seed=2)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    z = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0) * math.sqrt(0.99)
    z = np.hstack([z, np.full((300, 1), 0.1)])

    def loss(w):
        margins = z @ w
        q = 1 / (1 + np.exp(-margins)) - y
        return float(np.logaddexp(0, margins).sum() - margins @ y), z.T @ q

    best = minimize(loss, np.zeros(9), jac=True, method="BFGS", options={"gtol": 1e-9}).fun

    def gap(schedule):
        run = solver(X, y, schedule, loss=Logistic(), constant=0.1)
        return loss(average(run))[0] - best

    # The more steps a fit takes, the more momentum they have, and the longer they swing.
    gaps = [gap(schedule_for(300, math.inf, 1.0, n_steps)) for n_steps in (10, 100, None)]
    assert all(later < earlier / 5 for earlier, later in pairwise(gaps))
    assert gaps[-1] < 1e-6 * best
