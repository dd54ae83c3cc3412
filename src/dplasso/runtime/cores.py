"""How many cores this process may use: by its affinity, and by the CPU quota of its container.

Needs the standard library alone: evidence/machine.py runs this file without the package.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use; a CPU quota is rounded up to whole cores.

    `root` is where the system's files are.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, math.ceil(min([cores, *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quotas, in cores, of the process's control groups and of the groups around them."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 names no controllers. In a container the group may be where they are mounted.
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        for group in (PurePosixPath(name), *PurePosixPath(name).parents):
            folder = mount / group.relative_to("/")
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            try:
                quota, period = " ".join((folder / file).read_text() for file in files).split()
                if quota not in ("max", "-1"):
                    yield int(quota) / int(period)
            except (OSError, ValueError, ZeroDivisionError):
                continue
