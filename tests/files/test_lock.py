"""Locks and room on the disk: one process at a time has them, and none is left behind."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from io import FileIO

import numpy as np
import pytest

from dplasso.errors import CheckpointError, StoreError
from dplasso.files import lock as module
from dplasso.files.atomic import atomic_write
from dplasso.files.lock import claim, held_room, hold, is_held, lock, scratch, sidecar_path

REFUSAL = StoreError("taken")
HOLDER = """
import sys, time
from dplasso.errors import StoreError
from dplasso.files.lock import hold
with hold(sys.argv[1], StoreError("taken")):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_holds_it_until_it_is_killed(tmp_path):
    path = tmp_path / "file"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        assert is_held(path)
        with pytest.raises(StoreError, match="taken"), hold(path, REFUSAL):
            pass
        holder.send_signal(signal.SIGKILL)
    assert sidecar_path(path, "lock").exists()
    assert not is_held(path)
    with hold(path, REFUSAL):
        assert is_held(path)
    assert list(tmp_path.iterdir()) == []


def test_who_only_asks_leaves_nothing_and_does_not_stop_a_holder(tmp_path):
    path = tmp_path / "file"
    assert not is_held(path)
    assert list(tmp_path.iterdir()) == []
    asking = FileIO(sidecar_path(path, "lock"), "a+")
    lock(asking, REFUSAL, seconds=0.0)
    timer = threading.Timer(0.05, asking.close)
    timer.start()
    with hold(path, REFUSAL):
        assert is_held(path)
    timer.join()


def test_holders_in_a_row_never_overlap(tmp_path):
    """Each removes the file it has locked; the next one must not take the removed file's lock."""
    inside, most = 0, 0

    def work():
        nonlocal inside, most
        done = 0
        while done < 20:
            try:
                with hold(tmp_path / "file", REFUSAL):
                    inside += 1
                    most = max(most, inside)
                    time.sleep(0.0005)
                    inside -= 1
                    done += 1
            except StoreError:
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_claimed_once(tmp_path):
    second = claim(tmp_path / "c")
    with (
        claim(tmp_path / "c"),
        pytest.raises(CheckpointError, match="c is in use by another process"),
    ):
        second.__enter__()
    with pytest.raises(FileNotFoundError, match="no folder"), claim(tmp_path / "none" / "c"):
        pass


# --- room ----------------------------------------------------------------------------------------


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["allocated", "written", "unable"])
def way(request, monkeypatch):
    """Hold room as the system does, or by writing where it has no way or the file system none."""
    if request.param == "written":
        monkeypatch.delattr(os, "posix_fallocate")
    if request.param == "unable":

        def unable(*_):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

        monkeypatch.setattr(os, "posix_fallocate", unable)


@pytest.mark.parametrize("size", [1, 2**20, 2**21 + 5])
def test_the_file_is_written_into_the_room(tmp_path, way, size):
    path = tmp_path / "m.npz"
    with held_room(path, size) as temporary:
        place = tmp_path / temporary
        found = place.stat()
        assert found.st_size == size <= found.st_blocks * 512
        with atomic_write(path, temporary=temporary) as file:
            # The very blocks: nothing of the room was given back before.
            assert os.fstat(file.fileno()).st_ino == found.st_ino
            assert os.fstat(file.fileno()).st_size == size
            file.write(b"short")
        assert path.read_bytes() == b"short"
    assert names(tmp_path) == ["m.npz"]


def test_room_is_taken_over_and_given_back(tmp_path):
    # A killed process has left some.
    (tmp_path / ".m.npz.tmp").write_bytes(b"x" * 100)
    with suppress(ZeroDivisionError), held_room(tmp_path / "m.npz", 10):
        assert (tmp_path / ".m.npz.tmp").stat().st_size == 10
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_a_disk_without_room_is_named_with_what_is_needed(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with (
        pytest.raises(OSError, match=r"room for 2\.5 MB at most, and there is none") as caught,
        held_room(tmp_path / "m.npz", 2_500_000),
    ):
        raise AssertionError("there was room")
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == []


def test_one_process_at_a_time_holds_room_for_a_file(tmp_path):
    path = tmp_path / "m.npz"
    with (
        hold(path, AssertionError("held")),
        pytest.raises(OSError, match="another process"),
        held_room(path, 10),
    ):
        raise AssertionError("held twice")


# --- arrays in files without a name -------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint32, np.float32, np.float64])
def test_an_array_takes_room_beside_the_store_and_leaves_no_file(tmp_path, monkeypatch, dtype):
    places = []
    take = tempfile.TemporaryFile

    def noting(**options):
        file = take(**options)
        places.append((options["dir"], os.fstat(file.fileno())))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", noting)
    found = scratch(tmp_path / "a.store", 5000, dtype)
    assert type(found) is np.ndarray
    assert found.flags.writeable
    assert not found.any()
    found[:] = np.arange(5000)
    np.testing.assert_array_equal(found, np.arange(5000, dtype=dtype))
    ((folder, status),) = places
    assert folder == os.fspath(tmp_path)
    assert status.st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []
    assert scratch(tmp_path / "a.store", 0, dtype).dtype == dtype


def test_where_a_store_s_folder_has_no_room_there_is_that_of_the_system(tmp_path, monkeypatch):
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(other))
    fill, filled = module.fill, []

    def limited(file, size):
        filled.append(size)
        if len(filled) % 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        fill(file, size)

    monkeypatch.setattr(module, "fill", limited)
    assert scratch(full / "a.store", 10, np.uint32).tolist() == [0] * 10
    assert filled == [40, 40]
    # A folder that is not there, or is nobody's to write to, is no other case.
    assert scratch(tmp_path / "none" / "a.store", 0, np.uint32).size == 0
    monkeypatch.setattr(module, "fill", lambda file, _: limited(file, filled.clear() or 1))
    with pytest.raises(OSError, match=r"A fit of .*a\.store needs room for 0\.0 MB") as caught:
        scratch(full / "a.store", 10, np.uint32)
    assert caught.value.errno == errno.ENOSPC
    assert "system's temporary folder (No space left on device)" in str(caught.value)
    assert list(full.iterdir()) == list(other.iterdir()) == []
