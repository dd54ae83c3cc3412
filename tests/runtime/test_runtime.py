"""People are told when they wait for the compiler; a quota counts as cores; a bar counts."""

import gc
import logging
import os
import sys
import time

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.errors import TypingError

from dplasso import DPLogisticRegression
from dplasso.runtime import threads
from dplasso.runtime.compilation import COMPILING, announce_compilation, say_once
from dplasso.runtime.progress import SILENT
from dplasso.runtime.threads import count_threads, usable_cores
from evidence import machine
from processes import python


def fresh_kernel():
    """Return a kernel that nobody has compiled yet."""

    @njit
    def double(x):
        return 2 * x

    return double


def test_compiling_is_announced_once():
    said = []
    began = time.perf_counter()
    with announce_compilation(said.append) as spent:
        assert fresh_kernel()(2) == 4
        first = spent.seconds
        assert fresh_kernel()(2.5) == 5.0
    assert said == [COMPILING]
    assert 0 < first < spent.seconds < time.perf_counter() - began
    said, kernel = [], fresh_kernel()
    with announce_compilation(said.append, after=1e-6):
        kernel(2)
        assert said == []
        kernel(2.5)
    assert said == [COMPILING]
    with announce_compilation(said.append) as spent:
        assert kernel(3) == 6
    assert (said, spent.seconds) == ([COMPILING], 0)


def test_it_is_announced_before_it_is_done_and_an_error_inside_ends_the_listening():
    class StopError(Exception):
        pass

    def stop(line):
        raise StopError

    kernel = fresh_kernel()
    with announce_compilation(stop), pytest.raises(StopError):
        kernel(1)
    assert kernel.signatures == []
    said = []
    with pytest.raises(KeyError), announce_compilation(said.append):
        raise KeyError("inside")
    fresh_kernel()(1)
    assert said == []


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_again_when_a_kernel_is_compiled(collecting):
    seen = []

    class Listener(event.Listener):
        def on_start(self, _):
            seen.append(gc.isenabled())

        def on_end(self, _):
            pass

    (gc.enable if collecting else gc.disable)()
    try:
        with event.install_listener("numba:compile", Listener()):
            assert fresh_kernel()(2) == 4
        assert gc.isenabled() == collecting
        assert seen == [False]
        with pytest.raises(TypingError):
            fresh_kernel()(object())
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


class Clock:
    """A clock that makes every compilation last."""

    now = 0.0

    def perf_counter(self):
        self.now += SILENT / 2
        return self.now


@pytest.mark.parametrize(("terminal", "verbose"), [(True, None), (False, None), (True, 0)])
def test_a_fit_says_once_that_it_compiles(monkeypatch, capsys, caplog, terminal, verbose):
    """Said on a terminal, elsewhere logged, and neither where the user wants silence."""
    monkeypatch.setattr("dplasso.runtime.compilation.time", Clock())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    caplog.set_level(logging.INFO, "dplasso")
    say_once.cache_clear()

    class Compiling(DPLogisticRegression):
        def get_params(self, deep=True):
            for _ in range(4):
                event.start_event("numba:compile")
                event.end_event("numba:compile")
            return super().get_params(deep)

    for _ in range(2):
        Compiling(1.0, classes=[0, 1], verbose=verbose).fit(np.eye(8), np.arange(8) % 2)
    say_once.cache_clear()
    said = capsys.readouterr().err.splitlines()
    logged = [one.message for one in caplog.records if one.name == "dplasso"]
    assert (len(said), len(logged)) == (terminal and verbose is None, not terminal)
    assert all(line.startswith("dplasso: compiling") and "verbose=0" in line for line in said)
    assert all("compiling" in message for message in logged)


ALL = 8
V2, V1 = "0::/pod/box", "3:cpuset:/\n2:cpu,cpuacct:/pod/box\n0::/"
QUOTA, PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        (V2, {"pod/box/cpu.max": "200000 100000"}, 2),
        (V2, {"pod/box/cpu.max": "250000 100000"}, 3),
        (V2, {"pod/box/cpu.max": "1600000 100000"}, ALL),
        # The group around it, and one that the container sees as its root.
        (V2, {"pod/box/cpu.max": "max 100000", "pod/cpu.max": "300000 100000"}, 3),
        ("0::/../other", {"cpu.max": "150000 100000"}, 2),
        (V2, {"pod/box/cpu.max": "nonsense"}, ALL),
        (None, {}, ALL),
        (V1, {f"cpu/pod/box/{QUOTA}": "400000", f"cpu/pod/box/{PERIOD}": "100000"}, 4),
        (V1, {f"cpu/pod/box/{QUOTA}": "-1", f"cpu/pod/box/{PERIOD}": "100000"}, ALL),
    ],
)
def test_a_quota_is_rounded_up(tmp_path, monkeypatch, groups, files, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(ALL)), raising=False)
    texts = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    texts |= {} if groups is None else {"proc/self/cgroup": groups}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert usable_cores(tmp_path) == cores


def test_jobs_below_zero_leave_cores_free(monkeypatch):
    # The evidence counts alike.
    assert machine.usable_cores() == usable_cores()
    monkeypatch.setattr(threads, "usable_cores", lambda: 4)
    assert [count_threads(n) for n in (None, 1, 7, -1, -2, -9)] == [1, 1, 7, 4, 3, 1]


# As where shared memory is read-only: joblib warns when it is imported, and counts one core.
NO_SEMAPHORES = """
import _multiprocessing, sys

def refuse(*_, **__):
    raise OSError(30, "Read-only file system")

_multiprocessing.SemLock = refuse
from dplasso.cli import main
sys.argv[1:] = ["schema", "draft", sys.argv[1], "--label-column", "label"]
try:
    main()
finally:
    import joblib
    from dplasso.runtime import threads
    threads.usable_cores = lambda: 4
    print(threads.count_threads(-1), joblib.effective_n_jobs(-1))
"""


def test_without_semaphores_nothing_is_said_and_all_cores_are_used(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,label\n1.5,0\n2.5,1\n")
    done = python("-c", NO_SEMAPHORES, table)
    assert done.stdout.endswith("\n4 1\n")
    assert done.stderr.startswith("This draft is not private")
