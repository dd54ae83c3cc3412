"""No model file is larger than was computed from public numbers."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Prior,
)
from dplasso.estimators.fitting import method_of
from recorded_fits import short_runs

BOUNDS = {"target_bounds": (0.0, 1.0)}
PUBLIC = sp.random_array((100, 3000), density=0.02, format="csr", rng=np.random.default_rng(4))
FITS = {
    "lasso": DPLassoClassifier(20.0, max_weights=20),
    "lasso, all columns": DPLassoClassifier(20.0, max_weights=3000),
    "lasso of numbers": DPLasso(20.0, max_weights=20, **BOUNDS),
    "vertices": DPFrankWolfeClassifier(1.0, n_iter=4000, l1_radius=5.0),
    "logistic": DPLogisticRegression(2.0),
    "short list": DPLogisticRegression(2.0, max_weights=20),
    "significant": DPLogisticRegression(50.0, max_weights="significant"),
    "public rows": DPLogisticRegression(2.0, public_rows=PUBLIC),
    "public rows, short list": DPLogisticRegression(2.0, public_rows=PUBLIC, max_weights=20),
    "public rows, short list of a lasso": DPLassoClassifier(2.0, public_rows=PUBLIC),
    "linear": DPLinearRegression(2.0, **BOUNDS),
}


@pytest.mark.parametrize(("n_classes", "named"), [(2, False), (5, True)])
@pytest.mark.parametrize("name", FITS)
def test_the_largest_size(name, named, n_classes, tmp_path):
    rng = np.random.default_rng(2)
    X = sp.random_array((300, 3000), density=0.02, format="csr", rng=rng, dtype=np.float32)
    labels = np.array([f"label {'é' * 30} {k}" for k in range(n_classes)])
    y = labels[rng.integers(0, n_classes, 300)]
    model, classes = FITS[name], labels
    if "target_bounds" in model.get_params():
        y, classes = rng.random(300), np.zeros(0)
    if named:
        X = pandas.DataFrame(X.toarray(), columns=[f"column «{j}»" for j in range(3000)])
    with short_runs():
        model.fit(X, y)
    model.save(tmp_path / "m.npz")
    size = (tmp_path / "m.npz").stat().st_size
    method = method_of(model)
    names = getattr(model, "feature_names_in_", None)
    most = method.model_bytes(3000, classes, names)
    assert size <= most
    if name in ("logistic", "linear", "vertices"):
        assert most < 8 * size + 2**17


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_largest_size_from_a_prior(share, kind, tmp_path):
    rng = np.random.default_rng(3)
    X = sp.random_array((300, 3000), density=0.02, format="csr", rng=rng, dtype=np.float32)
    prior = np.where(rng.random(3000) < share, rng.normal(size=3000), 0.0)
    model = kind(20.0, prior=Prior(prior, standard_error=rng.random(3000)))
    with short_runs():
        model.fit(X, rng.integers(0, 2, 300)).save(tmp_path / "m.npz")
    method = method_of(model)
    most = method.model_bytes(3000, model.classes_)
    assert (tmp_path / "m.npz").stat().st_size <= most
