"""``dplasso convert`` of tables and texts: the right columns, and what of them is public."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dplasso.data.store import open_store


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {
        "words": [[3, 0], [1], [], [2, 4]],
        "counts": [[1.0, 2.0], [0.5], [], [3.0, 1.5]],
        "city": ["Rome", "Oslo", None, "Rome"],
        "y": [1, 0, 0, 1],
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text('id,body,y\n1,"Good, good film",pos\n2,bad,neg\n')
    return path


@pytest.fixture
def convert(run, tmp_path):
    def convert(*arguments):
        out = tmp_path / "out.store"
        result = run("convert", *arguments, out, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout), open_store(out)

    return convert


def test_text(convert, reviews):
    report, store = convert(
        *("--text", reviews, "--text-column", "body", "--label-column", "y"),
        *("--hash-bits", "10", "--ngrams", "1,2", "--binary"),
    )
    assert store.shape == (2, 1024)
    # good, film, "good good", "good film"; bad
    assert np.diff(store.X.tocsr().indptr).tolist() == [4, 1]
    assert set(store.X.tocsr().data) == {1.0}
    assert store.y.tolist() == ["pos", "neg"]
    assert report["public"].startswith("The 1,024 columns follow from the schema alone")
    (text,) = report["origin"]["schema"]["parts"]
    assert (text["kind"], text["bits"], text["ngrams"]) == ("text", 10, [1, 2])


def test_text_defaults_and_what_is_said(run, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "Good good", "label": 1}\n{"text": "bad", "label": 0}\n')
    result = run("convert", "--text", path, tmp_path / "t.store")
    assert result.exit_code == 0, result.output
    assert "no category, word or range is taken from the data" in " ".join(result.stdout.split())
    store = open_store(tmp_path / "t.store")
    assert store.shape == (2, 2**20)
    assert sorted(store.X.tocsr().data) == [1.0, 2.0]


def test_lists(convert, table):
    report, store = convert(table, "--indices", "words", "--label-column", "y")
    assert store.shape == (4, 5)
    assert "treated as public" in report["public"]
    assert store.X.tocsr().toarray()[0].tolist() == [1, 0, 0, 1, 0]


def test_lists_with_values_and_declared_columns(convert, table):
    report, store = convert(
        *(table, "--indices", "words", "--values", "counts"),
        *("--label-column", "y", "--features", "9"),
    )
    assert store.shape == (4, 9)
    assert report["public"] == "The 9 columns were declared."
    assert store.X.tocsr().toarray()[3, [2, 4]].tolist() == [3.0, 1.5]


def test_declared_categories(convert, table, tmp_path):
    lists = tmp_path / "lists.json"
    lists.write_text('{"city": ["Oslo", "Lima", "Rome"]}')
    report, store = convert(table, "--categories", lists, "--label-column", "y")
    assert store.X.tocsr().toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert report["public"].startswith("The 3 columns follow from the schema")
    lists.write_text('{"city": ["Oslo"]}')
    report, store = convert(
        table, "--categories", lists, "--ignore-unknown", "--label-column", "y", "--force"
    )
    assert store.X.tocsr().toarray().tolist() == [[0], [1], [0], [0]]


def test_hashed_categories(convert, table):
    report, store = convert(
        table, "--hash-columns", "city", "--hash-bits", "6", "--label-column", "y"
    )
    assert store.shape == (4, 64)
    assert np.diff(store.X.tocsr().indptr).tolist() == [1, 1, 0, 1]
    assert "no category, word or range is taken from the data" in report["public"]


def test_without_pyarrow(run, table, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dplasso.data.tables.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("convert", table, "--indices", "words", tmp_path / "out.store")
    assert result.exit_code == 1
    assert "pip install 'dplasso[arrow]'" in result.stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_hashing_a_number_is_remarked_on(run, tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    columns = {"age": range(40), "ward": ["A", "B"] * 20, "id": [f"x{i}" for i in range(40)]}
    table = pa.table({name: list(values) for name, values in columns.items()} | {"label": [0] * 40})
    write = pq.write_table if suffix == ".parquet" else csv.write_csv
    write(table, path)
    given = ("convert", path, tmp_path / "o.store", "--hash-bits", "6", "--force")
    assert "column 'age' holds numbers" in run(*given, "--hash-columns", "ward,age").stderr
    result = run(*given, "--hash-columns", "ward,id")
    assert result.exit_code == 0
    assert "numbers" not in result.stderr
