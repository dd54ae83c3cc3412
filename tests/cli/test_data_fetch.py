"""``dplasso data list`` and ``fetch``: from a server on this machine."""

import bz2
import lzma

import numpy as np
import pytest
from evidence.twins.generate import SHAPES, synthetic_source
from scipy.sparse import random_array
from sklearn.datasets import dump_svmlight_file

from cli.conftest import found, refused, said
from datasets.file_server import serving
from dplasso.data.store import open_store, write_store
from dplasso.datasets import catalog

NAMES = ["rcv1", "news20", "url", "web", "kdda", "a9a"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = random_array((60, 120), density=0.1, rng=rng, format="csr", dtype=np.float32)
    y = rng.choice([-1, 1], 60)
    path = tmp_path_factory.mktemp("rows") / "rows.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return X, y, path.read_bytes()


@pytest.fixture
def server(rows):
    files = {
        "a9a": rows[2],
        "rcv1_train.binary.bz2": bz2.compress(rows[2]),
        "webspam_wc_normalized_trigram.svm.xz": lzma.compress(rows[2]),
    }
    with serving(files) as running:
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Keep downloads, and the default outputs, in this test's folder."""
    monkeypatch.setenv(catalog.FOLDER_VARIABLE, str(tmp_path / "downloads"))
    monkeypatch.delenv(catalog.BASE_URL_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "downloads"


class TestList:
    def test_json(self, folder):
        report = found("data", "list")
        assert (
            report["base_url"] == "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
        )
        assert report["folder"] == str(folder)
        sets = {row.pop("name"): row for row in report["data_sets"]}
        assert list(sets) == NAMES
        shown = said("data", "list")
        for word in (*NAMES, "16,609,143", "1,304,697,446", "kdda.bz2", "csie.ntu.edu.tw"):
            assert word in shown
        url = sets["url"]
        assert (url["n_samples"], url["n_features"], url["nnz"]) == (2396130, 3231961, 277058644)
        assert url["source"] == f"{report['base_url']}url_combined.bz2"
        assert url["downloaded"] is None

    def test_sizes_are_those_of_the_twins(self):
        for name, shape in SHAPES.items():
            entry = catalog.CATALOG[name]
            sizes = (entry.n_rows, entry.n_columns, entry.n_nonzeros)
            assert sizes == (shape.n_rows, shape.n_columns, shape.n_nonzeros)

    def test_size_of_a_store_is_about_right(self, tmp_path):
        write_store(synthetic_source("rcv1", 1.0, 0), tmp_path / "rcv1.store")
        size = sum(path.stat().st_size for path in (tmp_path / "rcv1.store").iterdir())
        assert catalog.CATALOG["rcv1"].store_bytes == pytest.approx(size, rel=0.02)


class TestFetch:
    def test_download_and_store(self, server, rows, folder, tmp_path):
        X, y, text = rows
        report = found("data", "fetch", "a9a", "--base-url", server.url)
        assert (report["n_samples"], report["n_features"]) == (60, 123)
        assert report["downloaded"] == str(folder / "a9a")
        assert report["origin"] == {"route": "fetch", "name": "a9a", "file": "a9a"}
        assert (folder / "a9a").read_bytes() == text
        store = open_store(tmp_path / "a9a.store")
        np.testing.assert_array_equal(store.X.tocsr().toarray()[:, :120], X.toarray())
        np.testing.assert_array_equal(store.y, y)
        listed = found("data", "list")["data_sets"][-1]
        assert listed["downloaded"] == str(folder / "a9a")
        assert listed["download_bytes"] == len(text)

    def test_compressed_by_the_environments_address(self, server, tmp_path, monkeypatch):
        monkeypatch.setenv(catalog.BASE_URL_VARIABLE, server.url.rstrip("/"))
        out = tmp_path / "r.store"
        told = said("data", "fetch", "rcv1", "--out", out, "--downloads", tmp_path / "other")
        assert "60 rows, 47,236 columns" in told
        assert (tmp_path / "other" / "rcv1_train.binary.bz2.sha256").exists()
        assert open_store(out).shape == (60, 47236)

    def test_the_second_name_where_the_first_is_not_there(self, server, rows, folder):
        del server.files["webspam_wc_normalized_trigram.svm.xz"]
        server.files["webspam_wc_normalized_trigram.svm.bz2"] = bz2.compress(rows[2])
        first = catalog.fetch("web", url=server.url)
        assert first == folder / "webspam_wc_normalized_trigram.svm.bz2"
        # What is there is not looked for under the first name again.
        server.status = 503
        assert catalog.fetch("web", url=server.url) == first

    def test_a_file_that_is_no_data(self, run, server, tmp_path):
        server.files["a9a"] = b"+1 1:1\nnot found\n"
        refused(run("data", "fetch", "a9a", "--base-url", server.url), "a9a", "line 2")
        assert not (tmp_path / "a9a.store").exists()

    def test_an_existing_store_is_told_before_the_download(self, run, server, tmp_path):
        write_store(synthetic_source("rcv1", 0.01, 0), tmp_path / "rcv1.store")
        refused(run("data", "fetch", "rcv1", "--base-url", server.url), "rcv1.store")
        assert server.requests == []
