"""Texts: the rows of scikit-learn's hashing, streamed; bad files named with their line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from data.row_blocks import encode_files, gather
from dplasso import DataError
from encoding.generated import write as write_table
from schemas import Schema, Text

MEMORY = 1 << 22
TEXTS = [
    'The film was good, "very" good',
    "bad\nbad\r\nfilm",
    "",
    "Ein schöner Film, très beau – 好",
    "good",
]
LABELS = ["1", "0", "1", "0", "1"]


def write(path, texts, labels):
    """Write texts in the kind of file that the name says, compressed or not."""
    return write_table(path, {"id": range(len(texts)), "body": texts, "y": labels})


def words(bits=20, ngrams=(1, 1), binary=False, **more):
    return Text("body", bits, ngrams, binary, missing="error", **more)


def read(path, hashing=words(), memory=MEMORY):  # noqa: B008
    source = encode_files(path, Schema((hashing,), "y"))
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


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.jsonl.gz"])
@settings(max_examples=20)
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1
    ),
    memory=st.sampled_from([1, 1000, MEMORY]),
    bits=st.sampled_from([4, 10, 20]),
    ngrams=st.sampled_from([(1, 1), (1, 2), (2, 3)]),
    binary=st.booleans(),
    lowercase=st.booleans(),
)
@example(texts=TEXTS, memory=MEMORY, bits=20, ngrams=(1, 1), binary=False, lowercase=True)
@example(texts=TEXTS, memory=MEMORY, bits=10, ngrams=(1, 2), binary=True, lowercase=False)
def test_any_text_comes_through_every_format(
    tmp_path_factory, name, texts, memory, bits, ngrams, binary, lowercase
):
    """Its row is that of scikit-learn."""
    labels = ["a" if len(text) % 2 else "b" for text in texts]
    hashing = words(bits, ngrams, binary, lowercase=lowercase)
    path = write(tmp_path_factory.mktemp("texts") / name, texts, labels)
    X, y, n_blocks = read(path, hashing, memory)
    assert abs(X - hashed(texts, hashing)).nnz == 0
    assert X.data.dtype == np.float32
    assert not binary or set(X.data) <= {1.0}
    assert y.tolist() == labels
    assert memory > 1 or n_blocks == len(texts)


def test_several_files_are_one_data_set(tmp_path):
    paths = [
        write(tmp_path / "a.csv", TEXTS[:2], LABELS[:2]),
        write(tmp_path / "b.jsonl", TEXTS[2:4], LABELS[2:4]),
        tmp_path / "c.parquet",
    ]
    pq.write_table(pa.table({"body": TEXTS[4:], "y": [1.0]}), paths[2])
    seen = []
    source = encode_files(paths, Schema((words(),), "y"))
    assert source.total == sum(path.stat().st_size for path in paths)
    blocks = source.blocks(1, lambda done, total: seen.append((done, total)))
    X, y, _ = gather(blocks, 2**20)
    assert abs(X - hashed(TEXTS, words())).nnz == 0
    assert y.tolist() == [1, 0, 1, 0, 1]
    assert seen == sorted(seen)
    assert seen[-1] == (source.total, source.total)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["spam", "ham"], ["spam", "ham"]),
        ([1, 0], [1, 0]),
        ([True, False], [True, False]),
        (["+1", "-1"], [1, -1]),
        (["1", "spam"], "line 2: the label is not a number, as the first label is"),
        (["1", "nan"], "line 2: the label is not a number"),
        ([1, True], "line 2: the label is not a number"),
        (["a", 1], "line 2: the label is not a string"),
        ([None, 1], "line 1: the label is missing"),
        (["a", " "], "line 2: the label is missing"),
        ([[1], [2]], "line 1: the label is neither"),
    ],
)
@pytest.mark.parametrize("memory", [1, MEMORY])
def test_labels(tmp_path, labels, expected, memory):
    path = write(tmp_path / "t.jsonl", ["a b", "c d"], labels)
    if isinstance(expected, list):
        assert read(path, memory=memory)[1].tolist() == expected
    else:
        with pytest.raises(DataError, match=expected):
            read(path, memory=memory)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.csv", "", "is empty"),
        ("bad.csv", "body,label\n", "no column 'y'; there are 'body', 'label'"),
        ("bad.csv", "body,y\nfine,1\nshort\n", "line 3 has 1 fields, but the header has 2"),
        ("bad.csv", 'body,y\n"two\nlines",1\na,b,c\n', "line 4 has 3 fields, but the header has 2"),
        ("bad.csv", 'body,y\nfine,1\n"open,1\nmore,0\n', "record from line 3 on: .* quote"),
        ("bad.csv", 'body,y\n"fine",1\ncaf\udce9,1\n', "line 3: this is not UTF-8"),
        ("bad.jsonl", 'body,y\n"fine",1\ncaf\udce9,1\n', "line 3: this is not UTF-8"),
        ("bad.jsonl", '{"body": "a", "y": 1}\n\n{"body": "b"\n', "line 3: not a JSON object"),
        ("bad.jsonl", '{"body": "a", "y": 1}\n[1]\n', "line 2: not a JSON object but a list"),
        ("bad.jsonl", '{"body": "a"}\n', "line 1: the key 'y' is missing"),
        ("bad.jsonl", '{"body": null, "y": 1}\n', "'body', line 1: the value is missing"),
        ("bad.jsonl", "[" * 100_000 + "\n", "line 1: not a JSON object"),
        ("bad.docx", "body", "is not a table"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=f"bad.*{message}"):
        read(path)


def test_an_open_quote_does_not_take_the_file_for_one_field(tmp_path):
    path = tmp_path / "bad.csv"
    with path.open("w") as file:
        file.write('body,y\n"never closed,1\n')
        # A field may hold 16 MiB.
        for _ in range(2**24 // 100_000 + 2):
            file.write("x" * 99_999 + "\n")
    with pytest.raises(DataError, match=r"record from line 2 on: field larger than"):
        read(path)


def test_memory_bounds_the_blocks(tmp_path):
    rng = np.random.default_rng(0)
    vocabulary = [f"word{k}" for k in range(3000)]
    texts = [" ".join(rng.choice(vocabulary, 60)) for _ in range(1000)]
    path = write(tmp_path / "t.csv", texts, ["0", "1"] * 500)
    source = encode_files(path, Schema((words(ngrams=(1, 2)),), "y"))
    memory = 1 << 20
    blocks = list(source.blocks(memory))
    assert max(block.indices.nbytes + block.values.nbytes for block in blocks) < memory / 4
    assert len(blocks) > path.stat().st_size * 20 / memory
