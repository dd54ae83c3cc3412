"""Compiled kernels are kept, but never longer than the sources they came from."""

import contextlib
import errno
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

import dplasso
from dplasso.runtime.compilation import (
    ROOMS_WITHOUT_KERNELS,
    drop_stale_kernels,
    kernel,
    source_stamp,
)
from processes import python


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one module in a folder of its own and two compiled kernels."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
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


def test_kernels_without_a_stamp_are_forgotten(package, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert len(indexes(package)) == 2
    assert drop_stale_kernels(package)
    assert not indexes(package)
    assert not list(package.rglob("*.nbc"))
    assert len(list(package.rglob("*.pyc"))) == 2
    assert len(list(package.rglob("*.py"))) == 3


def change_time_only(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("x = 22\n"),
        change_time_only,
        lambda path: path.rename(path.with_name("renamed.py")),
    ],
)
def test_any_change_of_a_source_forgets_all_kernels(package, change):
    settle(package)
    before = source_stamp(package)
    change(package / "inner" / "kernel.py")
    assert source_stamp(package) != before
    assert drop_stale_kernels(package)
    assert not indexes(package)


def test_other_files_do_not_matter(package):
    kept = settle(package)
    (package / "cli").mkdir()
    (package / "cli" / "module.py").write_text("x = 1\n")
    (package / "inner" / "data.npz").write_bytes(b"data")
    assert not drop_stale_kernels(package)
    assert indexes(package) == kept


def test_rooms_that_are_left_out_hold_no_kernels():
    package = Path(dplasso.__file__).parent
    layers = tomllib.loads((package.parents[1] / "pyproject.toml").read_text())
    order = " ".join(layers["tool"]["importlinter"]["contracts"][0]["layers"])
    for room in ROOMS_WITHOUT_KERNELS:
        sources = [path.read_text() for path in (package / room).rglob("*.py")]
        assert sources
        assert not [
            text for text in sources if "@kernel" in text or "njit" in text or "@overload" in text
        ]
        assert order.index(f"dplasso.{room}") < order.index("dplasso.frank_wolfe")


FORKS = """
import json, os, sys
from pathlib import Path
import numba
from dplasso.runtime.compilation import drop_stale_kernels

numba.njit(lambda: 0)()  # what the compiler imports, users without rights may not read

def run(folder, cure, rights, environment):
    os.environ.update(environment)
    numba.config.reload_config()
    sys.path.insert(0, folder)
    sys.stderr = (Path(folder) / "home" / "said").open("w", buffering=1)
    if os.geteuid() == 0 and rights == "read-only":
        # Nothing is read-only to the superuser.
        os.setresuid(65534, 65534, 65534)
    if cure != "no":
        drop_stale_kernels(Path(folder) / "toy")
    from toy.loop import loop
    print(json.dumps([loop(), os.environ.get("NUMBA_CACHE_DIR", "")]), flush=True)

for line in sys.stdin:
    process = os.fork()
    if process == 0:
        run(*json.loads(line))
        os._exit(0)
    os.waitpid(process, 0)
"""
CALLED = "from numba import njit\n@njit(cache=True)\ndef step():\n    return {}\n"
CALLING = """
from numba import njit
from toy.step import step
@njit(cache=True)
def loop():
    return step()
"""


@pytest.fixture(scope="module")
def processes():
    """A process that has done the imports, and forks off one that runs the toy a line."""
    clean = {name: os.environ[name] for name in os.environ if name != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-B", "-c", FORKS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": clean}
    with subprocess.Popen(command, **pipes) as process:
        yield process
        process.stdin.close()


