import gzip
import os
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array, vstack

from dplasso.data import streams
from dplasso.data.blocks import BlockSource, RowBlock, block_source
from dplasso.data.files import read_data
from dplasso.data.npz import write_npz
from dplasso.data.streams import line_blocks
from dplasso.errors import DataError


def write_svmlight(path, X, y):
    lines = []
    for i, label in enumerate(y):
        at = slice(X.indptr[i], X.indptr[i + 1])
        pairs = zip(X.indices[at].tolist(), X.data[at].tolist(), strict=True)
        lines.append(
            " ".join([str(label), *(f"{column + 1}:{value!r}" for column, value in pairs)])
        )
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Three parts, of different widths, as text and as .npz; and the whole of them."""
    folder = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(1)
    matrices, labels = [], []
    for number, (n_rows, n_columns) in enumerate([(3000, 50), (1, 4), (500, 400)], start=1):
        X = csr_array(random_array((n_rows, n_columns), density=0.2, rng=rng, dtype=np.float32))
        X.sort_indices()
        y = rng.integers(0, 2, n_rows)
        write_svmlight(folder / f"part-{number}.svm", X, y)
        write_npz(folder / f"part-{number}.npz", X, y)
        X.resize((n_rows, 400))
        matrices.append(X)
        labels.append(y)
    return folder, csr_array(vstack(matrices)), np.concatenate(labels)


def joined(blocks, n_columns):
    """Put row blocks together, looking at each."""
    matrices, labels = [], []
    for block in blocks:
        assert isinstance(block, RowBlock)
        assert block.indptr.dtype == np.int64
        assert block.indptr[0] == 0
        assert block.indices.dtype in (np.int32, np.int64)
        assert block.indices.size == block.values.size == block.indptr[-1]
        assert block.labels.shape == (block.indptr.size - 1,)
        assert block.labels.size >= 1
        shape = (block.labels.size, n_columns)
        X = csr_array((block.values, block.indices, block.indptr), shape=shape)
        assert X.has_canonical_format
        matrices.append(X)
        labels.append(block.labels)
    return csr_array(vstack(matrices)), np.concatenate(labels)


def check_same(X, y, expected, labels):
    assert X.shape == expected.shape
    np.testing.assert_array_equal(X.indptr, expected.indptr)
    np.testing.assert_array_equal(X.indices, expected.indices)
    np.testing.assert_array_equal(X.data, expected.data)
    assert X.data.dtype == np.float32
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("suffix", ["svm", "npz"])
def test_several_files_are_one_data_set(parts, suffix):
    folder, expected, labels = parts
    seen = []
    pattern = folder / f"part-*.{suffix}"
    data = read_data(pattern, progress=lambda *at: seen.append(at))
    check_same(data.X, data.y, expected, labels)
    assert data.source == f"{folder}/part-1.{suffix} and 2 more"
    total = sum(path.stat().st_size for path in folder.glob(f"*.{suffix}"))
    assert seen == sorted(seen)
    assert {size for _, size in seen} == {total}
    if suffix == "svm":
        assert seen[-1] == (total, total)


@pytest.mark.parametrize("suffix", ["svm", "npz"])
@pytest.mark.parametrize("memory", [1, 20_000, 1 << 30])
def test_blocks_hold_all_records_and_come_again(parts, suffix, memory, monkeypatch):
    monkeypatch.setattr("dplasso.data.blocks._LEAST_TEXT", 2000)
    folder, expected, labels = parts
    source = block_source(str(folder / f"part-*.{suffix}"))
    assert isinstance(source, BlockSource)
    assert source.n_features == (None if suffix == "svm" else 400)
    assert source.total == sum(path.stat().st_size for path in folder.glob(f"*.{suffix}"))
    for _ in range(2):
        seen = []
        blocks = list(source.blocks(memory, lambda *at, seen=seen: seen.append(at)))
        check_same(*joined(blocks, 400), expected, labels)
        assert seen
        assert {size for _, size in seen} == {source.total}
        if memory == 20_000:
            assert len(blocks) > 10
            largest = max(block.labels.size for block in blocks)
            assert all(block.indices.nbytes + block.values.nbytes <= memory for block in blocks)
            assert largest > 1


def test_what_is_declared(parts):
    folder, _, labels = parts
    source = block_source(folder / "part-1.svm", n_features=60, label_map={"0": -1, "1": 1})
    assert source.n_features == 60
    _, y = joined(source.blocks(1 << 20), 60)
    np.testing.assert_array_equal(y, 2 * labels[:3000] - 1)
    source = block_source(folder / "part-1.npz", n_features=60, label_map={"0": -1, "1": 1})
    np.testing.assert_array_equal(joined(source.blocks(1 << 20), 60)[1], y)
    with pytest.raises(DataError, match=r"part-1\.svm, line \d+: entry \d+: .* 10 columns"):
        list(block_source(folder / "part-1.svm", n_features=10).blocks(1 << 20))
    source = block_source(folder / "part-1.svm", zero_based=True)
    assert max(block.indices.max() for block in source.blocks(1 << 20)) == 50


def test_wide_columns(tmp_path):
    (tmp_path / "wide.svm").write_text(f"1 {2**31}:1\n1 {2**31 + 1}:1\n")
    first, second = (
        block
        for part in ("0 1:1\n", f"1 {2**31 + 1}:1\n")
        for block in block_source(write(tmp_path / "x.svm", part)).blocks(1 << 20)
    )
    assert (first.indices.dtype, second.indices.dtype) == (np.int32, np.int64)
    (block,) = block_source(write(tmp_path / "x.svm", "0 1:1\n"), n_features=2**31).blocks(1 << 20)
    assert block.indices.dtype == np.int64


def write(path, text):
    path.write_text(text)
    return path


def test_errors_name_the_file_and_its_own_line(parts, tmp_path):
    folder, *_ = parts
    bad = write(tmp_path / "bad.svm", "1 1:1\n\n1 oops\n")
    files = [folder / "part-1.svm", bad, folder / "part-2.svm"]
    for read in (read_data, lambda files: list(block_source(files).blocks(1 << 20))):
        with pytest.raises(DataError, match=r"bad\.svm, line 3: entry 1: there is no colon"):
            read(files)
        for where in range(3):
            missing = [*files[:where], tmp_path / "missing.svm", *files[where:]]
            with pytest.raises(DataError, match=r"missing\.svm: no such file"):
                read(missing)
        empty = write(tmp_path / "empty.svm", "\n# nothing\n")
        with pytest.raises(DataError, match=r"empty\.svm: the file holds no records"):
            read([empty])
        with pytest.raises(DataError, match="no record has an entry"):
            read([write(tmp_path / "narrow.svm", "1\n")])


def test_an_empty_file_among_others_holds_no_records(parts, tmp_path):
    folder, *_ = parts
    empty = write(tmp_path / "empty.svm", "")
    assert read_data([folder / "part-2.svm", empty]).X.shape[0] == 1


def test_labels_of_npz_files(parts, tmp_path):
    folder, *_ = parts
    one = folder / "part-2.npz"
    write_npz(tmp_path / "text.npz", csr_array(np.eye(2)), np.array(["a", "b"]))
    for read in (read_data, lambda files, **how: list(block_source(files, **how).blocks(1 << 20))):
        with pytest.raises(DataError, match=r"text\.npz: the labels are strings, those of .* numb"):
            read([one, tmp_path / "text.npz"])
        with pytest.raises(DataError, match="one file of labels cannot serve several"):
            read([one, folder / "part-1.npz"], labels_path=tmp_path / "y.npy")
        with pytest.raises(DataError, match="svmlight text has its own labels"):
            read([folder / "part-1.svm"], labels_path=tmp_path / "y.npy")


# --- files that change --------------------------------------------------------------------


def grow(path):
    with path.open("ab") as file:
        file.write(b"1 1:1\n")


def rewrite(path):
    """The same size and other content."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1", b"2", 1))
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000))


