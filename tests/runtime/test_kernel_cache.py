"""Compiled kernels are kept, but never longer than the sources they came from."""

import os
import subprocess
import sys

import pytest

from dplasso.runtime.kernel_cache import drop_stale_kernels, source_stamp


@pytest.fixture
def package(tmp_path):
    """A package with one module in a folder of its own and two compiled kernels."""
    for name in ("__init__.py", "inner/__init__.py", "inner/kernel.py"):
        path = tmp_path / "package" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("x = 1\n")
    for folder in ("__pycache__", "inner/__pycache__"):
        cache = tmp_path / "package" / folder
        cache.mkdir()
        (cache / "kernel.one-1.py311.nbi").write_bytes(b"index")
        (cache / "kernel.one-1.py311.1.nbc").write_bytes(b"code")
        (cache / "kernel.cpython-311.pyc").write_bytes(b"bytecode")
    return tmp_path / "package"


def indexes(package):
    return sorted(package.rglob("*.nbi"))


def settle(package):
    """Stamp the package, then put the indexes back as a later compilation would."""
    kept = indexes(package)
    drop_stale_kernels(package)
    for path in kept:
        path.write_bytes(b"index")
    return kept


def test_kernels_without_a_stamp_are_forgotten(package):
    assert len(indexes(package)) == 2
    assert drop_stale_kernels(package)
    assert not indexes(package)
    # Only the indexes: everything else is found again, or not at all, through them.
    assert len(list(package.rglob("*.pyc"))) == 2
    assert len(list(package.rglob("*.py"))) == 3


def test_kernels_of_these_sources_are_kept(package):
    kept = settle(package)
    assert not drop_stale_kernels(package)
    assert not drop_stale_kernels(package)
    assert indexes(package) == kept


def change_content(package):
    (package / "inner" / "kernel.py").write_text("x = 22\n")


def change_time_only(package):
    path = package / "inner" / "kernel.py"
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


def add_a_file(package):
    (package / "inner" / "other.py").write_text("")


def remove_a_file(package):
    (package / "inner" / "kernel.py").unlink()


def rename_a_file(package):
    (package / "inner" / "kernel.py").rename(package / "inner" / "renamed.py")


@pytest.mark.parametrize(
    "change", [change_content, change_time_only, add_a_file, remove_a_file, rename_a_file]
)
def test_any_change_of_a_source_forgets_all_kernels(package, change):
    settle(package)
    before = source_stamp(package)
    change(package)
    assert source_stamp(package) != before
    assert drop_stale_kernels(package)
    assert not indexes(package)


def test_other_files_do_not_matter(package):
    kept = settle(package)
    (package / "inner" / "data.npz").write_bytes(b"data")
    assert not drop_stale_kernels(package)
    assert indexes(package) == kept


def test_a_package_that_cannot_be_written_to_is_left_alone(package):
    cache = package / "__pycache__"
    for path in cache.iterdir():
        path.unlink()
    cache.rmdir()
    # A file in the folder's place stops every attempt to write there, even the superuser's.
    cache.write_bytes(b"")
    assert not drop_stale_kernels(package)


SCRIPT = """
import numpy as np
from numba.core import event

class Listener(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

from dplasso import DPLassoClassifier
X = np.random.default_rng(0).random((30, 5)).astype(np.float32)
with event.install_listener("numba:compile", Listener()):
    for options in OPTIONS:
        DPLassoClassifier(n_iter=3, **options).fit(X, np.arange(30) % 2).predict(X)
print(len(Listener.names), Listener.names)
"""
OPTIONS = [{}, {"epsilon": float("inf")}, {"solver": "standard"}, {"selector": "noisy-max"}]


def test_a_later_process_compiles_nothing():
    """Several tries: tests running beside this one may compile at the same moment."""
    script = SCRIPT.replace("OPTIONS", repr(OPTIONS).replace("inf", 'float("inf")'))
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if done.stdout.startswith("0 "):
            return
    pytest.fail(f"every process compiles: {done.stdout}")
