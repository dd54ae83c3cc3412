"""Generated data: like the originals in shape, learnable, the same in memory and in blocks."""

from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.twins.__main__ import main
from evidence.twins.generate import (
    SHAPES,
    Shape,
    generate,
    make_synthetic,
    shape_source,
    synthetic_source,
)
from evidence.twins.plan import PILOT_ROWS

from data import row_blocks
from dplasso import open_store

# Small enough for tests, large enough to show their shape.
SCALES = {"rcv1": 0.2, "news20": 0.02, "url": 0.002, "web": 0.002, "kdda": 0.002}
DIGESTS = {
    "rcv1": "32cd7f8db695fbf0",
    "news20": "333f9200d58c2647",
    "url": "63b6f4d51ba4edc4",
    "web": "a655e8245cee91af",
    "kdda": "7bdeaa9bf4e9372e",
}


@pytest.mark.parametrize("name", SHAPES)
def test_rows_and_columns_are_like_the_original_s(name):
    shape, made = SHAPES[name], make_synthetic(name, scale=SCALES[name])
    X, y = made.X, made.y
    assert X.shape == (round(shape.n_rows * SCALES[name]), round(shape.n_columns * SCALES[name]))
    assert X.nnz == pytest.approx(X.shape[0] * shape.mean_row, rel=0.02)
    assert [X.data.dtype, X.indices.dtype, X.indptr.dtype] == [np.float32, np.int32, np.int32]
    X.check_format(full_check=True)
    # A copy has not been told that it is.
    assert sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format
    assert 0 < X.data.min() <= X.data.max() <= 1
    if shape.unit_rows:
        np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0, rtol=1e-5)
    else:
        assert 0.0 < np.mean(X.data == 1) < 1.0
    assert (y.dtype, set(np.unique(y))) == (np.int8, {-1, 1})
    assert np.mean(y > 0) == pytest.approx(shape.positive, abs=0.01)
    # A seed gives the same twin on any machine.
    whole = b"".join(part.tobytes() for part in (X.indptr, X.indices, y))
    assert blake2b(whole, digest_size=8).hexdigest() == DIGESTS[name]


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


def check_same(blocks, made):
    """Put blocks together and compare their rows and labels."""
    blocks = [*blocks]
    assert {block.indices.dtype.name for block in blocks} == {"int32"}
    X, y, _ = row_blocks.gather(blocks, made.X.shape[1])
    row_blocks.check_same(X, y, made.X, made.y)
    assert y.dtype == np.int8


@pytest.mark.parametrize(("name", "scale"), [("rcv1", 0.05), ("url", 0.0005)])
def test_blocks_hold_the_rows_that_memory_has(name, scale):
    source = synthetic_source(name, scale, 5, n_jobs=2)
    made = make_synthetic(name, scale=scale, seed=5, n_jobs=1)
    assert (source.total, source.n_features) == made.X.shape
    assert source.name == made.source
    blocks = list(source.blocks(made.X.nnz * 8 // 3))
    assert len(blocks) > 3
    check_same(blocks, made)
    # Another pass, in blocks of another size.
    check_same(source.blocks(1 << 30), made)


@pytest.mark.parametrize("n_rows", [PILOT_ROWS - 1, PILOT_ROWS + 1])
def test_labels_are_the_same_where_the_pilot_rows_end(n_rows):
    shape = Shape(n_rows, 50, 2.0, 0.2, unit_rows=False, positive=0.3)
    made = generate(shape, seed=1)
    check_same(shape_source(shape, seed=1).blocks(100_000), made)
    assert np.mean(made.y > 0) == pytest.approx(0.3, abs=0.01)


def test_blocks_keep_to_the_memory_they_are_given():
    blocks = list(shape_source(Shape(3000, 500, 20.0, 0.5)).blocks(40_000))
    # Half for the block in use, half for the one that is being filled.
    assert max(block.indices.nbytes + block.values.nbytes for block in blocks) <= 20_000
    assert len(blocks) >= 3000 * 20 * 8 / 20_000
    # A row longer than the memory is a block of its own.
    shape = Shape(20, 500, 100.0, 0.2)
    blocks = list(shape_source(shape).blocks(16))
    assert [block.labels.size for block in blocks] == [1] * 20
    check_same(blocks, generate(shape))


def test_a_store_holds_the_twin(tmp_path, capsys):
    out = tmp_path / "url.store"
    options = ("--scale", "0.0005", "--seed", "3", "--jobs", "1", "--memory", "7e7")
    assert main(["url", str(out), *options]) == 0
    made = make_synthetic("url", scale=0.0005, seed=3)
    store = open_store(out)
    X = store.X.tocsr()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(made.X, name))
    np.testing.assert_array_equal(store.y, made.y)
    origin = {"route": "twin", "name": "url", "scale": 0.0005, "seed": 3}
    assert store.header.source == made.source
    assert store.header.origin.items() >= origin.items()
    assert f"{X.shape[0]:,} rows, {X.shape[1]:,} columns" in capsys.readouterr().out
    # A name that is none is refused, and what is there is kept.
    assert main(["kddb", str(tmp_path / "out.store")]) == 1
    assert "there is no synthetic data like 'kddb'" in capsys.readouterr().err
    assert main(["url", str(out), "--scale", "0.001"]) == 1
    assert open_store(out).shape == X.shape
