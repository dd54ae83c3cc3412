"""Texts: the rows of scikit-learn's hashing, streamed; bad files named with their line."""

import bz2
import csv
import gzip
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from data.row_blocks import gather
from dplasso.data.tables.text import LONGEST_FIELD
from dplasso.encoding.parts import Text
from dplasso.encoding.schema import Schema
from dplasso.encoding.source import table_source
from dplasso.errors import DataError

MEMORY = 1 << 22
TEXTS = [
    'The film was good, "very" good',
    "bad\nbad\r\nfilm",
    "",
    "Ein schöner Film, très beau – 好",
    "good",
]
LABELS = ["1", "0", "1", "0", "1"]


def write_csv(path, texts, labels, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "body", "y"])
        writer.writerows((i, *row) for i, row in enumerate(zip(texts, labels, strict=True)))
    return path


def write_jsonl(path, texts, labels):
    rows = zip(texts, labels, strict=True)
    path.write_text("".join(json.dumps({"y": y, "body": text}) + "\n" for text, y in rows))
    return path


def words(bits=20, ngrams=(1, 1), binary=False, **more):
    return Text("body", bits, ngrams, binary, missing="error", **more)


def text_source(paths, hashing):
    return table_source(paths, Schema((hashing,), "y"))


def read(path, hashing=words(), memory=MEMORY):  # noqa: B008
    source = text_source(path, hashing)
    assert source.n_features == 2**hashing.bits
    return gather(source.blocks(memory), source.n_features)


def hashed(texts, hashing):
    vectorizer = HashingVectorizer(
        n_features=2**hashing.bits,
        ngram_range=hashing.ngrams,
        binary=hashing.binary,
        lowercase=hashing.lowercase,
        alternate_sign=False,
        norm=None,
    )
    return vectorizer.transform(texts)


@pytest.mark.parametrize(
    "hashing",
    [
        words(),
        words(bits=4),
        words(bits=10, ngrams=(1, 2), binary=True),
        words(bits=10, ngrams=(2, 3), lowercase=False),
    ],
)
def test_rows_are_those_of_scikit_learn(tmp_path, hashing):
    X, y, _ = read(write_csv(tmp_path / "t.csv", TEXTS, LABELS), hashing)
    expected = hashed(TEXTS, hashing)
    assert X.shape == expected.shape
    assert abs(X - expected).nnz == 0
    assert X.data.dtype == np.float32
    if hashing.binary:
        assert set(X.data) == {1.0}
    np.testing.assert_array_equal(y, [1, 0, 1, 0, 1])


@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_a_byte_order_mark_is_left_out(tmp_path, write):
    path = write(tmp_path / ("t.csv" if write is write_csv else "t.jsonl"), TEXTS, LABELS)
    expected = read(path)[0]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert abs(read(path)[0] - expected).nnz == 0


@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1
    ),
    memory=st.sampled_from([1, 1000, MEMORY]),
)
def test_any_text_comes_through_csv_and_json(tmp_path_factory, texts, memory):
    folder = tmp_path_factory.mktemp("texts")
    labels = ["a" if len(text) % 2 else "b" for text in texts]
    hashing = words(bits=12)
    expected = hashed(texts, hashing)
    for path in (
        write_csv(folder / "t.csv", texts, labels),
        write_jsonl(folder / "t.jsonl", texts, labels),
    ):
        X, y, n_blocks = read(path, hashing, memory)
        assert X.shape == expected.shape
        assert abs(X - expected).nnz == 0
        assert y.tolist() == labels
        assert memory > 1 or n_blocks == len(texts)


def test_the_vocabulary_does_not_depend_on_the_data(tmp_path):
    one, _, _ = read(write_csv(tmp_path / "a.csv", TEXTS, LABELS))
    two, _, _ = read(write_csv(tmp_path / "b.csv", TEXTS[3:], LABELS[3:]))
    assert one.shape[1] == two.shape[1] == 2**20
    assert abs(one[3:] - two).nnz == 0


