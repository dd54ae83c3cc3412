"""Files of every kind as rows, in Python as on the command line."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dplasso import DataError, open_store
from dplasso.data.formats import is_table
from dplasso.data.store import write_store
from dplasso.encoding.files import encode_files, read_records
from dplasso.encoding.origin import Origin, origin_of
from dplasso.encoding.parts import Categories
from dplasso.encoding.schema import Schema

SCHEMA = Schema((Categories("city", ("Oslo", "Rome")),), "label")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"words": [[3, 0], [1]], "city": ["Rome", "Oslo"], "label": ["yes", "no"]}
    pq.write_table(pa.table(columns), path)
    return path


def rows(records):
    blocks = list(records.source.blocks(1 << 26))
    labels = np.concatenate([block.labels for block in blocks])
    return [
        block.indices[start:end].tolist()
        for block in blocks
        for start, end in zip(block.indptr[:-1], block.indptr[1:], strict=True)
    ], labels.tolist()


def test_a_schema_says_how_its_columns_were_made(table):
    cities = encode_files(table, SCHEMA)
    assert rows(cities)[0] == [[1], [0]]
    assert json.loads(json.dumps(cities.origin)) == Origin(SCHEMA).to_json()


def test_column_numbers_need_no_encoding_and_may_be_made_binary(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2.5 3:0\n-1 2:4\n")
    records = encode_files([path], n_features=5, binarize=True)
    assert records.origin == Origin(None, True).to_json()
    (block,) = records.source.blocks(1 << 26)
    assert block.values.tolist() == [1.0, 0.0, 1.0]
    data = read_records(path, n_features=5, binarize=True)
    assert data.X.toarray().tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]
    assert origin_of(data.X) == Origin(None, True)


def test_a_store_is_opened_in_place_of_files(tmp_path):
    path, store = tmp_path / "a.svm", tmp_path / "a.store"
    path.write_text("1 1:1\n-1 2:1\n")
    records = encode_files(path)
    write_store(records.source, store, memory=1 << 27, origin=records.origin)
    assert read_records(store).X.shape == (2, 2)
    for options, words in (
        ({"binarize": True}, "binarize cannot be combined with a store"),
        ({"person_column": "patient"}, "person_column cannot be combined with a store"),
        ({"schema": SCHEMA}, "schema cannot be combined with a store"),
        ({"n_features": 3}, "has 2 columns, but n_features is 3"),
    ):
        with pytest.raises(DataError, match=words):
            read_records(store, **options)
    with pytest.raises(DataError, match="so pass it alone"):
        read_records([store, path])
    assert open_store(store).shape == (2, 2)
    assert origin_of(open_store(store).X) == Origin()


def test_a_table_is_read_by_its_schema(tmp_path, table):
    data = read_records(table, schema=SCHEMA, binarize=True)
    assert data.X.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
    assert data.y.tolist() == ["yes", "no"]
    assert origin_of(data.X) == Origin(SCHEMA, True)
    assert read_records(table, schema=SCHEMA, labelled=False).y.tolist() == [0, 0]
    for options, words in (
        ({}, "is a table and needs a schema"),
        ({"schema": Schema(SCHEMA.parts)}, "names no column of labels"),
        ({"schema": SCHEMA, "zero_based": True}, "zero_based cannot be combined with a table"),
        ({"schema": SCHEMA, "n_features": 9}, "the schema makes 4 columns, but n_features is 9"),
    ):
        with pytest.raises(DataError, match=words):
            read_records(table, **options)
    (tmp_path / "none.csv").write_text("city,label\n")
    with pytest.raises(DataError, match="holds no records"):
        read_records(tmp_path / "none.csv", schema=SCHEMA)
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(DataError, match="is not a table"):
        read_records(tmp_path / "a.svm", schema=SCHEMA)


def test_what_cannot_be_encoded(tmp_path, table):
    assert is_table("T.PARQUET")
    assert is_table("t.csv.gz")
    assert not is_table("t.svm")
    with pytest.raises(DataError, match=r"end in \.parquet cannot be read"):
        encode_files(table)


def test_a_folder_of_stores_is_for_a_cluster(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n")
    (tmp_path / "stores").mkdir()
    write_store(encode_files(path).source, tmp_path / "stores" / "a.store", memory=1 << 27)
    with pytest.raises(DataError, match=r"stores is a folder of stores, .*--cluster threads"):
        read_records(tmp_path / "stores")
