"""Mixed rows against plain numpy, and what a geometry holds."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DataError, Geometry, ModelFileError
from dplasso.gradient_descent.row_sums import count_along
from dplasso.losses.targets import targets_of
from dplasso.matrix.compressed import compress
from dplasso.matrix.geometry import ALONG, mixed_rows, unmixed
from dplasso.matrix.scaling import Mix
from dplasso.runtime.threads import ONE_THREAD, thread_pool

D, K = 30, 5


def topics(n_rows, seed=0, n_columns=D):
    """Return rows of which each has columns of one of three subjects."""
    rng = np.random.default_rng(seed)
    subject = rng.integers(0, 3, n_rows)
    likely = np.where(np.arange(n_columns) % 3 == subject[:, np.newaxis], 0.4, 0.05)
    return sp.csr_array((rng.random((n_rows, n_columns)) < likely).astype(np.float32))


@pytest.fixture(scope="module")
def geometry():
    return Geometry.learn(topics(300))


def reference(dense, geometry, mix):
    """Return mixed rows, dense."""
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    unit = dense / np.where(lengths > 0.0, lengths, 1.0)
    latent = unit[:, geometry.columns] @ geometry.directions[:, : mix.n_directions]
    length = np.sqrt(geometry.energies[: mix.n_directions].sum())
    own = [np.sqrt(1.0 - mix.part) * unit] if mix.part < 1.0 else []
    return np.hstack([*own, np.sqrt(mix.part) * latent / length])


@pytest.mark.parametrize("part", [0.3, 1.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_they_are_a_linear_map_of_unit_rows(geometry, part, threads):
    X, mix = topics(50, seed=1), Mix(K, part)
    X.data *= np.random.default_rng(2).normal(size=X.nnz).astype(np.float32) * 100.0
    X = sp.csr_array(sp.vstack([X, sp.csr_array((1, D), dtype=np.float32)]))
    with thread_pool(threads) as pool:
        mixed = mixed_rows(compress(X)[0], geometry, mix, pool)
    size = K + D * (part < 1.0)
    found = sp.csr_array((mixed.values, mixed.indices, mixed.indptr), shape=(51, size))
    np.testing.assert_allclose(
        found.toarray(), reference(X.toarray(), geometry, mix), rtol=1e-5, atol=1e-6
    )
    assert not found.toarray()[-1].any(), "an empty row has no latent entry"


def test_rows_along_the_directions_are_counted(geometry):
    X, mix, rng = topics(200, seed=8), Mix(K, 1.0), np.random.default_rng(9)
    mixed = mixed_rows(compress(X)[0], geometry, mix, ONE_THREAD)
    along = np.square(reference(X.toarray(), geometry, mix)).sum(axis=1) >= ALONG
    assert 20 < along.sum() < 180
    weights = np.where(rng.random(200) < 0.3, 0.0, 0.25)
    for given, expected in ((None, along.sum()), (weights, along[weights > 0.0].sum())):
        targets = targets_of(np.zeros(200), given)
        assert count_along(mixed, targets, ALONG, 2.0**32) == expected << 32


def test_a_row_is_the_same_whatever_the_others_are(geometry):
    X, mix = topics(40, seed=5), Mix(K, 0.5)

    def values(rows):
        found = mixed_rows(compress(rows)[0], geometry, mix, ONE_THREAD)
        return found.values[: found.indptr[1]].tobytes()

    alone = values(X[[0]])
    louder = sp.csr_array(sp.vstack([X[[0]], 1e300 * X[1:].astype(np.float64)]))
    assert values(X) == alone
    assert values(louder) == alone
    assert values(X.astype(np.float64)) == alone


def test_weights_of_mixed_rows_are_those_of_the_columns(geometry):
    X, mix, rng = topics(60, seed=6), Mix(K, 0.7), np.random.default_rng(7)
    weights = rng.normal(size=(D + K, 2))
    found, spread = unmixed(weights, geometry, mix)
    dense = X.toarray()
    lengths = np.maximum(1e-30, np.linalg.norm(dense, axis=1, keepdims=True))
    expected = reference(dense, geometry, mix) @ weights
    np.testing.assert_allclose(dense / lengths @ found, expected, rtol=1e-4, atol=1e-5)
    draws = np.stack([unmixed(rng.normal(size=(D + K, 1)), geometry, mix)[0] for _ in range(4000)])
    np.testing.assert_allclose(draws[:, :, 0].std(axis=0), spread, rtol=0.06)


def test_it_is_the_same_for_the_same_rows_and_in_a_file(geometry, tmp_path):
    assert Geometry.learn(topics(300)).digest == geometry.digest
    assert Geometry.learn(topics(300).toarray()).digest == geometry.digest
    assert Geometry.learn(topics(300), random_state=1).digest != geometry.digest
    geometry.save(tmp_path / "geometry.npz")
    read = Geometry.load(tmp_path / "geometry.npz")
    assert read.digest == geometry.digest
    assert read.n_rows == 300
    content = bytearray((tmp_path / "geometry.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "geometry.npz").write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        Geometry.load(tmp_path / "geometry.npz")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (topics(19), "19 rows"),
        (sp.csr_array((30, D)), "no two columns"),
        (np.full((30, 4), np.nan), "NaN"),
    ],
)
def test_rows_without_directions_are_refused(rows, told):
    with pytest.raises(DataError, match=told):
        Geometry.learn(rows)
