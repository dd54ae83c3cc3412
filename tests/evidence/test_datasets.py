"""What --data means."""

import numpy as np
import pytest
from evidence.datasets import find_sources, held_out
from evidence.known_weights import TRUTHS, Known
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.datasets import load_svmlight_file

from dplasso import DataError, write_store
from evidence import known_weights


@pytest.fixture(autouse=True)
def nothing_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def find(*asked):
    return find_sources(asked, twin=False, scale=1.0, seed=0, n_jobs=1)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["rcv1"], r"rcv1 is not in this folder: download .*bz2 to it, or give --twin"),
        ([], "none of the paper's data sets is in this folder"),
        (["mnist"], r"no such file or store.*rcv1, news20, url, web, kdda"),
        *(([f"rcv1@{scale}"], "positive number") for scale in ("0", "x", "nan")),
        (["ROWS", "ROWS"], "names tiny twice"),
        (["."], "no store"),
    ],
)
def test_what_is_not_there_is_refused(asked, words, rows):
    with pytest.raises(ValueError, match=words):
        find(*(one.replace("ROWS", str(rows)) for one in asked))


def test_file_and_store_hold_the_same(rows, tmp_path):
    write_store(tmp_path / "same.store", *load_svmlight_file(str(rows)))
    X, y = find(str(rows))[0].load()
    from_store, labels = find("same.store")[0].load()
    assert (from_store != X).nnz == 0
    assert np.array_equal(y, labels)
    assert np.array_equal(y, (load_svmlight_file(str(rows))[1] > 0).astype(np.int8))


def test_a_changed_file_is_other_data(rows, tmp_path):
    copy = tmp_path / "copy.svm"
    copy.write_bytes(rows.read_bytes())
    before = find(str(copy))[0].identity
    assert "copy.svm" in before.values()
    assert find(str(copy))[0].published is None
    assert str(tmp_path) not in str(before)
    copy.write_text(copy.read_text() + "+1 1:1\n")
    assert find(str(copy))[0].identity != before


def test_a_fifth_is_held_out():
    training, test = held_out(19_953, 0)
    assert (training.size, test.size) == (15_962, 3_991)
    assert np.array_equal(np.sort(np.concatenate([training, test])), np.arange(19_953))
    assert np.array_equal(held_out(19_953, 0)[1], test)
    assert not np.array_equal(held_out(19_953, 1)[1], test)


@pytest.mark.parametrize("name", TRUTHS)
def test_records_follow_the_stated_law(name, monkeypatch):
    monkeypatch.setattr(known_weights, "_BLOCK", 7_000)
    monkeypatch.setattr(known_weights, "TEST_ROWS", 10_000)
    data = Known(TRUTHS[name], 20_000, 5)
    X, y = data.draw()
    # They depend on the seed alone.
    assert (data.draw()[0] != X).nnz == 0
    assert (Known(TRUTHS[name], 20_000, 6).draw()[0] != X).nnz > 0
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


def test_names_say_how_many_rows():
    (source,) = find("zipf-dense@30000")
    assert source.label == "zipf-dense-30000"
    assert source.own_test == known_weights.TEST_ROWS
    for wrong in ("zipf-dense", "zipf-dense@0", "zipf-dense@1e4"):
        with pytest.raises(ValueError, match="number of rows"):
            find(wrong)
    with pytest.raises(DataError, match="zipf-dense"):
        find("zipf")
