"""Checkpoints of noisy gradient descent: what was released stays, and is paid for once."""

import numpy as np
import pytest

from dplasso import DPLogisticRegression
from dplasso.checkpoint import mark_finished, read_checkpoint, resume_fit
from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store
from dplasso.errors import CheckpointError
from dplasso.gradient_descent import measures
from dplasso.gradient_descent.release import NoisyWeights
from dplasso.gradient_descent.state import GradientState

STEPS = 30


def model(**options):
    return DPLogisticRegression(**({"epsilon": 2.0, "n_iter": STEPS} | options))


def same_model(one, other):
    assert one.model_.release.agrees_with(other.model_.release)
    np.testing.assert_array_equal(one.coef_standard_error_, other.coef_standard_error_)
    assert one.privacy_ == other.privacy_


OPTIONS = {
    "dense": {},
    "short": {"max_weights": 2},
    "significant": {"max_weights": "significant"},
    "balanced": {"class_weight": "balanced"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("count", [2, 3, 13, STEPS + 1])
def test_an_unrepeatable_fit_keeps_what_was_released(
    data, path, monkeypatch, killed, options, count
):
    killed(model(**options), data, path, count)
    before = read_checkpoint(path).release
    assert isinstance(before, GradientState)
    # Written before anything is drawn, after the count, and after every gradient.
    assert len(before) == count - 2
    # The count is not drawn again, and the next state is one noisy gradient further.
    monkeypatch.setattr(measures, "noisy_counts", None)
    if 2 < count < STEPS:
        killed(model(**options), data, path, 1)
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


@pytest.mark.parametrize("count", [2, 9])
def test_what_the_classes_weigh_is_kept(data, path, killed, count):
    X, y = data
    y = np.where(np.arange(len(y)) % 3, np.unique(y)[0], y)
    options = {"class_weight": "balanced", "epsilon": 60.0, "random_state": 3}
    whole = model(**options).fit(X, y)
    killed(model(**options), (X, y), path, count)
    assert read_checkpoint(path).release.counts.size == 2
    same_model(resume_fit(model(**options), X, y, path), whole)
    plain = model(**options | {"class_weight": None}).fit(X, y)
    assert not np.allclose(plain.coef_, whole.coef_, atol=0.1)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("count", [2, 9, 52])
def test_a_fit_that_chooses_its_number_of_gradients(data, path, killed, seed, count):
    """Of 80 records it takes 50 of the 400 that it may: it is complete all the same."""
    options = {"n_iter": "auto", "random_state": seed}
    whole = model(**options).fit(*data)
    assert whole.n_iter_ == 50
    killed(model(**options), data, path, count)
    fitted = resume_fit(model(**options), *data, path)
    assert fitted.n_iter_ == 50
    if seed is not None:
        same_model(fitted, whole)
    kept = read_checkpoint(path)
    assert kept.is_complete
    assert kept.release.agrees_with(fitted.model_.release)
    same_model(resume_fit(model(**options), *data, path), fitted)
    mark_finished(path)


def test_energies_are_in_the_checkpoint_and_not_drawn_again(path, killed, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1600, 12)) * (rng.random((1600, 12)) < 0.5)
    many = X, np.where(X[:, 0] > 0, "no", "yes")
    options = {"epsilon": 100.0, "n_iter": 12}
    for count in (2, 3, 7):
        path.unlink(missing_ok=True)
        killed(model(**options), many, path, count)
        before = read_checkpoint(path).release
        assert len(before) == count - 2
        assert before.energies.size == 12
        with monkeypatch.context() as patch:
            patch.setattr(measures, "noisy_counts", None)
            patch.setattr(measures.Measures, "energies", None)
            fitted = resume_fit(model(**options), *many, path)
        np.testing.assert_array_equal(fitted.model_.release.energies, before.energies)


def test_a_fit_goes_on_with_a_store_of_the_same_records(data, path, tmp_path, killed):
    """Checkpoints know original column numbers alone."""
    X, y = data
    store = write_store(matrix_source(X, np.zeros(80)), tmp_path / "a.store", memory=2**27)
    options = {"random_state": 7, "max_weights": 2}
    whole = model(**options).fit(X, y)
    killed(model(**options), data, path, 12)
    same_model(resume_fit(model(**options), store.X, y, path), whole)


def test_a_checkpoint_holds_nothing_else_of_the_data(data, path, killed):
    killed(model(), data, path, 9)
    release = read_checkpoint(path).release
    arrays = release.arrays()
    assert {name: array.size for name, array in arrays.items()} == {
        "weights": 41,
        "velocity": 41,
        "averaged": 41,
        "columns": 0,
        # Gradients taken, the noisy count, a standard error, a bound on the curvature, and the
        # margin it started from.
        "numbers": 5,
    }
    assert release.numbers[0] != 80