class TestKindsOfFiles:
    def test_tab_separated(self, tmp_path):
        X, _, _ = read(write_csv(tmp_path / "t.tsv", TEXTS, LABELS, "\t"))
        assert abs(X - hashed(TEXTS, words())).nnz == 0

    @pytest.mark.parametrize(
        ("suffix", "compress"),
        [
            (".gz", gzip.compress),
            (".bz2", bz2.compress),
            (".xz", lzma.compress),
            (".zst", zstandard.ZstdCompressor().compress),
        ],
    )
    def test_compressed(self, tmp_path, suffix, compress):
        for write, name in ((write_csv, "t.csv"), (write_jsonl, "t.jsonl")):
            plain = write(tmp_path / name, TEXTS, LABELS)
            packed = tmp_path / (name + suffix)
            packed.write_bytes(compress(plain.read_bytes()))
            assert abs(read(packed)[0] - read(plain)[0]).nnz == 0

    @pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
    def test_tables(self, tmp_path, name):
        path = tmp_path / name
        table = pa.table({"body": TEXTS, "y": [1, 0, 1, 0, 1]})
        if name == "t.parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        X, y, _ = read(path)
        assert abs(X - hashed(TEXTS, words())).nnz == 0
        assert y.tolist() == [1, 0, 1, 0, 1]

    def test_byte_order_mark(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes(b"\xef\xbb\xbfbody,y\r\nfine,1\r\n")
        assert read(path)[0].nnz == 1

    def test_several_files_are_one_data_set(self, tmp_path):
        paths = [
            write_csv(tmp_path / "a.csv", TEXTS[:2], LABELS[:2]),
            write_jsonl(tmp_path / "b.jsonl", TEXTS[2:], LABELS[2:]),
        ]
        seen = []
        source = text_source(paths, words())
        assert source.total == sum(path.stat().st_size for path in paths)
        blocks = source.blocks(1, lambda done, total: seen.append((done, total)))
        X, y, _ = gather(blocks, 2**20)
        assert abs(X - hashed(TEXTS, words())).nnz == 0
        assert y.tolist() == [1, 0, 1, 0, 1]
        assert seen == sorted(seen)
        assert seen[-1] == (source.total, source.total)


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            (["spam", "ham"], ["spam", "ham"]),
            ([1, 0], [1, 0]),
            ([True, False], [True, False]),
            (["+1", "-1"], [1, -1]),
        ],
    )
    def test_json(self, tmp_path, labels, expected):
        _, y, _ = read(write_jsonl(tmp_path / "t.jsonl", ["a b", "c d"], labels), memory=1)
        assert y.tolist() == expected

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (["1", "spam"], "line 3: the label is not a number, as the first label is"),
            (["1", ""], "line 3: the label is not a number"),
            (["1", "nan"], "line 3: the label is not a number"),
        ],
    )
    def test_csv_labels_of_two_kinds(self, tmp_path, labels, message):
        for memory in (1, MEMORY):
            with pytest.raises(DataError, match=message):
                read(write_csv(tmp_path / "t.csv", ["a", "b"], labels), memory=memory)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([1, True], "line 2: the label is not a number"),
            ([True, 1], "line 2: the label is not a bool"),
            (["a", 1], "line 2: the label is not a string"),
            ([None, 1], "line 1: the label is neither a finite number nor a string nor a bool"),
            ([float("nan"), 1], "line 1: the label is neither"),
            ([[1], [2]], "line 1: the label is neither"),
        ],
    )
    def test_json_labels(self, tmp_path, labels, message):
        with pytest.raises(DataError, match=message):
            read(write_jsonl(tmp_path / "t.jsonl", ["a", "b"], labels))


