"""Fits on a Ray cluster of this machine, in a process of their own; prints what came of them.

python -m tests.cluster.ray_fits [KILLS [SEED]]     50 kills by default
"""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from statistics import median

import ray
from ray.cluster_utils import Cluster

from cluster.cases import MODELS, cut, records, released
from dplasso.cluster import RayEngine
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.ray_cluster import connect
from dplasso.cluster.ray_engine import RayHandle
from dplasso.fit import lasso

# Ray brings it along.
psutil = import_module("psutil")
LOCAL = RayEngine("local", restarts=200)
STRANGER = """
import sys
from ray._raylet import GcsClient
if GcsClient(address=sys.argv[1]).internal_kv_keys(b"", b"session", 20):
    print("let in")
"""
# Two of them do not fit on the first machine.
TWO_MACHINES = RayEngine("local", threads=5)


def same(name, n_parts, data, engine=LOCAL):
    """Return whether a fit on partitions releases what that of one process does."""
    expected = released(MODELS[name].fit(*data))
    return released(MODELS[name].fit(*cut(*data, n_parts), engine=engine)) == expected


def workers():
    """Return the processes of the workers that run now."""
    found = []
    for one in psutil.Process().children(recursive=True):
        # Those that were killed may still be listed.
        with suppress(psutil.Error):
            found += [one] if "RayWorker" in " ".join(one.cmdline()) else []
    return found


def killing(kills, rng):
    """Kill workers at random moments of fits, one fit after the other, until there were enough."""
    call, anew = Partitions.call, Partitions._begin_anew
    phase, killed, recovered = ["start"], [], []
    whole, over = threading.Event(), threading.Event()

    def kill():
        while len(killed) < kills and not over.is_set():
            time.sleep(rng.random() * rng.choice([0.2, 5.0]))
            victims = workers()
            if victims:
                killed.append((phase[-1], time.perf_counter()))
                rng.choice(victims).send_signal(signal.SIGKILL)
        whole.set()

    def calling(self, method, *args):
        phase.append(method)
        time.sleep(0.02)
        return call(self, method, *args)

    def beginning(self, *args):
        phase.append("replacing")
        found, now = anew(self, *args), time.perf_counter()
        recovered.append(now - max(at for _, at in killed))
        phase.append(args[1])
        return found

    # Whoever is killed is to be missed: those of earlier fits end first.
    while workers():
        time.sleep(0.1)
    Partitions.call, Partitions._begin_anew = calling, beginning
    threading.Thread(target=kill, daemon=True).start()
    fits, equal = 0, True
    try:
        while not whole.is_set():
            for name in ("strong", "dense"):
                equal &= same(name, 2, records(120, 410))
                fits += 1
    finally:
        over.set()
        Partitions.call, Partitions._begin_anew = call, anew
    return {
        "same": equal,
        "fits": fits,
        "kills": len(killed),
        "replaced": len(recovered),
        "phases": Counter(name for name, _ in killed),
        "seconds to recover, median": median(recovered),
        "seconds to recover, most": max(recovered),
    }


def losing_a_machine():
    """Take a machine of the cluster away in the middle of a fit, and add another."""
    cluster = Cluster()
    cluster.head_node = ray._private.worker._global_node
    machine = cluster.add_node(num_cpus=5, object_store_memory=2**27)
    call, lost = Partitions.call, []

    def calling(self, method, *args):
        if method == "move" and args[0] > 20 and not lost:
            lost.append(time.perf_counter())
            cluster.remove_node(machine, allow_graceful=False)
            cluster.add_node(num_cpus=5, object_store_memory=2**27)
            found = call(self, method, *args)
            lost.append(time.perf_counter())
            return found
        return call(self, method, *args)

    Partitions.call = calling
    try:
        equal = same("strong", 2, records(120, 410), TWO_MACHINES)
    finally:
        Partitions.call = call
    return {"same": equal, "seconds to recover": lost[1] - lost[0]}


def tree():
    """Fit where large answers are added up in a tree, and weights sent once for all workers.

    There are more of them than the cluster has cores.
    """
    added, held = [], RayHandle._held
    sent, shared = [], RayEngine.shared
    data = records(300, 13_000)

    def holding(self, reference):
        added.append(reference)
        return held(self, reference)

    def sharing(self, args):
        found = shared(self, args)
        sent.extend(one for one in found if isinstance(one, ray.ObjectRef))
        return found

    RayHandle._held, RayEngine.shared = holding, sharing
    try:
        found = {"same": same("dense", 6, data), "steps": MODELS["dense"].n_iter_}
        return found | {"held": len(added), "shared": len(sent)}
    finally:
        RayHandle._held, RayEngine.shared = held, shared


def listening():
    """Return the addresses that processes of the cluster listen at."""
    found = set()
    for one in psutil.Process().children(recursive=True):
        # Some have just ended.
        with suppress(psutil.Error):
            for connection in one.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    found.add(connection.laddr.ip)
    return sorted(found)


def token():
    """Return whether a token is asked for, its file's mode, and what one with another is told."""
    place = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    stranger = subprocess.run(
        [sys.executable, "-c", STRANGER, ray.get_runtime_context().gcs_address],
        env={**os.environ, "RAY_AUTH_TOKEN": "0" * 64},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return {
        "mode": os.environ["RAY_AUTH_MODE"],
        "file": stat.S_IMODE(place.stat().st_mode),
        "stranger": stranger.stdout or stranger.stderr,
    }


def report(kills, seed):
    # All rows are long, so a LASSO draws, as in the other tests of clusters.
    lasso._LONGER_ROWS = 1e-3
    # Ray starts workers as processes that wait for all others.
    os.environ.setdefault("RAY_worker_niceness", "0")
    began = time.perf_counter()
    connect("local", cores=5)
    found = {"seconds to start a cluster": time.perf_counter() - began}
    found["gradients"] = same("dense", 2, records(n_columns=450))
    # Without noise energies are released first.
    found["energies"] = same("scaled without privacy", 2, records())
    found["listening"] = listening()
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    found["folder"] = stat.S_IMODE(session.parent.parent.stat().st_mode)
    found["version"], found["token"] = ray.__version__, token()
    found["usage"] = os.environ["RAY_USAGE_STATS_ENABLED"]
    parts = {
        "tree": tree,
        "killed": lambda: killing(kills, random.Random(seed)),
        "machine": losing_a_machine,
    }
    for name, part in parts.items():
        found[name] = part()
        print(name, found[name], file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    given = [int(number) for number in sys.argv[1:]]
    came = report(*given, *(50, 1)[len(given) :])
    # It tells of lost processes until then.
    ray.shutdown()
    print(json.dumps(came))
