"""A CPU quota of a container counts as its cores."""

import os
import subprocess
import sys

import pytest

from dplasso.runtime import threads
from dplasso.runtime.threads import count_threads, usable_cores
from evidence import machine

ALL = 8
V2, V1 = "0::/pod/box", "3:cpuset:/\n2:cpu,cpuacct:/pod/box\n0::/"
QUOTA, PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        (V2, {"pod/box/cpu.max": "200000 100000"}, 2),
        (V2, {"pod/box/cpu.max": "250000 100000"}, 3),
        (V2, {"pod/box/cpu.max": "1000 100000"}, 1),
        (V2, {"pod/box/cpu.max": "max 100000"}, ALL),
        (V2, {"pod/box/cpu.max": "1600000 100000"}, ALL),
        # The group around it, and one that the container sees as its root.
        (V2, {"pod/box/cpu.max": "max 100000", "pod/cpu.max": "300000 100000"}, 3),
        (V2, {"cpu.max": "150000 100000"}, 2),
        ("0::/../other", {"cpu.max": "150000 100000"}, 2),
        (V2, {"pod/box/cpu.max": "nonsense"}, ALL),
        (V2, {}, ALL),
        (None, {}, ALL),
        (V1, {f"cpu/pod/box/{QUOTA}": "400000", f"cpu/pod/box/{PERIOD}": "100000"}, 4),
        (V1, {f"cpu/pod/box/{QUOTA}": "-1", f"cpu/pod/box/{PERIOD}": "100000"}, ALL),
        (V1, {f"cpu/{QUOTA}": "50000", f"cpu/{PERIOD}": "100000"}, 1),
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


def test_the_evidence_counts_alike():
    assert machine.usable_cores() == usable_cores()


def test_jobs_below_zero_leave_cores_free(monkeypatch):
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
    command = [sys.executable, "-c", NO_SEMAPHORES, str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.endswith("\n4 1\n")
    assert done.stderr.startswith("This draft is not private")
