"""Raw columns, far from 0 or of units of their own: what their fits find, and who reads them."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

from cli.conftest import done
from dplasso import DPLinearRegression, DPLogisticRegression, PublicEncoder, load, save, write_store
from dplasso.errors import ParameterError
from schemas import Number, Schema


def far(n_rows=6_000):
    """Return rows whose columns lie far from 0, and margins; a twentieth of one column is 0."""
    rng = np.random.default_rng(8)
    X, weights = rng.normal(size=(n_rows, 6)), np.array([1.0, 0.0, 1.0, -2.0, 1.5, 1.0])
    moved = X * [1.0, 2.0, 300.0, 1.0, 0.1, 4.0] + [-120.0, 37.0, 2e4, 0.0, 5.0, 30.0]
    moved[rng.random(n_rows) < 0.05, 1] = 0.0
    return X, moved, X @ weights


@pytest.mark.parametrize("max_weights", [None, 4])
def test_columns_far_from_zero_are_centred(max_weights):
    X, moved, margins = far()
    y, found = margins > 0, []
    model = DPLogisticRegression(1.0, max_weights=max_weights, classes=[0, 1], random_state=0)
    for rows in (X, moved, sp.csc_array(moved)):
        model.fit(rows[:4_000], y[:4_000])
        found.append(roc_auc_score(y[4_000:], model.decision_function(rows[4_000:])))
    assert found[1] == found[2] > found[0] - 0.06
    kept = model.coef_.indices if max_weights else np.arange(6)
    distances = np.abs(model.column_center_ - moved.mean(axis=0)[kept])
    assert np.max(distances / moved.std(axis=0)[kept]) < 0.5
    # Power: by their sizes alone, rows say little.
    raw = DPLogisticRegression(1.0, classes=[0, 1], row_norm=2e4, random_state=0)
    raw.fit(moved[:4_000], y[:4_000])
    assert roc_auc_score(y[4_000:], raw.decision_function(moved[4_000:])) < 0.7


def test_a_regression_keeps_the_lengths_of_centred_rows():
    """Nearly as good as least squares, which unit rows are not."""
    _, moved, margins = far()
    y = np.clip(margins + np.random.default_rng(1).normal(size=6_000), -8.0, 8.0)
    best = LinearRegression().fit(moved, y).score(moved, y)
    model = DPLinearRegression(1.0, target_bounds=(-8.0, 8.0), random_state=0)
    assert model.fit(moved, y).score(moved, y) > best - 0.04


def test_a_model_of_centred_columns_reads_rows_elsewhere_alike(tmp_path):
    """From a file, of a store, as scikit-learn and as ONNX; but it is no prior."""
    _, moved, margins = far(3_000)
    # Rows that are mostly other columns have unit length, which scikit-learn can say.
    moved = np.hstack([moved, np.random.default_rng(9).integers(0, 2, (3_000, 60))])
    model = DPLogisticRegression(3.0, classes=[0, 1], random_state=0).fit(moved, margins > 0)
    expected = model.decision_function(moved)
    save(model, tmp_path / "m.npz")
    store = write_store(tmp_path / "rows.store", moved, margins > 0).X
    assert np.array_equal(load(tmp_path / "m.npz").decision_function(moved), expected)
    assert np.array_equal(model.decision_function(store), expected)
    moved[:5] *= 1e6
    moved[5:10, :3] *= -1e300
    expected = model.decision_function(moved)
    assert model.to_sklearn().decision_function(moved) == pytest.approx(expected, abs=1e-5)
    run = onnxruntime.InferenceSession(model.to_onnx().SerializeToString()).run
    rows = np.clip(moved, -3e38, 3e38).astype(np.float32)
    assert run(None, {"X": rows})[1] == pytest.approx(model.predict_proba(rows), abs=1e-6)
    with pytest.raises(ParameterError, match="is a model that centred columns"):
        DPLogisticRegression(3.0, classes=[0, 1], prior=model).fit(moved, margins > 0)


def unlike(n_rows=6_000, n_columns=12):
    """Return rows in one unit, units of the columns from 0.01 to 10,000, and margins."""
    rng = np.random.default_rng(5)
    X, weights = rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_columns)
    return X, 10.0 ** rng.permutation(np.linspace(-2.0, 4.0, n_columns)), X @ weights


@pytest.mark.parametrize("max_weights", [None, 6])
def test_a_column_of_large_numbers_hides_no_other(max_weights):
    """Nearly as good as in one unit; a short list depends on the rounding of units."""
    X, units, margins = unlike()
    y = (margins > 0).astype(int)
    model = DPLogisticRegression(1.0, max_weights=max_weights, classes=[0, 1], random_state=0)
    found = []
    for rows in (X, X * units, sp.csc_array(X * units)):
        model.fit(rows[:4_000], y[:4_000])
        found.append(roc_auc_score(y[4_000:], model.decision_function(rows[4_000:])))
    assert found[0] > (0.97 if max_weights is None else 0.8)
    assert found[1] == found[2] > found[0] - 0.05
    kept = model.coef_.indices if max_weights else np.arange(12)
    assert np.ptp(np.log2(model.column_scale_ * units[kept])) < 3.0
    assert finds_units(model)


def test_a_regression_finds_units_too():
    X, units, margins = unlike()
    model = DPLinearRegression(1.0, target_bounds=(-1.0, 1.0), random_state=0)
    y = np.sign(margins)
    assert model.fit(X * units, y).score(X * units, y) > 0.5


def finds_units(model):
    return "magnitudes" in {release.name for release in model.privacy_.releases}


def test_columns_of_a_schema_or_of_a_known_length_have_one_unit():
    X, _, margins = unlike(2_000)
    for row_norm, there in (("unit", True), (3.0, False)):
        model = DPLogisticRegression(1.0, row_norm=row_norm, classes=[0, 1], random_state=0)
        assert finds_units(model.fit(X, margins > 0)) == there
    schema = Schema([Number(f"x{j}", 5.0, 0.0, "ignore") for j in range(12)])
    table = pd.DataFrame(X).add_prefix("x")
    model = DPLogisticRegression(1.0, classes=[0, 1], random_state=0)
    assert not finds_units(model.fit(PublicEncoder(schema).transform(table), margins > 0))


@pytest.mark.parametrize("binarize", [[], ["--binarize"]], ids=["plain", "binarized"])
def test_files_without_a_schema_may_have_any_units(tmp_path, binarize):
    X, units, margins = unlike(2_000)
    path, store, model = (tmp_path / name for name in ("rows.svm", "rows.store", "m.npz"))
    dump_svmlight_file(X * units, margins > 0, str(path), zero_based=False)
    done("convert", path, store, "--features", 12, *binarize)
    asked = "--epsilon", 1, "--classes", "0,1", "--model", model, "--force"
    for given in ([path, "--features", 12, *binarize], [store]):
        done("fit", *given, *asked)
        assert finds_units(load(model)) == (not binarize)
