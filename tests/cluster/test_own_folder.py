"""The folder of a cluster of one process goes with the process, or at the next start."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dplasso.cluster import ray_cluster as module

# Makes the folder and the token as for a cluster; then it waits, or ends.
DRIVER = """
import os, sys
from contextlib import ExitStack
from types import SimpleNamespace as Some
from dplasso.cluster.ray_cluster import _closed

config, constants = Some(initialize=lambda _: None), Some(ENABLE_RAY_CLUSTER=True)
ray = Some(_raylet=Some(Config=config), _private=Some(ray_constants=constants))
with ExitStack() as meanwhile:
    meanwhile.callback(os.umask, os.umask(0o077))
    _closed(ray, 1, meanwhile)
print(os.environ["RAY_AUTH_TOKEN_PATH"], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def driver(folder):
    """Start a process that makes a cluster's folder; return it and where its token lies."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env=kept | {"TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, Path(process.stdout.readline().strip())


def test_the_token_of_a_killed_process_is_removed_by_the_next(temporary):
    process, token = driver(temporary)
    assert token.parent.parent == temporary
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert token.exists()
    alive, other = driver(temporary)
    assert not token.parent.exists()
    assert other.exists()
    _, said = alive.communicate("")
    assert said == (f"removed {token.parent}, the folder of a cluster whose process was killed\n")
    assert list(temporary.iterdir()) == []


def test_what_others_hold_or_made_stays(temporary, capsys, monkeypatch):
    process, token = driver(temporary)
    (temporary / "dplasso-copy").mkdir()
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere" / ".ray.lock").touch()
    (temporary / "dplasso-link").symlink_to(temporary / "elsewhere")
    module._remove_orphans()
    assert token.exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    monkeypatch.setattr(module.os, "getuid", lambda: -1)
    module._remove_orphans()
    assert token.exists()
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    module._remove_orphans()
    assert not token.parent.exists()
    assert {path.name for path in temporary.iterdir()} == {
        *("dplasso-copy", "dplasso-link", "elsewhere")
    }
    assert capsys.readouterr().err.count("\n") == 1