def replace(path):
    """Another file of the same size and time."""
    found = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.replace(path)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


COMPRESS = {".svm": bytes, ".svm.gz": gzip.compress}
CHANGES = [grow, rewrite, replace, cut]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("suffix", [".svm", ".svm.gz"])
def test_a_file_that_changes_while_it_is_read(tmp_path, change, suffix):
    path = tmp_path / f"data{suffix}"
    text = b"".join(b"%d 1:1 2:%d\n" % (i % 2, i) for i in range(20_000))
    path.write_bytes(COMPRESS[suffix](text))
    blocks = line_blocks(path, 4000)
    next(blocks)
    change(path)
    with pytest.raises(DataError, match=r"data\.svm.*: the file changed while it was being read"):
        list(blocks)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["data.svm", "data.npz"])
def test_a_file_that_changes_between_two_passes(parts, tmp_path, change, name):
    path = tmp_path / name
    path.write_bytes((parts[0] / name.replace("data", "part-1")).read_bytes())
    source = block_source(path)
    assert list(source.blocks(1 << 20))
    change(path)
    with pytest.raises(DataError, match=r"data\..*: the file changed while it was being read"):
        list(source.blocks(1 << 20))


def test_an_npz_that_changes_while_it_is_read(parts, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes((parts[0] / "part-1.npz").read_bytes())
    with pytest.raises(DataError, match=r"data\.npz: the file changed while it was being read"):
        read_data(path, progress=lambda done, total: grow(path))


def test_a_file_that_is_left_alone_may_be_linked_and_chmodded(tmp_path):
    path = write(tmp_path / "data.svm", "1 1:1\n" * 5000)
    blocks = line_blocks(path, 1000)
    next(blocks)
    path.chmod(0o600)
    (tmp_path / "link.svm").hardlink_to(path)
    assert sum(block.text.count(b"\n") for block in blocks) > 4000


# --- memory and threads -------------------------------------------------------------------


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 10_000)
    path = write(tmp_path / "data.svm", "1 1:1\n" + "1" * 20_000 + "\n")
    with pytest.raises(DataError, match=r"data\.svm: a line is longer than 10,000 bytes"):
        list(line_blocks(path, 1000))
    assert list(line_blocks(write(path, "1" * 9000), 1000))


def test_a_reader_that_is_left_ends_its_threads(parts):
    before = threading.active_count()
    blocks = block_source(parts[0] / "part-1.svm").blocks(1)
    next(blocks)
    assert threading.active_count() > before
    blocks.close()
    assert threading.active_count() == before
