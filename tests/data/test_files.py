import bz2
import gzip
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.data.files import Dataset, read_data
from dplasso.data.npz import write_npz
from dplasso.data.streams import line_blocks
from dplasso.errors import DataError

TEXT = b"".join(b"%d %d:0.5 %d:1\n" % (1 - 2 * (i % 2), i % 7 + 1, i % 5 + 9) for i in range(2000))


def zstd_frames(text):
    """Two frames and a skippable one, as parallel compressors write."""
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    half = len(text) // 2
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return compressor.compress(text[:half]) + skippable + compressor.compress(text[half:])


COMPRESSORS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "data.svm"
    path.write_bytes(TEXT)
    return read_data(path)


def same(data, expected):
    return (
        (data.X != expected.X).nnz == 0
        and data.X.shape == expected.X.shape
        and np.array_equal(data.y, expected.y)
    )


def test_a_dataset(expected):
    assert isinstance(expected, Dataset)
    assert expected.X.shape == (2000, 13)
    assert expected.source.endswith("data.svm")
    assert expected.y[:2].tolist() == [1, -1]


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_every_compression(tmp_path, expected, suffix):
    path = tmp_path / f"data.svm{suffix}"
    path.write_bytes(COMPRESSORS[suffix](TEXT))
    seen = []
    data = read_data(path, progress=lambda *at: seen.append(at))
    assert same(data, expected)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(s, lambda text, c=c: c(text[:999]) + c(text[999:])) for s, c in COMPRESSORS.items()]
    + [(".zst", zstd_frames)],
)
def test_streams_of_several_members(tmp_path, expected, suffix, compress):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(compress(TEXT))
    assert same(read_data(path), expected)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_byte_order_mark_is_left_out(tmp_path, expected, suffix):
    path = tmp_path / f"data.svm{suffix}"
    text = b"\xef\xbb\xbf" + TEXT
    path.write_bytes(gzip.compress(text) if suffix else text)
    assert same(read_data(path), expected)


def test_a_byte_order_mark_in_small_blocks(tmp_path):
    path = tmp_path / "data.svm"
    for text in (b"1 1:1", b"1 1:1\n2 1:1\n\xef\xbb\xbf"):
        path.write_bytes(b"\xef\xbb\xbf" + text)
        assert b"".join(block.text for block in line_blocks(path, 2)) == text


@pytest.mark.parametrize("name", ["a9a", "a9a.t", "news20.binary", "x.SVM", "x.libsvm", "x.txt"])
def test_the_names_of_svmlight_files(tmp_path, expected, name):
    for path, content in ((tmp_path / name, TEXT), (tmp_path / f"{name}.gz", gzip.compress(TEXT))):
        path.write_bytes(content)
        assert same(read_data(str(path)), expected)


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_stream_cut_short_is_refused(tmp_path, suffix):
    path = tmp_path / f"data.svm{suffix}"
    whole = COMPRESSORS[suffix](TEXT)
    for length in {*range(24), *range(24, len(whole), 97), len(whole) - 8, len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(DataError) as caught:
            read_data(path)
        assert str(path) in str(caught.value)
        if length > 8:
            assert f"the {suffix} stream is damaged or cut short" in str(caught.value)


@pytest.mark.parametrize("suffix", COMPRESSORS)
@given(at=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_a_flipped_byte_is_refused_or_harmless(tmp_path_factory, expected, suffix, at, mask):
    damaged = bytearray(COMPRESSORS[suffix](TEXT))
    damaged[int(at * len(damaged))] ^= mask
    path = tmp_path_factory.getbasetemp() / f"flipped{suffix}"
    path.write_bytes(damaged)
    try:
        data = read_data(path)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert same(data, expected)  # such as the time in a gzip header


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_content_and_name_disagree(tmp_path, suffix):
    path = tmp_path / f"data.svm{suffix}"
    path.write_bytes(TEXT)
    with pytest.raises(DataError, match="stream is damaged"):
        read_data(path)
    plain = tmp_path / "data.svm"
    plain.write_bytes(COMPRESSORS[suffix](TEXT))
    with pytest.raises(DataError, match=rf"content is .*\{suffix}.*the name says plain text"):
        read_data(plain)


def test_paths_that_are_no_data_file(tmp_path):
    with pytest.raises(DataError, match=r"missing\.svm: no such file"):
        read_data(tmp_path / "missing.svm")
    with pytest.raises(DataError, match="this is a folder"):
        read_data(tmp_path)
    for name in ("x.csv", "x.csv.gz", "x.parquet", "x.zip", "x.svm.7z"):
        (tmp_path / name).write_bytes(TEXT)
        with pytest.raises(
            DataError, match=r"files that end in \.\w+ cannot be read; give svmlight"
        ):
            read_data(tmp_path / name)


def test_a_file_that_cannot_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "data.svm"
    path.write_bytes(TEXT)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(DataError, match=r"data\.svm: cannot be opened: Permission denied"):
        read_data(path)


def test_npz_goes_to_its_reader(tmp_path, expected):
    path = tmp_path / "data.npz"
    write_npz(path, expected.X, expected.y)
    data = read_data(path, n_features=20)
    assert data.X.shape == (2000, 20)
    assert same(read_data(path), expected)


def test_labels_path_is_for_npz(tmp_path):
    (tmp_path / "data.svm").write_bytes(TEXT)
    with pytest.raises(DataError, match="svmlight text has its own labels"):
        read_data(tmp_path / "data.svm", labels_path=tmp_path / "y.npy")


def test_an_error_in_progress_ends_the_reading(tmp_path):
    path = tmp_path / "data.svm.gz"
    path.write_bytes(gzip.compress(TEXT))

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_data(path, progress=interrupt)


@given(text=st.lists(st.sampled_from([b"a", b"bc", b"\n"]), max_size=30).map(b"".join))
@settings(max_examples=100, deadline=None)
def test_blocks_are_whole_lines_of_the_file(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "blocks.txt"
    path.write_bytes(text)
    for block_bytes in (1, 2, 5, 100):
        blocks = [block.text for block in line_blocks(path, block_bytes)]
        assert b"".join(blocks) == text
        assert all(block.endswith(b"\n") for block in blocks[:-1])
        assert all(blocks)
