"""Checkpoints of noisy gradient descent: what was released stays, and is paid for once."""

import math

import numpy as np
import pytest

from dplasso import DPLogisticRegression
from dplasso.checkpoint.session import (
    mark_finished,
    read_checkpoint,
    resume_fit,
)
from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store
from dplasso.errors import CheckpointError
from dplasso.gradient_descent import run
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.state import GradientState
from dplasso.ledger import create_ledger, read_budgets

STEPS = 30


def model(**options):
    return DPLogisticRegression(**({"epsilon": 2.0, "n_iter": STEPS} | options))


def same_model(one, other):
    assert one.model_.release.agrees_with(other.model_.release)
    assert one.coef_standard_error_ == other.coef_standard_error_
    assert one.privacy_ == other.privacy_


OPTIONS = {"dense": {}, "short": {"max_weights": 2}, "significant": {"max_weights": "significant"}}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("repeatable", [{"random_state": 7}, {"epsilon": math.inf}])
def test_a_repeatable_fit_ends_as_the_very_same_model(
    data, path, killed_after, options, repeatable
):
    options = options | repeatable
    whole = model(**options).fit(*data)
    killed_after(13, model(**options), data, path)
    assert len(read_checkpoint(path).release) == 11
    killed_after(8, model(**options), data, path, resume=True)
    assert len(read_checkpoint(path).release) == 19
    same_model(resume_fit(model(**options), *data, path), whole)
    # Complete: the same again, and no seed but this.
    same_model(resume_fit(model(**options), *data, path), whole)
    if "random_state" in options:
        with pytest.raises(CheckpointError, match="different steps from those of this fit"):
            resume_fit(model(**options | {"random_state": 8}), *data, path)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("count", [2, 3, 13, STEPS + 1])
def test_an_unrepeatable_fit_keeps_what_was_released(
    data, path, monkeypatch, killed_after, options, count
):
    killed_after(count, model(**options), data, path)
    before = read_checkpoint(path).release
    assert isinstance(before, GradientState)
    # Written before anything is drawn, after the count, and after every gradient.
    assert len(before) == count - 2
    # The count is not drawn again, and the next state is one noisy gradient further.
    monkeypatch.setattr(run, "noisy_counts", None)
    if 2 < count < STEPS:
        killed_after(1, model(**options), data, path, resume=True)
        after = read_checkpoint(path).release
        assert len(after) == count - 1
        assert after.numbers[0] == before.numbers[0]
        if before.columns.size == after.columns.size:
            # w moves by h m, and m holds what there was.
            step = (before.weights - after.weights) / after.velocity
            np.testing.assert_allclose(step, step[0], rtol=1e-9)
    fitted = resume_fit(model(**options), *data, path)
    assert fitted.n_iter_ == STEPS
    whole = read_checkpoint(path).release
    assert isinstance(whole, NoisyWeights)
    assert whole.agrees_with(fitted.model_.release)
    again = resume_fit(model(**options), *data, path)
    same_model(again, fitted)
    mark_finished(path)
    with pytest.raises(CheckpointError, match="nothing to resume"):
        resume_fit(model(**options), *data, path)


def test_a_fit_goes_on_with_a_store_of_the_same_records(data, path, tmp_path, killed_after):
    """Checkpoints know original column numbers alone."""
    X, y = data
    store = write_store(matrix_source(X, np.zeros(80)), tmp_path / "a.store", memory=2**27)
    options = {"random_state": 7, "max_weights": 2}
    whole = model(**options).fit(X, y)
    killed_after(12, model(**options), data, path)
    same_model(resume_fit(model(**options), store.X, y, path), whole)


@pytest.mark.parametrize("count", [2, 4, STEPS + 3])
def test_a_killed_fit_is_charged_once(data, path, tmp_path, killed_after, count):
    ledger = tmp_path / "team.ledger"
    create_ledger(ledger, 2.5, 1e-5)
    options = {"ledger": ledger, "max_weights": 2}
    killed_after(count, model(**options), data, path)
    fitted = resume_fit(model(**options), *data, path)
    (entry,) = read_budgets(ledger)[0].entries
    assert entry.state == "finished"
    assert entry.charge.rho == pytest.approx(fitted.privacy_.mu**2 / 2 * 1e30, rel=1e-6)
    with pytest.raises(CheckpointError, match="charged to"):
        resume_fit(model(max_weights=2), *data, path)


def test_another_fit_is_refused(data, path, killed_after):
    killed_after(9, model(max_weights=2), data, path)
    for changes, message in (
        ({"max_weights": 3}, "max_weights=2"),
        ({"n_records": 80}, "n_records=None"),
        ({"row_norm": 2.0}, "row_norm='unit'"),
        ({"rows_per_person": 2}, "rows_per_person=1"),
        ({"epsilon": 3.0}, "epsilon=2.0"),
        ({"random_state": 1}, "another privacy statement"),
    ):
        with pytest.raises(CheckpointError, match=message):
            resume_fit(model(**{"max_weights": 2} | changes), *data, path)


def test_a_checkpoint_holds_nothing_else_of_the_data(data, path, killed_after):
    killed_after(9, model(), data, path)
    release = read_checkpoint(path).release
    arrays = release.arrays()
    assert {name: array.size for name, array in arrays.items()} == {
        "weights": 41,
        "velocity": 41,
        "averaged": 41,
        "columns": 0,
        # Gradients taken, the noisy count, and a standard error.
        "numbers": 3,
    }
    assert release.numbers[0] != 80
