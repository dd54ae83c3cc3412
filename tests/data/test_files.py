"""Names and patterns of data files; text files as streams of whole lines, plain or compressed."""

import bz2
import gzip
import lzma

import pytest

from data.row_blocks import block_source, check_same, gather
from data.store.reference import write_blocks
from dplasso import DataError


def read(paths, progress=None):
    """Read data files by small blocks: a CSR array and the labels."""
    return gather(block_source(paths).blocks(1, progress))[:2]


FILES = ["part-10.svm", "part-2.svm", "part-1.svm", "odd[1].svm", "odd1.svm", "deep/er/part-4.svm"]


@pytest.fixture
def some_files(tmp_path, monkeypatch):
    """Files of one record, whose label is the file's number in this list."""
    for label, name in enumerate(FILES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{label} 1:1\n")
    (tmp_path / "other.npz").touch()
    (tmp_path / "part-3.svm").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("part-1.svm", ["part-1.svm"]),
        ("part-*.svm", ["part-1.svm", "part-2.svm", "part-10.svm"]),
        ("part-?.svm", ["part-1.svm", "part-2.svm"]),
        (["part-2.svm", "part-1*.svm"], ["part-2.svm", "part-1.svm", "part-10.svm"]),
        ("odd[1].svm", ["odd[1].svm"]),
        ("odd[12].svm", ["odd1.svm"]),
        ("deep/**/part-*.svm", ["deep/er/part-4.svm"]),
    ],
)
def test_names_and_patterns(some_files, paths, expected):
    seen = []
    assert [FILES[int(label)] for label in read(paths, lambda *at: seen.append(at))[1]] == expected
    size = 6 * len(expected)
    assert seen == [(done, size) for done in range(6, size + 1, 6)]
    more = f" and {len(expected) - 1} more" * (len(expected) > 1)
    assert block_source(paths).name == expected[0] + more


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ("/dev/null", r"/dev/null is not a file but a pipe or device"),
        ("none-*.svm", r"none-\*\.svm: no file matches this pattern"),
        ([], "no data file was passed"),
    ],
)
def test_no_file_and_a_file_twice(some_files, paths, problem):
    with pytest.raises(DataError, match=problem):
        block_source(paths)


TEXT = b"".join(b"%d %d:0.5 %d:1\n" % (1 - 2 * (i % 2), i % 7 + 1, i % 5 + 9) for i in range(2000))
COMPRESSORS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def test_every_name_and_compression(tmp_path):
    """A byte-order mark is left out, and streams behind one another are one text."""
    (tmp_path / "data.svm").write_bytes(TEXT)
    expected = read(tmp_path / "data.svm")
    marked = b"\xef\xbb\xbf" + TEXT
    contents = dict.fromkeys(("a9a", "news20.binary", "x.SVM", "x.libsvm", "x.txt"), marked)
    for suffix, compress in COMPRESSORS.items():
        contents[f"a9a.t{suffix}"] = compress(marked)
        contents[f"two.svm{suffix}"] = compress(marked[:999]) + compress(marked[999:])
    for name, content in contents.items():
        path, seen = tmp_path / name, []
        path.write_bytes(content)
        check_same(*read(str(path), lambda *at, seen=seen: seen.append(at)), *expected)
        assert seen[-1] == (len(content), len(content)), name


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_stream_cut_short_or_of_another_kind_is_refused(tmp_path, suffix):
    path = tmp_path / f"data.svm{suffix}"
    whole = COMPRESSORS[suffix](TEXT)
    for length in {*range(24), *range(24, len(whole), 397), len(whole) - 8, len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(DataError) as caught:
            write_blocks(block_source(path), tmp_path / "store")
        assert str(path) in str(caught.value)
        if length > 8:
            assert f"the {suffix} stream is damaged or truncated" in str(caught.value)

    path.write_bytes(TEXT)
    with pytest.raises(DataError, match=r"stream is damaged or truncated; compress it again$"):
        read(path)
    plain = tmp_path / "data.svm"
    plain.write_bytes(COMPRESSORS[suffix](TEXT))
    with pytest.raises(DataError, match=rf"content is .*\{suffix}.*the file name lacks"):
        read(plain)


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
        read(path)


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dplasso.data.source_files.MAX_LINE_BYTES", 10_000)
    monkeypatch.setattr("dplasso.data.svmlight._LEAST_TEXT", 1000)
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n1 1:" + "1" * 20_000 + "\n")
    with pytest.raises(DataError, match=r"data\.svm: a line is longer than 10,000 bytes"):
        read(path)
    path.write_text("1 1:0." + "1" * 9000)
    assert read(path)[1].tolist() == [1]
