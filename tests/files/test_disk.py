"""Files appear whole or not at all, one process at a time has them, and labels survive in them."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplasso.errors import StoreError
from dplasso.files.archive import labels_from_array, labels_to_array
from dplasso.files.disk import (
    atomic_write,
    check_writable,
    hold,
    sidecar_path,
)


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
        with pytest.raises(StoreError, match="taken"), hold(path, REFUSAL):
            pass
        holder.send_signal(signal.SIGKILL)
    assert sidecar_path(path, "lock").exists()
    with hold(path, REFUSAL), pytest.raises(StoreError), hold(path, REFUSAL):
        pass
    assert list(tmp_path.iterdir()) == []


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


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(
    labels=st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda v: np.array(v, dtype=np.int64)),
        st.lists(st.integers(0, 255)).map(lambda v: np.array(v, dtype=">u2")),
        st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(np.array),
        st.lists(st.booleans()).map(lambda v: np.array(v, dtype=bool)),
        st.lists(st.booleans()).map(lambda v: np.array(v, dtype=object)),
        st.lists(TEXT, min_size=1).map(np.array),
        st.lists(TEXT).map(lambda v: np.array(v, dtype=object)),
        st.lists(TEXT).map(lambda v: np.array(v, dtype=np.dtypes.StringDType())),
    )
)
def test_any_labels_survive(labels):
    array, kind = labels_to_array(labels)
    assert array.dtype.kind in "biufU"
    found = labels_from_array(array, kind)
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()
    assert [type(label) for label in found] == [type(label) for label in labels]


def test_a_longer_label_elsewhere_leaves_no_trace():
    labels = np.array(["no", "yes", "a label of somebody else"])[:2]
    assert labels_to_array(labels)[0].dtype == np.dtype("<U3")


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        *((one, "plain") for one in (np.zeros((2, 1)), np.array([b"a"]), np.array([1j]))),
        *((one, "plain") for one in (np.array([np.nan]), np.array([1], "M8[D]"))),
        *((np.array([0, 1]), kind) for kind in ("string", None, ["plain"])),
    ],
)
def test_arrays_that_are_no_labels_are_refused(array, kind):
    with pytest.raises(ValueError):
        labels_from_array(array, kind)


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array(some, dtype=object) for some in ([0, "a"], [True, "a"], ["a", 1], [None, 1])),
        *(np.array([b"a", b"b"]), np.array([1j, 2j]), np.array(["2020-01-01"], dtype="M8[D]")),
        *(np.array([0.0, np.nan]), np.array([0.0, np.inf])),
    ],
)
def test_labels_of_other_kinds_are_refused(labels):
    with pytest.raises(ValueError, match="cannot be written to a model file"):
        labels_to_array(labels)
