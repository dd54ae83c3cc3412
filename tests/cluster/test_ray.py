"""On Ray: the bits of one process, also when workers are killed; and a cluster closed to others."""

import sys
from types import SimpleNamespace

import pytest

from cluster.cases import MODELS
from dplasso.cluster import RayEngine
from dplasso.cluster import ray_engine as module
from dplasso.errors import ClusterError


@pytest.mark.ray
def test_fits_end_in_the_bits_of_one_process(on_ray):
    assert on_ray["gradients"]
    # Six workers, whose answers are added up where they are.
    assert on_ray["tree"]["same"]
    assert on_ray["tree"]["held"] > 6
    # The weights of each of its gradients.
    assert on_ray["tree"]["shared"] == MODELS["dense"].n_iter


@pytest.mark.ray
def test_killed_workers_change_nothing(on_ray):
    found = on_ray["killed"]
    assert found["same"]
    assert found["kills"] == 5
    assert found["replaced"] > 0


@pytest.mark.ray
@pytest.mark.slow
def test_fifty_killed_workers_change_nothing(many_kills):
    found = many_kills["killed"]
    assert found["same"]
    assert found["kills"] == 50
    assert found["replaced"] > 25
    # While they start and replay, and while they work.
    assert found["phases"]["replacing"] > 0
    assert len(found["phases"]) > 2


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


def test_one_that_other_machines_reach_is_ended(monkeypatch):
    ended = []
    ray = SimpleNamespace(
        __version__="9.9",
        _private=SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True)),
        is_initialized=lambda: False,
        init=lambda **_: None,
        shutdown=lambda: ended.append(True),
        util=SimpleNamespace(get_node_ip_address=lambda: "192.0.2.5"),
    )
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(ClusterError, match=r"Ray 9\.9 would listen at 192\.0\.2\.5, where other"):
        module.connect("local")
    assert ended
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER


def test_without_ray_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"pip install 'dplasso\[ray\]'"):
        module.connect("auto")
    assert RayEngine().restarts == 3
