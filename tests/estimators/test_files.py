"""A model file is of the fit that was made, and gives back its estimator or is refused."""

from dataclasses import replace

import numpy as np
import pytest

from dplasso import load
from dplasso.errors import ModelFileError
from dplasso.model import read_model, write_model
from dplasso.phases.released import Released
from estimators.kinds import each_kind, few, make


@each_kind
def test_what_was_set_since_the_fit_is_not_in_the_file(kind, tmp_path):
    X, y = few(kind)
    model = make(kind).fit(X, y)
    expected = model.predict(X)
    model.set_params(epsilon=0.01, delta=1e-9, neighbors="replace-one", fit_intercept=False)
    np.testing.assert_array_equal(model.predict(X), expected)
    model.save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert (loaded.epsilon, loaded.delta, loaded.neighbors) == (1.0, 1e-6, "add-remove")
    assert loaded.fit_intercept
    assert loaded.privacy_ == model.privacy_
    np.testing.assert_array_equal(loaded.predict(X), expected)


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ({"row_norm": "long"}, "row_norm must be"),
        ({"l1_radius": 1.0}, "no estimator has these parameters"),
        ({"epsilon": -1.0}, "epsilon must be"),
    ],
)
def test_a_file_that_makes_no_fitted_estimator_is_refused(tmp_path, parameter, reason):
    path = tmp_path / "model.npz"
    make("logistic").fit(*few("logistic")).save(path)
    model = read_model(path)
    write_model(replace(model, params=model.params | parameter), path)
    with pytest.raises(ModelFileError, match=reason):
        load(path)


def test_a_fit_that_is_not_complete_makes_no_model():
    model = make("logistic").fit(*few("logistic")).model_
    with pytest.raises(ValueError, match="not complete"):
        replace(model, released=Released(model.released.entries[:1]))
