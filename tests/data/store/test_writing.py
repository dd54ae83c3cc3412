"""A store appears whole or not at all: kills, full disks, other writers; no room is left."""

import errno
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest

from data.store.reference import assert_holds, block_source, random_matrix, write_blocks
from dplasso import DataError, DPLogisticRegression, StoreError, open_store
from processes import python

X = random_matrix(40, 90, 0.08)
Y = np.arange(40) % 2
READ_HEADER = "dplasso.data.store.opening.read_header"


def source():
    return block_source(X, Y)


def convert(path, **options):
    return write_blocks(source(), path, **options)


@pytest.mark.parametrize("mode", ["new", "replace"])
def test_killed_at_every_call(tmp_path, mode):
    script = Path(__file__).with_name("killed_conversions.py")
    found = json.loads(python(script, tmp_path, mode).stdout)
    assert found["calls"] > 30
    if mode == "new":
        assert found["old"] == 0
        assert found["refused"] > 25
    else:
        # Between the two renames there is neither; the next conversion restores the old one.
        assert found["refused"] <= 2
        assert found["old"] > 25
    assert found["new"] >= 1


@pytest.mark.parametrize(
    ("name", "call"), [("fsync", 0), *(("pwrite", call) for call in range(0, 30, 5))]
)
@pytest.mark.parametrize("old", [None, random_matrix(9, 20, 0.3, seed=5)])
def test_a_full_disk_leaves_the_old_store_or_none(tmp_path, monkeypatch, name, call, old):
    """The disk is full from some write on, of whichever file and in whichever thread."""
    if old is not None:
        write_blocks(block_source(old, Y[:9]), tmp_path / "s")
    done, act = 0, getattr(os, name)

    def full(*arguments):
        nonlocal done
        done += 1
        if done > call:
            raise OSError(code, os.strerror(code))
        return act(*arguments)

    code, words = ((errno.ENOSPC, "the disk is full"), (errno.EFBIG, "File too large"))[call % 2]
    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match=rf"Cannot write .*/s: {words}\. What was") as caught:
        convert(tmp_path / "s", force=True)
    assert caught.value.errno == code
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == ([] if old is None else ["s"])
    if old is not None:
        assert_holds(open_store(tmp_path / "s"), old, Y[:9])
    assert_holds(convert(tmp_path / "s", force=True), X, Y)


def test_a_place_that_takes_no_file(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="create it first"):
        convert(tmp_path / "none" / "s")

    # Tests may run as root, whom permissions do not stop.
    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr("dplasso.files.disk.FileIO", refuse)
    with pytest.raises(OSError, match="cannot take a new file") as caught:
        convert(tmp_path / "s")
    assert caught.value.errno == errno.EROFS


def test_a_source_that_fails_leaves_nothing(tmp_path):
    def blocks(memory, progress=None):
        yield from source().blocks(memory)
        raise DataError("day_1.svm, line 7: no")

    with pytest.raises(DataError, match=r"^day_1.svm, line 7: no$"):
        write_blocks(replace(source(), blocks=blocks), tmp_path / "s")

    def unreadable(memory, progress=None):
        raise PermissionError(errno.EACCES, "Permission denied", "day_1.svm")
        yield

    # Not taken for a failure to write.
    with pytest.raises(PermissionError, match=r"Permission denied: 'day_1.svm'"):
        write_blocks(replace(source(), blocks=unreadable), tmp_path / "s")

    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "s", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_only_a_store_is_ever_replaced_and_not_unasked(tmp_path):
    convert(tmp_path / "s")
    with pytest.raises(StoreError, match="exists already; pass force=True to replace it"):
        convert(tmp_path / "s")
    convert(tmp_path / "s", force=True)
    (tmp_path / "empty").mkdir()
    convert(tmp_path / "empty")
    convert(tmp_path / "mixed")
    (tmp_path / "file").write_text("mine")
    for name in ("folder", "mixed", "new.partial"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "thesis.tex").write_text("mine")
    for force in (False, True):
        for name, message in (
            *((name, "choose another name") for name in ("file", "folder", "mixed")),
            ("new", r"thesis.tex, which no conversion writes"),
            *((name, "cannot be the name of a store") for name in ("s.partial", "s.replaced")),
        ):
            with pytest.raises(StoreError, match=message):
                convert(tmp_path / name, force=force)
    assert len(list(tmp_path.glob("*/thesis.tex"))) == 3


