"""Checkpoints of a LASSO that chooses its settings: what was released stays, in whichever part."""

import numpy as np
import pytest
from sklearn.base import clone

from dplasso import DPLassoClassifier
from dplasso.checkpoint.session import fit_with_checkpoints, read_checkpoint, resume_fit
from dplasso.errors import CheckpointError
from dplasso.fit import column_plan
from dplasso.model.staged import StagedRelease
from fit.cases import four_classes, records, same_model


@pytest.mark.parametrize("count", [3, 31, 116])
@pytest.mark.parametrize("make", [records, four_classes])
def test_going_on_draws_only_what_is_left(make, count, path, killed):
    data = make()
    model = DPLassoClassifier(20.0, n_iter=20)
    killed(model, data, path, count)
    before = read_checkpoint(path).release
    assert isinstance(before, StagedRelease)
    assert 0 < len(before) < before.n_steps
    resume_fit(model, *data, path, seconds=0)
    after = model.model_.release
    np.testing.assert_array_equal(after.counts, before.counts)
    drawn = len(before.vertices)
    np.testing.assert_array_equal(
        after.vertices.transcript.vertex[:drawn], before.vertices.transcript.vertex
    )
    assert (before.weights is None) == (len(before) <= 20)
    assert read_checkpoint(path).is_complete


def test_class_weights_may_go_by_the_names_of_labels_from_the_data(data, path):
    model = DPLassoClassifier(20.0, n_iter=5, class_weight={"no": 1.0, "yes": 2.0})
    first = fit_with_checkpoints(model, *data, path)
    again = resume_fit(clone(model), *data, path)
    same_model(first, again)
    with pytest.raises(CheckpointError, match="class_weight="):
        resume_fit(clone(model).set_params(class_weight={"no": 1.0, "yes": 3.0}), *data, path)


@pytest.mark.parametrize("make", [records, four_classes])
@pytest.mark.parametrize("count", [120, 208, 218, 250])
def test_a_fit_that_keeps_columns_goes_on_to_the_very_same_model(
    make, count, path, killed, monkeypatch
):
    """Before its gradients, among those of all columns, after the last of them, and later."""
    monkeypatch.setattr(column_plan, "_LONGEST_ROWS", 1.0)
    data, model = make(), DPLassoClassifier(20.0, random_state=7)
    killed(clone(model), data, path, count)
    assert read_checkpoint(path).release.done == count - 2
    same_model(resume_fit(clone(model), *data, path), model.fit(*data))
    assert model.n_iter_ == 0
