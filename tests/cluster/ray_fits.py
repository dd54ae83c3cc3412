"""Fits on a Ray cluster of this machine, in a process of their own; prints what came of them."""

import json
import os
import random
import signal
import stat
import threading
import time
from importlib import import_module
from pathlib import Path

import ray

from cluster.cases import MODELS, cut, records, released
from dplasso.cluster import RayEngine
from dplasso.cluster.partitions import Partitions
from dplasso.cluster.ray_engine import connect

# Ray brings it along.
psutil = import_module("psutil")
REPORT = {}


def same(name, n_parts, **options):
    X, y = records(n_columns=450)
    model = MODELS[name]
    expected = released(model.fit(X, y))
    began = time.perf_counter()
    found = released(model.fit(*cut(X, y, n_parts), engine=RayEngine("local", **options)))
    return {"same": found == expected, "seconds": time.perf_counter() - began}


def workers():
    """Return the processes of the workers that run now."""
    own = psutil.Process().children(recursive=True)
    return [one for one in own if "RayWorker" in " ".join(one.cmdline())]


def killing(delay):
    """Kill a worker, whichever, while it takes a step, and another while it adds up gradients."""
    call, seen, killed = Partitions.call, [], []

    def kill(at):
        time.sleep(delay.random() * 0.05)
        victims = workers()
        if victims:
            victim = delay.choice(victims)
            victim.send_signal(signal.SIGKILL)
            killed.append(at)

    def calling(self, method, *args):
        at = (method, *args[:1]) if method == "move" else (method,)
        if at in (("move", 3), ("gradient",)) and at not in seen:
            seen.append(at)
            threading.Thread(target=kill, args=(at,)).start()
        return call(self, method, *args)

    Partitions.call = calling
    try:
        return same("strong", 2) | {"killed": len(killed)}
    finally:
        Partitions.call = call


def listening():
    """Return the addresses that processes of the cluster listen at."""
    found = set()
    for one in psutil.Process().children(recursive=True):
        for connection in one.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                found.add(connection.laddr.ip)
    return sorted(found)


if __name__ == "__main__":
    connect("local", cores=4)
    REPORT["gradients"] = same("dense", 2)
    REPORT["listening"] = listening()
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    REPORT["folder"] = stat.S_IMODE(session.parent.parent.stat().st_mode)
    REPORT["killed"] = killing(random.Random(os.environ.get("SEED", 1)))
    REPORT["usage"] = os.environ["RAY_USAGE_STATS_ENABLED"]
    ray.shutdown()
    print(json.dumps(REPORT))
