"""``python -m evidence.twins``: the store holds the twin, bit for bit, whatever the memory."""

import numpy as np
import pytest
from evidence.twins.__main__ import main
from evidence.twins.generate import make_synthetic

from dplasso import open_store


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
