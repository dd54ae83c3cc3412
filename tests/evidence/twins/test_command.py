"""``python -m evidence.twins``: the store holds the twin, bit for bit, whatever the memory."""

import numpy as np
import pytest
from evidence.twins.__main__ import main
from evidence.twins.generate import make_synthetic

from dplasso.data.store import describe, open_store


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
    told, origin = describe(store), {"route": "twin", "name": "url", "scale": 0.0005, "seed": 3}
    assert (told["source"], told["origin"]) == (made.source, origin)
    assert f"{X.shape[0]:,} rows, {X.shape[1]:,} columns" in capsys.readouterr().out
    # What is there is kept.
    assert main(["url", str(out), "--scale", "0.001"]) == 1
    assert open_store(out).shape == X.shape


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kddb",), "there is no synthetic data like 'kddb'; there are rcv1, news20, url,"),
        (("url", "--scale", "0"), "scale must be a positive number"),
        (("url", "--scale", "1e-5"), "at least one row and one column that is not dense"),
        (("kdda", "--scale", "1e-6"), "do not fit 20 columns"),
    ],
)
def test_refusals(tmp_path, capsys, arguments, words):
    name, *options = arguments
    assert main([name, str(tmp_path / "out.store"), *options]) == 1
    found = capsys.readouterr().err
    assert words in found
    assert found.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
