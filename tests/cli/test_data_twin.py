"""``dplasso data twin``: the store holds the twin, bit for bit, whatever the memory."""

import json

import numpy as np
import pytest

from dplasso.data.store import open_store
from dplasso.datasets.synthetic.generate import make_synthetic


@pytest.mark.parametrize("options", [(), ("--jobs", "1", "--memory", "64MiB")])
def test_store_holds_the_twin(run, tmp_path, options):
    out = tmp_path / "url.store"
    result = run("data", "twin", "url", out, "--scale", "0.0005", "--seed", "3", *options, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    made = make_synthetic("url", scale=0.0005, seed=3)
    store = open_store(out)
    X = store.X.tocsr()
    for mine, other in ((X.data, made.X.data), (X.indices, made.X.indices), (store.y, made.y)):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(X.indptr, made.X.indptr)
    assert (report["n_samples"], report["n_features"]) == made.X.shape
    assert report["nnz"] == made.X.nnz
    assert report["source"] == made.source
    assert report["origin"] == {"route": "twin", "name": "url", "scale": 0.0005, "seed": 3}


def test_text_output(run, tmp_path):
    result = run("data", "twin", "rcv1", tmp_path / "r.store", "--scale", "0.01")
    assert result.exit_code == 0, result.output
    assert "202 rows, 472 columns" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kddb",), "there is no synthetic data like 'kddb'; there are rcv1, news20, url,"),
        (("url", "--scale", "0"), "scale must be a positive number"),
        (("url", "--scale", "1e-5"), "at least one row and one column that is not dense"),
        (("kdda", "--scale", "1e-6"), "do not fit 20 columns"),
    ],
)
def test_refusals(run, tmp_path, arguments, words):
    name, *options = arguments
    result = run("data", "twin", name, tmp_path / "out.store", *options)
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_kept(run, tmp_path):
    out = tmp_path / "r.store"
    assert run("data", "twin", "rcv1", out, "--scale", "0.01").exit_code == 0
    result = run("data", "twin", "rcv1", out, "--scale", "0.02")
    assert result.exit_code == 1
    assert open_store(out).shape == (202, 472)
    assert run("data", "twin", "rcv1", out, "--scale", "0.02", "--force").exit_code == 0
    assert open_store(out).shape == (405, 945)
