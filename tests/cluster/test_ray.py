"""On Ray: the bits of one process, also when workers are killed; and a cluster closed to others."""

import importlib.util

import pytest

from dplasso.cluster import RayEngine
from dplasso.cluster import ray_engine as module
from dplasso.errors import ClusterError

if importlib.util.find_spec("ray") is not None:

    @pytest.mark.slow
    def test_fits_end_in_the_bits_of_one_process(on_ray):
        assert on_ray["gradients"]["same"]

    @pytest.mark.slow
    def test_killed_workers_change_nothing(on_ray):
        assert on_ray["killed"]["killed"] == 2
        assert on_ray["killed"]["same"]

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
