"""Locks and room on the disk: one process at a time has them, and none is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from io import FileIO

import pytest

from dplasso.errors import CheckpointError, StoreError
from dplasso.files.disk import (
    claim,
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