class TestBadFiles:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "the file is empty"),
            ("body,label\n", "no column 'y' among the 2 of the first line"),
            ("body,y,y\n", "columns 2 and 3 of the first line have one name"),
            ("body,y\nfine,1\nshort\n", "line 3: 1 fields, the header has 2"),
            ('body,y\n"two\nlines",1\na,b,c\n', "line 4: 3 fields, the header has 2"),
            ('body,y\nfine,1\n"never closed,1\nmore,0\n', "record from line 3 on: .* quote"),
            ('body,y\nfine,1\n"a "quoted" word",1\n', "record from line 3 on: .* quote"),
        ],
    )
    def test_csv(self, tmp_path, text, message):
        path = tmp_path / "bad.csv"
        path.write_text(text)
        with pytest.raises(DataError, match=f"bad.csv.*{message}"):
            read(path)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"body": "a", "y": 1}\n\n{"body": "b"\n', "line 3: not a JSON object"),
            ('{"body": "a", "y": 1}\n[1]\n', "line 2: not a JSON object but a list"),
            ('{"body": "a"}\n', "line 1: there is no 'y'"),
            ('{"body": null, "y": 1}\n', "column 'body', line 1: the value is missing"),
            ('{"body": 5, "y": 1}\n', "column 'body', line 1: the value is not text"),
            ("[" * 100_000 + "\n", "line 1: not a JSON object"),
        ],
    )
    def test_json(self, tmp_path, text, message):
        path = tmp_path / "bad.jsonl"
        path.write_text(text)
        with pytest.raises(DataError, match=f"bad.jsonl.*{message}"):
            read(path)

    @pytest.mark.parametrize("name", ["bad.csv", "bad.jsonl"])
    def test_not_utf_8(self, tmp_path, name):
        path = tmp_path / name
        path.write_bytes(b'body,y\n"fine",1\ncaf\xe9,1\n')
        with pytest.raises(DataError, match=r"line 3: this is not UTF-8"):
            read(path)

    def test_an_open_quote_does_not_take_the_file_for_one_field(self, tmp_path):
        path = tmp_path / "bad.csv"
        with path.open("w") as file:
            file.write('body,y\n"never closed,1\n')
            for _ in range(LONGEST_FIELD // 100_000 + 2):
                file.write("x" * 99_999 + "\n")
        with pytest.raises(DataError, match=r"record from line 2 on: field larger than"):
            read(path)

    def test_a_stream_cut_short(self, tmp_path):
        plain = write_csv(tmp_path / "t.csv", TEXTS * 100, LABELS * 100).read_bytes()
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(plain)[:-20])
        with pytest.raises(DataError, match=r"the \.gz stream is damaged or cut short"):
            read(tmp_path / "t.csv.gz")

    def test_a_file_that_changes_meanwhile(self, tmp_path):
        path = write_csv(tmp_path / "t.csv", TEXTS, LABELS)
        source = text_source(path, words())
        blocks = source.blocks(1)
        next(blocks)
        path.write_bytes(path.read_bytes() + b"6,more,1\r\n")
        with pytest.raises(DataError, match="the file changed while it was being read"):
            list(blocks)

    def test_a_table_without_text(self, tmp_path):
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"body": [1], "y": [1]}), path)
        with pytest.raises(DataError, match="column 'body', row 1: the value is not text"):
            read(path)
        pq.write_table(pa.table({"body": ["a", None], "y": [1, 0]}), path)
        with pytest.raises(DataError, match="column 'body', row 2: the value is missing"):
            read(path)

    def test_missing_or_of_another_kind(self, tmp_path):
        with pytest.raises(DataError, match="no such file"):
            read(tmp_path / "none.csv")
        (tmp_path / "t.docx").write_text("body")
        with pytest.raises(DataError, match=r"tables are read from \.csv"):
            read(tmp_path / "t.docx")


def test_memory_bounds_the_blocks(tmp_path):
    rng = np.random.default_rng(0)
    vocabulary = [f"word{k}" for k in range(3000)]
    texts = [" ".join(rng.choice(vocabulary, 60)) for _ in range(3000)]
    path = write_csv(tmp_path / "t.csv", texts, ["0", "1"] * 1500)
    source = text_source(path, words(ngrams=(1, 2)))
    memory = 1 << 20
    blocks = list(source.blocks(memory))
    assert max(block.indices.nbytes + block.values.nbytes for block in blocks) < memory / 4
    assert len(blocks) > path.stat().st_size * 20 / memory
