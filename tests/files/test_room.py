"""Room for a file is there before the file is, and is what the file is then written into."""

import errno
import os
from contextlib import suppress

import pytest

from dplasso.files.atomic import atomic_write
from dplasso.files.lock import held_room, hold


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
