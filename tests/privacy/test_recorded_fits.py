"""Nothing that leaves a fit moves further than its noise was made for; rows touch no other row."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isolated_rows
import recorded_fits
from dplasso import DPLogisticRegression
from dplasso.gradient_descent import calibration, noisy_descent
from dplasso.phases import count, phase
from isolated_records import Records, matrix
from processes import python
from recorded_fits import CASES, RELATIONS, SCALED, SCALED_ROWS, compare_pair, draw_pair
from recorder import compare

GRADIENTS = {name: case for name, case in CASES.items() if not case.draws}


@pytest.mark.parametrize("name", GRADIENTS)
def test_neighbours_differ_by_no_more_than_the_sensitivity(name):
    # Relations and forms take turns from case to case, and within the cases of some families.
    number = 3 if name.startswith(("logistic", "score", "columns")) else 1
    number = number if "," in name else 6
    found = recorded_fits.run(number, {name: GRADIENTS[name]}, seed=1)
    assert found.violations == 0
    assert found.statistics > 0
    if "far" in name:
        assert found.centred == 2 * found.pairs
    elif "scaled short list" in name:
        # Rows that keep their lengths may be too short for scales.
        assert found.scaled > found.pairs
    elif "pairs" not in name:
        assert found.scaled == (2 * found.pairs if "scaled" in name else 0)
    # A fit and a score release what they were charged for, and what can be bought for it.
    assert found.spent > 0.99 or "search" in name


def interpreted(*words):
    """Run a script without the compiler, which would take longer than its fits."""
    return json.loads(python(*words, NUMBA_DISABLE_JIT="1").stdout)


def test_vertices_are_drawn_from_gradients_that_move_no_further():
    strict = "-W", "error", "-W", "ignore:Caution:RuntimeWarning"
    found = interpreted(*strict, recorded_fits.__file__, "1", "draws")
    assert found["violations"] == 0
    # Records that fill their share are among the pairs.
    assert found["largest"] > 0.9


FEW = ("logistic", "three classes", "linear", "logistic, short list", "lasso")


@settings(max_examples=30)
@given(
    st.sampled_from(FEW),
    st.sampled_from(RELATIONS),
    st.sampled_from(("csr", "dense", "partitions")),
    st.integers(0, 2**32),
)
def test_pairs_that_nobody_thought_of(name, relation, form, seed):
    pair = draw_pair(np.random.default_rng(seed), CASES[name], relation)
    assert not compare_pair(CASES[name], relation, form, pair).violations


def test_stored_zeros_are_no_entries_whoever_stands_beside_them():
    zeros = [(np.arange(3, dtype=np.int32), np.zeros(3))] * SCALED_ROWS
    other = np.array([0], dtype=np.int32), np.ones(1)

    def work(rows):
        X = matrix(Records(tuple(rows), np.zeros(len(rows))))
        return DPLogisticRegression(classes=[0, 1], **SCALED).fit(X, np.arange(len(rows)) % 2)

    assert not compare(work, zeros, [*zeros, other]).violations


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *((noisy_descent, "logistic"), (calibration, "logistic"), (count, "logistic")),
        (phase, "logistic, scaled"),
        (phase, "linear, intervals"),
    ],
)
def test_noise_for_half_the_sensitivity_is_caught(module, name, monkeypatch):
    release = module.release

    def half(statistic, sensitivity, noise):
        return release(statistic, sensitivity / 2.0, noise)

    monkeypatch.setattr(module, "release", half)
    assert recorded_fits.run(8, {name: CASES[name]}, seed=1).violations


TRIALS = {"gradients": 24, "scores": 60, "edges": 20}


@pytest.mark.parametrize("kind", TRIALS)
def test_a_record_that_must_not_count_changes_nothing(kind, capsys):
    found = isolated_rows.run(TRIALS[kind], (kind,))
    assert found.failed == 0, capsys.readouterr().err
    assert found.statistics > 0


def test_nor_what_vertices_are_drawn_from():
    assert interpreted(isolated_rows.__file__, "5", "draws", "8")["failed"] == 0