class TestReadOnlyInstallation:
    """A kernel calls another that is repaired where nobody but the installer may write."""

    @pytest.fixture
    def toy(self, processes):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            (folder / "toy").mkdir()
            (folder / "home").mkdir()
            (folder / "home").chmod(0o777)
            (folder / "toy" / "__init__.py").write_text("")
            (folder / "toy" / "step.py").write_text(CALLED.format(1))
            (folder / "toy" / "loop.py").write_text(CALLING)
            self.processes = processes
            yield folder
            (folder / "toy").chmod(0o755)
            if (folder / "toy" / "__pycache__").exists():
                (folder / "toy" / "__pycache__").chmod(0o755)

    def run(self, folder, cure="cure", rights="read-only", **environment):
        home = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home")}
        job = json.dumps([str(folder), cure, rights, home | environment])
        self.processes.stdin.write(job + "\n")
        self.processes.stdin.flush()
        return tuple(json.loads(self.processes.stdout.readline()))

    def close(self, folder):
        (folder / "toy" / "__pycache__").mkdir(exist_ok=True)
        (folder / "toy" / "__pycache__").chmod(0o555)
        (folder / "toy").chmod(0o555)

    def repair(self, folder):
        (folder / "toy" / "step.py").write_text(CALLED.format(2))

    @pytest.mark.parametrize("planted", ["in the user's folder", "in the package"])
    def test_a_repaired_source_is_what_runs(self, toy, planted):
        if planted == "in the package":
            # The installer's own run keeps its kernels beside the sources.
            assert self.run(toy, rights="all") == (1, "")
            assert list(toy.rglob("*.nbi"))
        self.close(toy)
        assert self.run(toy)[0] == 1
        assert self.run(toy)[0] == 1
        assert self.run(toy, "no")[0] == 1
        self.repair(toy)
        assert self.run(toy)[0] == 2
        # Without the cure it is the old kernel.
        assert self.run(toy, "no")[0] == 1

    @pytest.mark.parametrize("rights", ["all", "read-only"])
    def test_a_folder_that_the_user_names_keeps_none_of_other_sources(self, toy, rights):
        mine = {"NUMBA_CACHE_DIR": str(toy / "home" / "mine"), "rights": rights}
        if rights == "read-only":
            self.close(toy)
        for _ in range(2):
            assert self.run(toy, **mine)[0] == 1
        kept = list((toy / "home" / "mine").rglob("*.nbi"))
        assert len(kept) == 2
        self.repair(toy)
        assert self.run(toy, **mine)[0] == 2

    def test_kernels_are_kept_for_these_sources_alone(self, toy):
        self.close(toy)
        _, place = self.run(toy)
        assert Path(place).parent.name == "dplasso-kernels"
        kept = sorted(Path(place).rglob("*.nbi"))
        assert len(kept) == 2
        written = [path.stat().st_mtime_ns for path in kept]
        assert self.run(toy) == (1, place)
        assert [path.stat().st_mtime_ns for path in kept] == written
        # What a parent chose is not inherited, and what the user chose is.
        self.repair(toy)
        result, other = self.run(toy, NUMBA_CACHE_DIR=place)
        assert (result, other != place) == (2, True)
        assert not Path(place).exists()
        mine = toy / "home" / "mine"
        result, place = self.run(toy, NUMBA_CACHE_DIR=str(mine))
        assert (result, Path(place).parents[1]) == (2, mine)

    @pytest.mark.parametrize("variable", [None, "given"])
    def test_without_a_writable_home_it_runs_and_says_so_once(self, toy, variable):
        (toy / "locked").mkdir()
        (toy / "locked").chmod(0o555)
        self.close(toy)
        nowhere = {"HOME": str(toy / "locked"), "XDG_CACHE_HOME": str(toy / "locked")}
        if variable:
            nowhere["NUMBA_CACHE_DIR"] = str(toy / "locked" / variable)
        assert self.run(toy, **nowhere) == (1, nowhere.get("NUMBA_CACHE_DIR", ""))
        (told,) = (toy / "home" / "said").read_text().splitlines()
        assert "can be written to, so every process compiles anew; set NUMBA_CACHE_DIR" in told
        assert (str(toy / "locked") if variable else "the user's cache") in told


def first_of(numbers):
    return numbers[0]


def test_of_two_processes_that_compile_at_a_time_none_spoils_the_other_s_code(monkeypatch):
    """Neither sees the other's index. Of two types, one's index and the other's code came last."""
    one, other = kernel(first_of), kernel(first_of)
    save, begun = IndexDataCacheFile._save_data, []

    def after_the_other(*arguments):
        if not begun:
            begun.append(True)
            other(np.ones(1))
        save(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "_load_index", lambda _: {})
        patch.setattr(IndexDataCacheFile, "_save_data", after_the_other)
        one(np.ones(1, dtype=np.float32))
    results = []
    for numbers in (np.ones(1), np.ones(1, dtype=np.float32)):
        with contextlib.suppress(TypeError):
            results.append(kernel(first_of)(numbers))
    assert begun
    assert results == [1.0, 1.0]


def test_a_full_disk_keeps_no_kernel_and_ends_nothing(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_load_index", lambda _: {})
    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    assert kernel(first_of)(np.ones(1)) == 1.0


SCRIPT = """
import numpy as np
from numba.core import event

class Listener(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression
X = np.random.default_rng(0).random((30, 5)).astype(np.float32)
with event.install_listener("numba:compile", Listener()):
    for kind in (DPLassoClassifier, DPLogisticRegression):
        kind(max_weights=3, classes=[0, 1]).fit(X, np.arange(30) % 2).predict(X)
    for options in OPTIONS:
        model = DPFrankWolfeClassifier(n_iter=3, classes=[0, 1], **options)
        model.fit(X, np.arange(30) % 2).predict(X)
print(len(Listener.names), Listener.names)
"""
OPTIONS = [{}, {"epsilon": float("inf")}, {"solver": "standard"}, {"selector": "noisy-max"}]


def test_a_later_process_compiles_nothing():
    """Several tries: tests running beside this one may compile at the same moment."""
    script = SCRIPT.replace("OPTIONS", repr(OPTIONS).replace("inf", 'float("inf")'))
    for _ in range(4):
        said = python("-W", "error", "-W", "ignore::RuntimeWarning", "-c", script).stdout
        if said.startswith("0 "):
            return
    pytest.fail(f"every process compiles: {said}")
