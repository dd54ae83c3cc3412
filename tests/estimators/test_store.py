"""Fits and predictions on a store: the bits that the same records in memory give."""

import multiprocessing
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLassoClassifier
from dplasso.data.blocks import matrix_source
from dplasso.data.store import open_store, write_store
from dplasso.errors import DataError, StoreError
from frank_wolfe.cases import dense_rows, some_labels

INF = float("inf")
OPTIONS = {
    "private": {"epsilon": 1.0},
    "noisy-max": {"epsilon": 1.0, "selector": "noisy-max"},
    "plain": {"epsilon": INF},
    "plain, stale": {"epsilon": INF, "drift_tol": None, "selector": "heap"},
    "standard": {"epsilon": 1.0, "solver": "standard"},
    "plain standard": {"epsilon": INF, "solver": "standard", "selector": "argmax"},
    "no intercept": {"epsilon": 2.0, "fit_intercept": False},
    "two threads": {"epsilon": 1.0, "n_jobs": 2},
}


def records(kind, dtype=np.float32):
    """Return rows whose frequent columns do not come first, and labels."""
    X, y = dense_rows(40, 15, 7).astype(dtype), some_labels(40, 7)
    X[:, 0], X[5], X[:, 6] = 0.0, 0.0, 0.0
    X[3, 0] = 0.7
    X[:30, 11] = 1.3
    if kind == "binary":
        X = (X != 0).astype(dtype)
    return sp.csr_array(X), y


@pytest.fixture
def make_store(tmp_path):
    def make(X, y):
        return write_store(matrix_source(X, y), tmp_path / "records.store", memory=2**27)

    return make


def model(**options):
    return DPLassoClassifier(
        random_state=5, n_iter=40, l1_radius=10.0, feature_bound=1.2, **options
    )


@pytest.mark.parametrize("kind", ["mixed", "binary"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_bits_as_from_memory(make_store, kind, options):
    X, y = records(kind)
    store = make_store(X, y)
    if kind == "binary":
        assert store.rows.values.size == store.columns.values.size == 0
    one = model(**options).fit(X, y)
    for other in (model(**options).fit(store), model(**options).fit(store.X, store.y)):
        assert other.transcript_ == one.transcript_
        assert other.n_features_in_ == 15
        np.testing.assert_array_equal(other.coef_.toarray(), one.coef_.toarray())
        assert other.privacy_.to_json() == one.privacy_.to_json()
        if hasattr(one, "history_"):
            np.testing.assert_array_equal(other.history_.objective, one.history_.objective)
            np.testing.assert_array_equal(other.history_.gap, one.history_.gap)
        for name in ("decision_function", "predict", "predict_proba"):
            expected = getattr(one, name)(X)
            for rows in (store, store.X):
                np.testing.assert_array_equal(getattr(other, name)(rows), expected)


def test_float64_and_the_files_left_as_they_were(make_store):
    X, y = records("mixed", np.float64)
    store = make_store(X, y)
    before = {path.name: path.read_bytes() for path in store.path.iterdir()}
    assert model().fit(store).transcript_ == model().fit(X, y).transcript_
    assert {path.name: path.read_bytes() for path in store.path.iterdir()} == before


def test_words_for_labels(make_store):
    X, y = records("mixed")
    words = np.where(y == 1, "yes", "no")
    one, other = model().fit(X, words), model().fit(make_store(X, words))
    assert other.classes_.tolist() == ["no", "yes"]
    assert other.transcript_ == one.transcript_


def test_column_names_of_an_earlier_fit_are_forgotten(make_store):
    X, y = records("mixed")
    fitted = model()
    fitted.feature_names_in_ = np.array(["left over"])
    assert not hasattr(fitted.fit(make_store(X, y)), "feature_names_in_")


def _fit_elsewhere(store, answers):
    answers.put(model().fit(store).transcript_.vertex.tolist())


def test_many_readers_at_a_time(make_store):
    X, y = records("mixed")
    store = make_store(X, y)
    assert pickle.loads(pickle.dumps(store)).path == store.path
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=_fit_elsewhere, args=(store, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    expected = model().fit(X, y).transcript_.vertex.tolist()
    assert [answers.get(timeout=120) for _ in processes] == 2 * [expected]
    for process in processes:
        process.join()


class TestRefusals:
    def test_labels(self, make_store):
        X, y = records("mixed")
        store = make_store(X, y)
        with pytest.raises(DataError, match=r"fit\(store\)"):
            model().fit(store.X)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model().fit(store, y[:-1])
        with pytest.raises(ValueError, match="NaN"):
            model().fit(store, np.where(y == 1, np.nan, 0.0))
        with pytest.raises(DataError, match="one label for each"):
            model().fit(store, np.column_stack([y, y]))
        with pytest.raises(ValueError, match="y"):
            model().fit(X)

    def test_another_number_of_columns(self, make_store):
        X, y = records("mixed")
        fitted = model().fit(X[:, :-1], y)
        with pytest.raises(DataError, match=r"15 columns.*trained on 14.*--features"):
            fitted.predict(make_store(X, y))

    @pytest.mark.parametrize("solver", ["sparse", "standard"])
    @pytest.mark.parametrize(
        ("name", "value"), [("indices", 15), ("indices", -1), ("values", np.nan)]
    )
    def test_a_damaged_row(self, make_store, solver, name, value):
        X, y = records("mixed")
        store = make_store(X, y)
        spoil(store, f"rows.{name}", value)
        with pytest.raises(DataError, match="is damaged"):
            model(solver=solver).fit(open_store(store.path))

    @pytest.mark.parametrize("value", [40, -1])
    def test_a_damaged_column(self, make_store, value):
        X, y = records("mixed")
        store = make_store(X, y)
        fitted = model(epsilon=INF).fit(store)
        spoil(store, "columns.indices", value)
        damaged = open_store(store.path)
        for work in (model(epsilon=INF).fit, fitted.decision_function):
            with pytest.raises(DataError, match="is damaged"):
                work(damaged)

    def test_an_unfinished_store(self, tmp_path):
        (tmp_path / "a.store.partial").mkdir()
        with pytest.raises(StoreError, match="unfinished"):
            open_store(tmp_path / "a.store")


def spoil(store, name, value):
    """Overwrite the first entry of an array, on the disk."""
    array = store.arrays[name]
    with (store.path / f"{name}.npy").open("r+b") as file:
        file.seek(128)
        file.write(np.array([value], array.dtype).tobytes())
