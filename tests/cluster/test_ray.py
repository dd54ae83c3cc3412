"""On Ray: the bits of one process, also when workers are killed; and a cluster closed to others."""

import importlib.util

import pytest

from dplasso.cluster import RayEngine
from dplasso.cluster import ray_engine as module
from dplasso.errors import ClusterError

if importlib.util.find_spec("ray") is not None:

    @pytest.mark.slow
    def test_fits_end_in_the_bits_of_one_process(on_ray):
        assert on_ray["gradients"]
        # Six workers, whose answers are added up where they are.
        assert on_ray["tree"]["same"]
        assert on_ray["tree"]["held"] > 6

    @pytest.mark.slow
    def test_fifty_killed_workers_change_nothing(on_ray):
        found = on_ray["killed"]
        assert found["same"]
        assert found["kills"] == 50
        assert found["replaced"] > 25
        # While they start and replay, and while they work.
        assert found["phases"]["replacing"] > 0
        assert len(found["phases"]) > 2

    @pytest.mark.slow
    def test_a_lost_machine_changes_nothing(on_ray):
        assert on_ray["machine"]["same"]
        assert on_ray["machine"]["seconds to recover"] < 300

    @pytest.mark.slow
    def test_the_cluster_of_a_process_is_closed_to_others(on_ray):
        assert on_ray["listening"]
        assert all("127.0.0.1" in address for address in on_ray["listening"])
        assert on_ray["folder"] == 0o700
        assert on_ray["usage"] == "0"


def test_without_ray_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ClusterError, match=r"pip install 'dplasso\[ray\]'"):
        module.connect("auto")
    assert RayEngine().restarts == 3
