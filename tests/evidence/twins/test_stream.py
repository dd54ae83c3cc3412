"""Twins as blocks of rows: the same matrix as in memory, whatever the size of a block."""

import numpy as np
import pytest
from evidence.twins.__main__ import main
from evidence.twins.generate import SHAPES, Shape, generate, make_synthetic, shape_source
from evidence.twins.plan import PILOT_ROWS

from dplasso import open_store
from evidence.twins import generate as twins

SCALES = {"rcv1": 0.05, "news20": 0.005, "url": 0.0005, "web": 0.0005, "kdda": 0.0005}


def check_same(blocks, made):
    """Put blocks together and compare: row pointers, columns, values, labels."""
    parts = [[np.zeros(1, np.int64)], [], [], []]
    for block in blocks:
        assert block.indptr[0] == 0
        assert block.indptr[-1] == block.indices.size == block.values.size
        assert block.indptr.size == block.labels.size + 1
        ends = block.indptr[1:] + parts[0][-1][-1]
        for part, more in zip(
            parts, (ends, block.indices, block.values, block.labels), strict=True
        ):
            part.append(more)
    found = [np.concatenate(part) for part in parts]
    expected = made.X.indptr, made.X.indices, made.X.data, made.y
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert [part.dtype for part in found] == [np.int64, np.int32, np.float32, np.int8]


@pytest.mark.parametrize("name", SHAPES)
def test_same_rows_as_in_memory(name):
    source = twins.synthetic_source(name, SCALES[name], 5, n_jobs=2)
    made = make_synthetic(name, scale=SCALES[name], seed=5, n_jobs=1)
    assert source.n_features == made.X.shape[1]
    assert source.total == made.X.shape[0]
    assert source.name == made.source
    blocks = list(source.blocks(made.X.nnz * 8 // 3))
    assert len(blocks) > 3
    check_same(blocks, made)
    # Another pass, in blocks of another size.
    check_same(source.blocks(1 << 30), made)


@pytest.mark.parametrize("n_rows", [PILOT_ROWS - 1, PILOT_ROWS + 1, 2 * PILOT_ROWS])
def test_same_labels_where_the_pilot_rows_end(n_rows):
    shape = Shape(n_rows, 50, 2.0, 0.2, unit_rows=False, positive=0.3)
    made = generate(shape, seed=1)
    check_same(shape_source(shape, seed=1).blocks(100_000), made)
    assert np.mean(made.y > 0) == pytest.approx(0.3, abs=0.01)


def test_blocks_keep_to_the_memory_they_are_given():
    blocks = list(shape_source(Shape(3000, 500, 20.0, 0.5)).blocks(40_000))
    # Half for the block in use, half for the one that is being filled.
    assert max(block.indices.nbytes + block.values.nbytes for block in blocks) <= 20_000
    assert len(blocks) >= 3000 * 20 * 8 / 20_000


def test_a_row_longer_than_the_memory_is_a_block_of_its_own():
    shape = Shape(20, 500, 100.0, 0.2)
    blocks = list(shape_source(shape).blocks(16))
    assert [block.labels.size for block in blocks] == [1] * 20
    check_same(blocks, generate(shape))


@pytest.mark.parametrize("options", [(), ("--jobs", "1", "--memory", "7e7")])
def test_store_holds_the_twin(tmp_path, capsys, options):
    out = tmp_path / "url.store"
    assert main(["url", str(out), "--scale", "0.0005", "--seed", "3", *options]) == 0
    made = make_synthetic("url", scale=0.0005, seed=3)
    store = open_store(out)
    X = store.X.tocsr()
    for mine, other in ((X.data, made.X.data), (X.indices, made.X.indices), (store.y, made.y)):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(X.indptr, made.X.indptr)
    origin = {"route": "twin", "name": "url", "scale": 0.0005, "seed": 3}
    assert store.header.source == made.source
    assert store.header.origin.items() >= origin.items()
    assert f"{X.shape[0]:,} rows, {X.shape[1]:,} columns" in capsys.readouterr().out
    # A name that is none is refused, and what is there is kept.
    assert main(["kddb", str(tmp_path / "out.store")]) == 1
    assert "there is no synthetic data like 'kddb'" in capsys.readouterr().err
    assert main(["url", str(out), "--scale", "0.001"]) == 1
    assert open_store(out).shape == X.shape
