"""Files appear whole or not at all, whatever happens while they are written."""

import errno
import os
import stat
from pathlib import Path

import pytest

from dplasso.files.disk import atomic_write, check_writable


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("older", [None, b"old"])
def test_writes_the_file_and_nothing_else(tmp_path, kind, older):
    path = tmp_path / "out.bin"
    if older is not None:
        path.write_bytes(older)
    with atomic_write(kind(path)) as file:
        file.write(b"first ")
        file.flush()
        assert path.exists() == (older is not None)
        assert older is None or path.read_bytes() == older
        file.write(b"second")
    assert path.read_bytes() == b"first second"
    assert names(tmp_path) == ["out.bin"]


@pytest.mark.parametrize("older", [None, b"old"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, OSError])
def test_an_interruption_leaves_what_was_there(tmp_path, error, older):
    path = tmp_path / "out.bin"
    if older is not None:
        path.write_bytes(older)
    before = names(tmp_path)

    def write_half():
        with atomic_write(path) as file:
            file.write(b"half")
            file.flush()
            raise error

    with pytest.raises(error):
        write_half()
    assert names(tmp_path) == before
    assert older is None or path.read_bytes() == older


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left")])
def test_a_failure_at_the_end_leaves_what_was_there(tmp_path, monkeypatch, call, error):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")

    def fail(*_):
        raise error

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises((KeyboardInterrupt, OSError)), atomic_write(path) as file:
        file.write(b"new")
    assert names(tmp_path) == ["out.bin"]
    assert path.read_bytes() == b"old"


def test_a_full_disk_is_told_with_the_path(tmp_path):
    """As the system tells it, the error names no file."""
    path = tmp_path / "out.bin"

    def write():
        with atomic_write(path):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"Cannot write .*/out\.bin: the disk is full\.") as caught:
        write()
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == []


def test_the_bytes_are_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    calls = []
    synced, replaced = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), synced(fd))[1])
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (calls.append("replace"), replaced(self, to))[1]
    )
    with atomic_write(tmp_path / "out.bin") as file:
        file.write(b"x")
    assert calls[:2] == ["fsync", "replace"]


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path):
    mask = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new") as file:
            file.write(b"x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    old = tmp_path / "old"
    old.touch()
    old.chmod(0o604)
    with atomic_write(old) as file:
        file.write(b"x")
    assert stat.S_IMODE(old.stat().st_mode) == 0o604


def test_without_replacing_a_file_that_appears_meanwhile_is_left(tmp_path):
    path = tmp_path / "out.bin"
    with atomic_write(path, replace=False) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), atomic_write(path, replace=False) as file:
        file.write(b"second")
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["out.bin"]


def test_a_link_is_followed_and_a_bare_name_is_in_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("link", "out.bin"):
        check_writable(name)
        with atomic_write(name) as file:
            file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == (tmp_path / "out.bin").read_bytes() == b"x"
    assert names(tmp_path) == ["link", "out.bin", "real"]


def write_nothing(path):
    with atomic_write(path):
        raise AssertionError("the block must not be reached")


@pytest.mark.parametrize("act", [check_writable, write_nothing])
def test_impossible_places_are_refused_at_once(tmp_path, act):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match=r"^Cannot write .*there is no folder"):
        act(tmp_path / "missing" / "out.bin")
    with pytest.raises(OSError, match=r"^Cannot write .*there is no folder"):
        act(tmp_path / "file" / "out.bin")
    with pytest.raises(IsADirectoryError, match=r"^Cannot write .*it is a folder"):
        act(tmp_path)
    with pytest.raises(OSError, match=r"^Cannot write .*not a regular file"):
        act(tmp_path / "pipe")


def test_what_takes_no_file_is_found_out(tmp_path, monkeypatch):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    # The tests may run as root, whom permission bits do not stop.
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="read-only"):
            check_writable(path)
    for code in (errno.EACCES, errno.EROFS):
        error = OSError(code, os.strerror(code))

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(Path, "touch", fail)
        with pytest.raises(type(error), match=rf"^Cannot write .*{tmp_path}.*{error.strerror}"):
            check_writable(path)