def test_while_a_store_is_being_written(tmp_path):
    seen = []

    def look(done, total):
        seen.append(done)
        with pytest.raises(StoreError, match="s is incomplete: wait"):
            open_store(tmp_path / "s")
        with pytest.raises(StoreError, match="is an unfinished store"):
            open_store(tmp_path / "s.partial")
        with pytest.raises(StoreError, match="being written by another process; wait"):
            convert(tmp_path / "s")

    convert(tmp_path / "s", progress=look)
    assert seen[-1] == 40
    assert_holds(open_store(tmp_path / "s"), X, Y)


def test_a_place_that_is_taken_meanwhile_is_left_alone(tmp_path):
    def take(done, total):
        (tmp_path / "s").mkdir(exist_ok=True)
        (tmp_path / "s" / "thesis.tex").write_text("mine")

    with pytest.raises(StoreError, match="other files"):
        convert(tmp_path / "s", progress=take)
    assert (tmp_path / "s" / "thesis.tex").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


def test_readers_go_on_while_the_store_is_replaced(tmp_path):
    first = convert(tmp_path / "s")
    other = random_matrix(9, 20, 0.3, seed=5)
    write_blocks(block_source(other, Y[:9]), tmp_path / "s", force=True)
    assert_holds(first, X, Y)
    # A store may also be the source of the one that replaces it.
    again = block_source(open_store(tmp_path / "s").X.tocsr(), Y[:9])
    assert_holds(write_blocks(again, tmp_path / "s", force=True), other, Y[:9])


@pytest.mark.parametrize("other", [random_matrix(9, 20, 0.3, seed=5), X.multiply(2.0).tocsr()])
def test_a_store_that_is_replaced_while_it_is_opened(tmp_path, monkeypatch, other):
    path, real, left = tmp_path / "s", resolve_name(READ_HEADER), [other]
    convert(path)

    def read(directory):
        header = real(directory)
        if left:
            write_blocks(block_source(left.pop(), Y[: other.shape[0]]), path, force=True)
        return header

    monkeypatch.setattr(READ_HEADER, read)
    store = open_store(path)
    assert_holds(store, other, Y[: other.shape[0]])
    assert store.header == real(path)


def fitted(data):
    """Return the coefficients of a fit of a store, or of a matrix in memory."""
    model = DPLogisticRegression(5.0, classes=[0, 1], random_state=0)
    return model.fit(*((X, Y) if data is X else (data,))).coef_.tolist()


@pytest.fixture
def taken(tmp_path_factory, monkeypatch):
    """Note each temporary file: its folder, and a second descriptor, which outlives its name."""
    # Kernels are compiled first, which takes files of its own.
    fitted(convert(tmp_path_factory.mktemp("first") / "a.store"))
    noted, take = [], tempfile.TemporaryFile

    def noting(**options):
        file = take(**options)
        noted.append((options["dir"], os.dup(file.fileno())))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", noting)
    yield noted
    for _, descriptor in noted:
        os.close(descriptor)


@pytest.mark.parametrize("reserved", [True, None, errno.EOPNOTSUPP])
def test_a_fit_takes_room_beside_the_store_and_leaves_no_file(
    tmp_path, monkeypatch, taken, reserved
):
    """Where the system cannot reserve it, room is written."""

    def unable(*_):
        raise OSError(reserved, "Operation not supported")

    store = convert(tmp_path / "a.store")
    if reserved is not True:
        monkeypatch.delattr(os, "posix_fallocate")
    if reserved is errno.EOPNOTSUPP:
        monkeypatch.setattr(os, "posix_fallocate", unable, raising=False)
    assert fitted(store) == fitted(X)
    assert {folder for folder, _ in taken} == {os.fspath(tmp_path)}
    for _, descriptor in taken:
        status = os.fstat(descriptor)
        assert status.st_mode & 0o077 == 0
        assert 0 < status.st_size <= status.st_blocks * 512
    assert [place.name for place in tmp_path.iterdir()] == ["a.store"]


def test_where_a_store_s_folder_has_no_room_there_is_that_of_the_system(
    tmp_path, monkeypatch, taken
):
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    store = convert(full / "a.store")
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(other))
    reserve, without = os.posix_fallocate, {os.fspath(full)}

    def limited(*arguments):
        if taken[-1][0] in without:
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(*arguments)

    monkeypatch.setattr(os, "posix_fallocate", limited)
    assert fitted(store) == fitted(X)
    folders = [folder for folder, _ in taken]
    assert folders == [os.fspath(full), None] * (len(taken) // 2)
    without.add(None)
    with pytest.raises(OSError, match=r"A fit of .*a\.store needs room for 0\.0 MB") as caught:
        fitted(store)
    assert caught.value.errno == errno.ENOSPC
    assert "system's temporary folder (No space left on device)" in str(caught.value)
    assert [place.name for place in full.iterdir()] == ["a.store"]
    assert list(other.iterdir()) == []
