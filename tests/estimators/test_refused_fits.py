"""A refused fit spends nothing and changes nothing; what is saved is the fit that was made."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from data.store.reference import block_source
from dplasso import DPLassoClassifier, DPLogisticRegression, load, open_store
from dplasso.data.store import write_store
from dplasso.errors import DataError
from dplasso.ledger import create_ledger, read_budgets

ESTIMATORS = [
    pytest.param(lambda **given: DPLassoClassifier(n_iter=5, **given), id="lasso"),
    pytest.param(lambda **given: DPLogisticRegression(n_iter=5, **given), id="logistic"),
]


def data(n_columns=4):
    rng = np.random.default_rng(0)
    X = sp.random_array((30, n_columns), density=0.5, format="csr", rng=rng).astype(np.float32)
    return X, rng.integers(0, 2, 30)


def frame(names):
    return pd.DataFrame(data(len(names))[0].toarray(), columns=list(names))


@pytest.mark.parametrize("make", ESTIMATORS)
def test_a_refused_refit_leaves_the_model_and_its_names(make, tmp_path):
    model = make().fit(frame("abcd"), data()[1])
    weights, statement = model.coef_, model.privacy_
    other = frame("vwxyz")
    other.iloc[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(other, data()[1])
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1).fit(frame("vwxyz"), data()[1])
    assert model.coef_ is weights
    assert model.privacy_ is statement
    assert model.feature_names_in_.tolist() == list("abcd")
    model.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("make", ESTIMATORS)
def test_parameters_set_after_the_fit_are_not_saved(make, tmp_path):
    model = make(epsilon=1.0, delta=1e-6).fit(*data())
    model.set_params(epsilon=0.01, delta=1e-9, neighbors="replace-one").save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert (loaded.epsilon, loaded.delta, loaded.neighbors) == (1.0, 1e-6, "add-remove")
    assert loaded.privacy_ == model.privacy_
    assert loaded.privacy_.epsilon_requested == loaded.epsilon


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize(
    "classes", [pd.Index([0, 1]), pd.Series([0, 1]), range(2), (0, 1), np.array([0, 1])]
)
def test_classes_of_any_kind_can_be_saved(make, classes, tmp_path):
    make(classes=classes).fit(*data()).save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").classes_.tolist() == [0, 1]


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("rows.values", np.nan),
        ("columns.values", np.inf),
        ("rows.indices", 4),
        ("columns.indices", 30),
        ("columns.indices", -1),
    ],
)
def test_a_damaged_store_is_found_before_the_charge(make, array, value, tmp_path):
    path = tmp_path / "s.store"
    write_store(block_source(*data()), path, memory=1 << 26)
    place = open_store(path).arrays[array]
    file = next(path.glob(f"{array}*"))
    begin = file.stat().st_size - place.nbytes
    damaged = np.memmap(file, dtype=place.dtype, mode="r+", offset=begin)
    damaged[place.size // 2] = value
    damaged.flush()
    ledger = tmp_path / "ledger"
    create_ledger(ledger, epsilon=3.0, delta=1e-5)
    with pytest.raises(DataError, match=r"damaged|dplasso data info"):
        make(ledger=ledger).fit(open_store(path))
    assert read_budgets(ledger)[0].entries == ()


def test_margins_that_could_not_be_finite_are_refused():
    with pytest.raises(ValueError, match="l1_radius times feature_bound"):
        DPLassoClassifier(l1_radius=1e250, feature_bound=1e100).fit(*data())
