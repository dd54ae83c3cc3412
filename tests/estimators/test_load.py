"""A model file gives back the estimator that it is of."""

import numpy as np
import pytest

import dplasso
from dplasso.errors import ModelFileError
from dplasso.gradient_descent.state import empty_state
from dplasso.model import Model, read_model, write_model


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 6)) < 0.5).astype(np.float32)
    return X, X[:, 0].astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        dplasso.DPLassoClassifier(n_iter=5),
        dplasso.DPLogisticRegression(n_iter=5),
        dplasso.DPLogisticRegression(n_iter=6, max_weights=2, row_norm=3.0, residual_bound=0.8),
        dplasso.DPLogisticRegression(n_iter=5, max_weights="significant", fit_intercept=False),
        dplasso.DPLogisticRegression(epsilon=float("inf"), n_iter=5),
    ],
    ids=lambda estimator: str(estimator),
)
def test_the_same_predictions(data, tmp_path, estimator):
    X, y = data
    estimator.fit(X, y).save(tmp_path / "model.npz")
    again = dplasso.load(tmp_path / "model.npz")
    assert type(again) is type(estimator)
    assert again.get_params() == estimator.get_params()
    assert (again.predict_proba(X) == estimator.predict_proba(X)).all()
    assert again.privacy_ == estimator.privacy_
    for name in ("coef_standard_error_", "transcript_"):
        assert getattr(again, name, None) == getattr(estimator, name, None)


def rewritten(path, **changes):
    model = read_model(path)
    values = {name: getattr(model, name) for name in Model.__dataclass_fields__} | changes
    write_model(Model(**values), path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: {"params": model.params | {"row_norm": "long"}}, "row_norm must be"),
        (lambda model: {"params": model.params | {"l1_radius": 1.0}}, "l1_radius"),
        (lambda model: {"params": model.params | {"epsilon": -1.0}}, "epsilon must be"),
    ],
)
def test_a_file_whose_parameters_make_no_estimator_is_refused(data, tmp_path, change, reason):
    path = tmp_path / "model.npz"
    dplasso.DPLogisticRegression(n_iter=5).fit(*data).save(path)
    rewritten(path, **change(read_model(path)))
    with pytest.raises(ModelFileError, match=reason):
        dplasso.load(path)


def test_a_fit_that_is_not_complete_is_no_model(data, tmp_path):
    path = tmp_path / "model.npz"
    dplasso.DPLogisticRegression(n_iter=5).fit(*data).save(path)
    state = empty_state(6)
    rewritten(path, release=type(state)(**(vars(state) | {"done": 5})))
    with pytest.raises(ModelFileError, match="gradient state is not a complete fit"):
        dplasso.load(path)
