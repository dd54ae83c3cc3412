"""What --data means."""

import numpy as np
import pytest
from evidence.datasets import find_sources, held_out
from sklearn.datasets import load_svmlight_file

from dplasso.data.formats import block_source
from dplasso.data.store import write_store


@pytest.fixture(autouse=True)
def nothing_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def find(*asked, twin=False, scale=1.0):
    return find_sources(asked, twin=twin, scale=scale, seed=0, n_jobs=1)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["rcv1"], r"rcv1 is not in this folder: download .*bz2 to it, or give --twin"),
        ([], "none of the paper's data sets is in this folder"),
        (["mnist"], r"no such file or store.*rcv1, news20, url, web, kdda"),
        *(([f"rcv1@{scale}"], "positive number") for scale in ("0", "-1", "x", "inf", "nan")),
        (["ROWS", "ROWS"], "names tiny twice"),
        (["."], "no store"),
    ],
)
def test_what_is_not_there_is_refused(asked, words, rows):
    with pytest.raises(ValueError, match=words):
        find(*(one.replace("ROWS", str(rows)) for one in asked))


def test_file_and_store_hold_the_same(rows, tmp_path):
    write_store(block_source([rows]), tmp_path / "same.store")
    X, y = find(str(rows))[0].load()
    from_store, labels = find("same.store")[0].load()
    assert (from_store != X).nnz == 0
    assert np.array_equal(y, labels)
    assert np.array_equal(y, (load_svmlight_file(str(rows))[1] > 0).astype(np.int8))


def test_a_file_stands_beside_the_set_it_is_named_after(rows, tmp_path):
    copy = tmp_path / "news20_rebuilt.svm"
    copy.write_bytes(rows.read_bytes())
    assert find(str(copy))[0].published == "news20"
    assert find(str(rows))[0].published is None


def test_a_changed_file_is_other_data(rows, tmp_path):
    copy = tmp_path / "copy.svm"
    copy.write_bytes(rows.read_bytes())
    before = find(str(copy))[0].identity
    assert "copy.svm" in before.values()
    assert str(tmp_path) not in str(before)
    copy.write_text(copy.read_text() + "+1 1:1\n")
    assert find(str(copy))[0].identity != before


def test_a_fifth_is_held_out():
    training, test = held_out(19_953, 0)
    assert (training.size, test.size) == (15_962, 3_991)
    assert np.array_equal(np.sort(np.concatenate([training, test])), np.arange(19_953))
    assert np.array_equal(held_out(19_953, 0)[1], test)
    assert not np.array_equal(held_out(19_953, 1)[1], test)
