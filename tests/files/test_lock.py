"""Locks and room on the disk: one process at a time has them, and none is left behind."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from io import FileIO

import pytest

from dplasso.errors import CheckpointError, StoreError
from dplasso.files.disk import (
    atomic_write,
    claim,
    held_room,
    hold,
    is_held,
    lock,
    sidecar_path,
)

REFUSAL = StoreError("taken")
HOLDER = """
import sys, time
from dplasso.errors import StoreError
from dplasso.files.disk import hold
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
