"""Generated data: shapes, rows and columns like the originals', and a model to be learnt."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.twins.generate import SHAPES, Shape, generate, make_synthetic
from evidence.twins.kernel import row_state
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

# Small enough for tests, large enough to show their shape.
SCALES = {"rcv1": 0.2, "news20": 0.02, "url": 0.002, "web": 0.002, "kdda": 0.002}


made_at_scale = cache(lambda name: make_synthetic(name, scale=SCALES[name]))


@pytest.fixture
def made(name):
    """One process makes only the data sets that its tests ask for, each once."""
    return made_at_scale(name)


@pytest.mark.parametrize("name", SHAPES)
class TestEveryShape:
    def test_rows(self, made, name):
        X, shape, scale = made.X, SHAPES[name], SCALES[name]
        assert X.shape == (round(shape.n_rows * scale), round(shape.n_columns * scale))
        assert X.nnz == pytest.approx(X.shape[0] * shape.mean_row, rel=0.02)
        assert [X.data.dtype, X.indices.dtype, X.indptr.dtype] == [np.float32, np.int32, np.int32]
        X.check_format(full_check=True)
        # A copy has not been told that it is.
        assert sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format
        lengths = np.diff(X.indptr)
        assert lengths.min() >= 1
        assert np.median(lengths) < 1.02 * lengths.mean()
        assert lengths.max() > 1.3 * lengths.mean()

    def test_values_and_labels(self, made, name):
        X, y = made.X, made.y
        assert X.data.min() > 0
        assert X.data.max() <= 1
        if SHAPES[name].unit_rows:
            norms = np.sqrt(X.multiply(X).sum(axis=1))
            np.testing.assert_allclose(norms, 1.0, rtol=1e-5)
        else:
            assert 0.0 < np.mean(X.data == 1) < 1.0
        assert y.dtype == np.int8
        assert set(np.unique(y)) == {-1, 1}
        assert np.mean(y > 0) == pytest.approx(SHAPES[name].positive, abs=0.01)

    def test_columns_are_in_random_order(self, made, name):
        held = np.bincount(made.X.indices, minlength=made.X.shape[1])
        popular = np.argsort(held)[-max(20, held.size // 100) :]
        assert 0.3 < popular.mean() / held.size < 0.7

    def test_planted_model_is_learnable(self, name):
        n_rows, n_columns = (1500, 20_000) if name == "web" else (6000, 20_000)
        made = make_synthetic(name, n_rows=n_rows, n_columns=n_columns)
        X, y = made.X, made.y
        train = np.arange(n_rows) % 2 == 0
        test = ~train
        model = LogisticRegression(solver="liblinear", C=10.0 if SHAPES[name].unit_rows else 0.1)
        score = model.fit(X[train], y[train]).decision_function(X[test])
        assert roc_auc_score(y[test], score) > 0.65
        # Nothing to be learnt from labels in another order: 0.5, four standard errors are 0.085.
        mixed = np.random.default_rng(0).permutation(y)
        score = model.fit(X[train], mixed[train]).decision_function(X[test])
        assert roc_auc_score(mixed[test], score) < 0.59


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.3])
def test_popularity_falls_as_asked(exponent):
    shape = Shape(40_000, 20_000, 20.0, 0.3, exponent, 100.0)
    X = generate(shape).X
    held = np.sort(np.bincount(X.indices, minlength=20_000))[::-1]
    # Pooled ranks, since the rarest columns are held by a handful of rows.
    edges = np.unique(np.geomspace(1, 20_000, 12).astype(int))
    pooled = np.add.reduceat(held, edges[:-1]) / np.diff(np.append(edges[:-1], 20_000))
    middle = np.sqrt(edges[:-1] * np.append(edges[1:-1], 20_000))
    if exponent == 0:
        # Poisson, mean 40: sorted counts fall from about 65 to about 18, not over decades.
        assert held[0] < 80
        assert held[-1] > 10
        return
    slope = np.polyfit(np.log(middle + 100.0), np.log(pooled), 1)[0]
    assert slope == pytest.approx(-exponent, abs=0.1)


def test_url_has_its_dense_columns():
    X = made_at_scale("url").X
    held = np.sort(np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0])[::-1]
    assert held[0] == pytest.approx(0.85, abs=0.03)
    assert held[:200].mean() > 0.45
    assert held[200] < 0.2
    # The values of a dense column are spread over (0, 1].
    dense = int(np.argmax(np.bincount(X.indices)))
    values = X.data[X.indices == dense]
    assert values.mean() == pytest.approx(0.5, abs=0.03)
    assert values.std() == pytest.approx(np.sqrt(1 / 12), abs=0.02)


def test_a_dense_value_tells_nothing_about_the_next_column():
    # A generator that read its numbers twice would show here.
    options = {"unit_rows": False, "exponent": 0.0, "n_dense": 20, "dense_presence": (0.5, 0.5)}
    X = generate(Shape(20_000, 60, 12.0, **options)).X.toarray()
    dense = X[:, np.argsort(-(X > 0).sum(axis=0))[:20]]
    held = dense > 0
    correlation = np.corrcoef(held.T) - np.eye(20)
    assert np.abs(correlation).max() < 0.04
    for k in range(20):
        means = held[held[:, k] & (dense[:, k] > 0.5)].mean(axis=0)
        # 5,000 rows: four standard deviations, of 380 pairs.
        np.testing.assert_allclose(np.delete(means, k), 0.5, atol=0.032)


def test_another_seed_gives_other_data():
    one, two = make_synthetic("rcv1", scale=0.02), make_synthetic("rcv1", scale=0.02, seed=1)
    assert one.X.shape == two.X.shape
    shared = one.X.astype(bool).multiply(two.X.astype(bool)).nnz
    assert shared < 0.3 * one.X.nnz
    assert not np.array_equal(one.y, two.y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rows": 0}, "at least one row"),
        ({"n_columns": 0}, "at least one row"),
        ({"mean_row": 95.0}, "do not fit 100 columns"),
        ({"n_dense": 20, "mean_row": 5.0}, "20 of them dense: give a length from 10 to 82"),
        ({"n_rows": 10**9}, "do not fit 32-bit indices"),
    ],
)
def test_shapes_that_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        generate(replace(Shape(100, 100, 10.0), **changes))


def test_rows_have_streams_of_their_own():
    states = {int(row_state(seed, row)) for seed in range(30) for row in range(1000)}
    assert len(states) == 30_000
