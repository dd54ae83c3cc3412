"""Records of known weights: the law they are drawn by, and their names."""

import numpy as np
import pytest
from evidence.datasets import find_sources
from evidence.known_weights import TRUTHS, Known
from scipy.sparse import csr_array
from scipy.special import expit

from dplasso import DataError
from evidence import known_weights


@pytest.mark.parametrize("name", TRUTHS)
def test_records_follow_the_stated_law(name, monkeypatch):
    monkeypatch.setattr(known_weights, "_BLOCK", 7_000)
    monkeypatch.setattr(known_weights, "TEST_ROWS", 10_000)
    data = Known(TRUTHS[name], 20_000, 5)
    X, y = data.draw()
    assert X.shape == (30_000, 20_000)
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert csr_array((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format
    assert (X.data == 1).all()
    # The r-th column misses a row with probability (1 - p_r)^30; 4.5 standard deviations each.
    popularity = np.arange(1, 20_001) ** -1.05
    present = 1.0 - (1.0 - popularity / popularity.sum()) ** 30
    held = np.asarray((X[:, :50]).sum(axis=0)).ravel() / 30_000
    assert (np.abs(held - present[:50]) < 4.5 * np.sqrt(present[:50] / 30_000)).all()
    chances = expit(data.margins(X))
    assert chances[:7_000].mean() == pytest.approx(TRUTHS[name].positive, abs=1e-4)
    for low, high in ((0.0, 0.05), (0.05, 0.5), (0.5, 1.0)):
        here = (chances >= low) & (chances < high)
        scatter = np.sqrt((chances * (1 - chances))[here].sum())
        assert abs((y - chances)[here].sum()) < 4.5 * scatter


def test_rows_depend_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr(known_weights, "TEST_ROWS", 100)
    truth = TRUTHS["zipf-sparse"]
    X, y = Known(truth, 300, 1).draw()
    again, labels = Known(truth, 300, 1).draw()
    other, _ = Known(truth, 300, 2).draw()
    assert (again != X).nnz == 0
    assert (y == labels).all()
    assert (other != X).nnz > 0


def test_names_say_how_many_rows():
    (source,) = find_sources(["zipf-dense@30000"], twin=False, scale=1.0, seed=0, n_jobs=1)
    assert source.label == "zipf-dense-30000"
    assert source.own_test == known_weights.TEST_ROWS
    for wrong in ("zipf-dense", "zipf-dense@0", "zipf-dense@1e4"):
        with pytest.raises(ValueError, match="number of rows"):
            find_sources([wrong], twin=False, scale=1.0, seed=0, n_jobs=1)
    with pytest.raises(DataError, match="zipf-dense"):
        find_sources(["zipf"], twin=False, scale=1.0, seed=0, n_jobs=1)
