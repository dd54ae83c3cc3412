"""Names and patterns of data files; text files as streams of whole lines, plain or compressed."""

import bz2
import gzip
import lzma
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import DataError
from dplasso.data.formats import read_data
from dplasso.data.source_files import expand, line_blocks, source_files


@pytest.fixture
def some_files(tmp_path, monkeypatch):
    for name in ("part-10.svm", "part-2.svm", "part-1.svm", "other.npz", "odd[1].svm", "odd1.svm"):
        (tmp_path / name).write_text("1 1:1\n")
    (tmp_path / "part-3.svm").mkdir()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "part-4.svm").write_text("1 1:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("part-1.svm", ["part-1.svm"]),
        ("missing.svm", ["missing.svm"]),  # said so when it is opened
        ("part-*.svm", ["part-1.svm", "part-2.svm", "part-10.svm"]),
        ("part-?.svm", ["part-1.svm", "part-2.svm"]),
        (["part-2.svm", "part-1*.svm"], ["part-2.svm", "part-1.svm", "part-10.svm"]),
        ("odd[1].svm", ["odd[1].svm"]),
        ("odd[12].svm", ["odd1.svm"]),
        ("deep/**/part-*.svm", ["deep/er/part-4.svm"]),
    ],
)
def test_names_and_patterns(some_files, paths, expected):
    assert [str(path) for path in expand(paths)] == expected


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ("none-*.svm", r"none-\*\.svm: no file matches this pattern"),
        ([], "no data file was passed"),
        (["part-1.svm", "./part-1.svm"], "part-1.svm: the file is named twice"),
        (["part-*.svm", "part-2.svm"], "part-2.svm: the file is named twice"),
    ],
)
def test_no_file_and_a_file_twice(some_files, paths, problem):
    with pytest.raises(DataError, match=problem):
        expand(paths)


def test_files_are_looked_up_once(some_files):
    files = source_files("part-*.svm")
    assert source_files(files) is files
    assert (files.before(2), files.total) == (12, 18)
    assert files.name == "part-1.svm and 2 more"
    assert source_files("part-1.svm").name == "part-1.svm"
    with pytest.raises(DataError, match=r"/dev/null is not a file but a pipe or device"):
        source_files("/dev/null")


TEXT = b"".join(b"%d %d:0.5 %d:1\n" % (1 - 2 * (i % 2), i % 7 + 1, i % 5 + 9) for i in range(2000))


COMPRESSORS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "data.svm"
    path.write_bytes(TEXT)
    return read_data(path)


def same(data, expected):
    return (data.X != expected.X).nnz == 0 and np.array_equal(data.y, expected.y)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        *(("", bytes), *COMPRESSORS.items()),
        *((s, lambda text, c=c: c(text[:999]) + c(text[999:])) for s, c in COMPRESSORS.items()),
    ],
)
@pytest.mark.parametrize("name", ["a9a", "a9a.t", "news20.binary", "x.SVM", "x.libsvm", "x.txt"])
def test_every_name_and_compression(tmp_path, expected, name, suffix, compress):
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(compress(b"\xef\xbb\xbf" + TEXT))  # a byte-order mark is left out
    seen = []
    data = read_data(str(path), progress=lambda *at: seen.append(at))
    assert same(data, expected)
    assert data.source == str(path)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_stream_cut_short_or_of_another_kind_is_refused(tmp_path, suffix):
    path = tmp_path / f"data.svm{suffix}"
    whole = COMPRESSORS[suffix](TEXT)
    for length in {*range(24), *range(24, len(whole), 97), len(whole) - 8, len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(DataError) as caught:
            read_data(path)
        assert str(path) in str(caught.value)
        if length > 8:
            assert f"the {suffix} stream is damaged or truncated" in str(caught.value)

    path.write_bytes(TEXT)
    with pytest.raises(DataError, match="stream is damaged"):
        read_data(path)
    plain = tmp_path / "data.svm"
    plain.write_bytes(COMPRESSORS[suffix](TEXT))
    with pytest.raises(DataError, match=rf"content is .*\{suffix}.*the file name lacks"):
        read_data(plain)


def test_a_file_that_cannot_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "data.svm"
    path.write_bytes(TEXT)

    open_file = type(path).open

    def refuse(self, *args, **options):
        if self == path:
            raise PermissionError(13, "Permission denied")
        return open_file(self, *args, **options)

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(DataError, match=r"data\.svm: cannot be opened: Permission denied"):
        read_data(path)


@given(text=st.lists(st.sampled_from([b"a", b"bc", b"\n"]), max_size=30).map(b"".join))
@settings(max_examples=100, deadline=None)
def test_blocks_are_whole_lines_of_the_file(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "blocks.txt"
    for block_bytes, mark in product((1, 2, 5, 100), (b"", b"\xef\xbb\xbf")):
        path.write_bytes(mark + text)
        blocks = [block for block, _ in line_blocks(path, block_bytes)]
        assert b"".join(blocks) == text
        assert all(block.endswith(b"\n") for block in blocks[:-1])
        assert all(blocks) or mark


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dplasso.data.source_files.MAX_LINE_BYTES", 10_000)
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n" + "1" * 20_000 + "\n")
    with pytest.raises(DataError, match=r"data\.svm: a line is longer than 10,000 bytes"):
        list(line_blocks(path, 1000))
    path.write_text("1" * 9000)
    assert list(line_blocks(path, 1000))
