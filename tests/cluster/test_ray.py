"""On Ray: the bits of one process, also when workers are killed; and a cluster closed to others."""

import sys
import time
from types import SimpleNamespace

import pytest
from typer.main import get_command

from cluster.cases import MODELS, cut, records, released
from dplasso.cli.app import app
from dplasso.cli.clusters import ClusterOptions
from dplasso.cluster import InProcessEngine, RayEngine
from dplasso.cluster import ray_engine as module
from dplasso.cluster.engines import LocalHandle, WorkerLost
from dplasso.cluster.worker import Partition
from dplasso.errors import ClusterError


@pytest.mark.ray
def test_fits_end_in_the_bits_of_one_process(on_ray):
    assert on_ray["gradients"]
    assert on_ray["energies"]
    # Six workers on five cores, whose answers are added up where they are.
    assert on_ray["tree"]["same"]
    assert on_ray["tree"]["held"] > 6
    # The weights of each of its gradients.
    assert on_ray["tree"]["shared"] == on_ray["tree"]["steps"]


@pytest.mark.ray
def test_killed_workers_change_nothing(on_ray):
    found = on_ray["killed"]
    assert found["same"]
    assert found["kills"] == 5
    assert found["replaced"] > 0


@pytest.mark.ray
def test_a_lost_machine_changes_nothing(on_ray):
    assert on_ray["machine"]["same"]
    assert on_ray["machine"]["seconds to recover"] < 300


@pytest.mark.ray
def test_the_cluster_of_a_process_is_closed_to_others(on_ray):
    assert on_ray["listening"]
    assert all("127.0.0.1" in address for address in on_ray["listening"])
    assert on_ray["folder"] == 0o700
    assert on_ray["usage"] == "0"


@pytest.mark.ray
def test_it_answers_nobody_without_its_token(on_ray):
    token = on_ray["token"]
    assert token["mode"] == "token"
    assert token["file"] == 0o600
    # Before 2.52 Ray asks nobody for a token.
    asks = tuple(int(part) for part in on_ray["version"].split(".")[:2]) >= (2, 52)
    assert ("InvalidAuthToken" if asks else "let in") in token["stranger"]


def test_a_worker_of_its_own_process_answers_as_one_here(monkeypatch):
    """With energies, gradients and margins, which are asked for with none, one and two numbers."""
    monkeypatch.setattr(module.os, "umask", lambda _: None)

    class Engine(InProcessEngine):
        def start(self, partition):
            return LocalHandle(module.RayWorker(partition, 1))

    X, y = records()
    for name in ("scaled without privacy", "dense", "strong"):
        model = MODELS[name]
        expected = released(model.fit(X, y))
        assert released(model.fit(*cut(X, y, 2), engine=Engine())) == expected


def test_one_that_other_machines_reach_is_ended(monkeypatch):
    ended = []
    ray = SimpleNamespace(
        __version__="9.9",
        _private=SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True)),
        is_initialized=lambda: False,
        init=lambda **_: None,
        shutdown=lambda: ended.append(True),
        util=SimpleNamespace(get_node_ip_address=lambda: "192.0.2.5"),
        get_runtime_context=lambda: SimpleNamespace(gcs_address="198.51.100.1:6379"),
    )
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(ClusterError, match=r"Ray 9\.9 would listen at 192\.0\.2\.5, where other"):
        module.connect("local")
    assert ended
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER


class Cluster:
    """Stands in for the module ray: machines with so many cores, of which so many are free."""

    __version__ = "2.60.0"

    class RayActorError(Exception):
        pass

    def __init__(self, *cores, free=None, initialized=False):
        self.cores, self.free, self.initialized = list(cores), free, initialized
        self.started, self.killed = [], []
        names = ("RayActorError", "WorkerCrashedError", "ObjectLostError", "OutOfMemoryError")
        self.exceptions = SimpleNamespace(
            **dict.fromkeys(names, self.RayActorError), RayTaskError=KeyError
        )

    def init(self, **_):
        self.initialized = True

    def is_initialized(self):
        return self.initialized

    def get_runtime_context(self):
        return SimpleNamespace(gcs_address="192.0.2.5:6379")

    def nodes(self):
        return [{"Alive": cores > 0, "Resources": {"CPU": float(cores)}} for cores in self.cores]

    def cluster_resources(self):
        return {"CPU": float(sum(self.cores))}

    def available_resources(self):
        return {"CPU": float(sum(self.cores) if self.free is None else self.free)}

    def remote(self, _):
        def options(**given):
            self.started.append(given)
            there = not given["num_cpus"] or self.available_resources()["CPU"] > 0
            ready = SimpleNamespace(remote=lambda: there and self.arrive)
            return SimpleNamespace(remote=lambda *_: SimpleNamespace(ready=ready))

        return SimpleNamespace(options=options)

    arrive = True

    def wait(self, pending, timeout=None):
        time.sleep(min(timeout, 0.01))
        return ([one for one in pending if one], [one for one in pending if not one])

    def get(self, reference):
        return reference

    def kill(self, actor):
        self.killed.append(actor)


@pytest.fixture
def protected(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setattr(module, "_SAY", 0.01)


def gathered(monkeypatch, cluster, count, **options):
    monkeypatch.setitem(sys.modules, "ray", cluster)
    return RayEngine("ray.example:6379", **options).gather(count)


def test_a_cluster_that_asks_for_no_token_is_joined_by_name_alone(monkeypatch):
    for name in ("RAY_AUTH_MODE", "RAY_USE_TLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "ray", Cluster(4))
    refusal = r"'auto' uses neither tokens nor encryption.*open_cluster=True"
    with pytest.raises(ClusterError, match=refusal):
        RayEngine().gather(1)
    # Also where the program has joined it before.
    monkeypatch.setitem(sys.modules, "ray", Cluster(4, initialized=True))
    for address in ("auto", "local"):
        with pytest.raises(ClusterError, match="uses neither tokens"):
            RayEngine(address).gather(1)
    RayEngine(open_cluster=True).gather(1)
    monkeypatch.setenv("RAY_USE_TLS", "1")
    RayEngine().gather(1)
    monkeypatch.delenv("RAY_USE_TLS")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    RayEngine().gather(1)
    # Before 2.52 Ray asks nobody for a token.
    monkeypatch.setattr(Cluster, "__version__", "2.51.1")
    with pytest.raises(ClusterError, match="uses neither tokens"):
        RayEngine().gather(1)


@pytest.mark.usefixtures("protected")
def test_a_worker_that_does_not_start_in_time_is_lost_and_replaced_on_shared_cores(
    monkeypatch, capfd
):
    cluster = Cluster(4, free=0)
    workers = gathered(monkeypatch, cluster, 2, threads=2, patience=0.1)
    pending = [workers.start(Partition(f"{name}.store")).call("ready") for name in "ab"]
    for ready in pending:
        with pytest.raises(WorkerLost, match="did not start within 0 seconds"):
            ready()
    waiting = capfd.readouterr().err.splitlines()[0]
    assert waiting.startswith("waiting for the worker of a.store to start, ")
    assert waiting.endswith(" s so far: 0 of the cluster's 4 cores are free")
    workers.start(Partition("a.store")).call("ready")()
    assert [one["num_cpus"] for one in cluster.started] == [2, 2, 0]


@pytest.mark.usefixtures("protected")
def test_where_machines_are_added_workers_wait_for_cores_of_their_own(monkeypatch, capfd):
    """Pending workers are the demand that an autoscaler sees; those that share ask for nothing."""
    stats = SimpleNamespace(autoscaler_version="7")
    status = SimpleNamespace(get_cluster_status=lambda _: SimpleNamespace(stats=stats))
    monkeypatch.setitem(sys.modules, "ray.autoscaler.v2.sdk", status)
    cluster = Cluster(1)
    gathered(monkeypatch, cluster, 3).start(Partition("a.store"))
    # Without an autoscaler Ray reports version 0; another Ray may not answer.
    stats.autoscaler_version = "0"
    gathered(monkeypatch, cluster, 3).start(Partition("a.store"))
    monkeypatch.setitem(sys.modules, "ray.autoscaler.v2.sdk", None)
    gathered(monkeypatch, cluster, 3).start(Partition("a.store"))
    assert [one["num_cpus"] for one in cluster.started] == [1, 0, 0]
    assert cluster.started[-1]["scheduling_strategy"] == "SPREAD"
    words = "3 workers of 1 core each share the cluster's cores, which suffice for 1 at a time"
    assert capfd.readouterr().err.splitlines()[-1] == words


def test_the_command_line_gives_them_to_the_engine():
    chosen = ClusterOptions("auto", 4, open_cluster=True, restarts=5, patience=60.0)
    assert chosen.engine == RayEngine("auto", 4, 5, 60.0, open_cluster=True)
    assert ClusterOptions("auto").engine == RayEngine()
    options = {param.name for param in get_command(app).commands["fit"].params}
    assert {"restarts", "patience", "open_cluster"} <= options


def test_without_ray_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"pip install 'dplasso\[ray\]'"):
        module.connect("auto")
    assert RayEngine().restarts == 3
