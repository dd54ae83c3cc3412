"""What is said of time and memory before a fit on partitions."""

import json
import subprocess
import sys

import pytest

from cli.conftest import found, refused, run_command, said
from dplasso.cli.clusters import Estimate

BIG = ("--rows", 10**9, "--columns", 10**6, "--entries", "2e10", "--workers", 100)


def test_more_workers_and_cores_are_faster_and_smaller():
    size = {"rows": 1e9, "columns": 1e6, "entries": 2e10, "steps": 100}
    few, many = (Estimate(**size, workers=n) for n in (10, 100))
    assert few.step_seconds > 4 * many.step_seconds
    assert few.worker_bytes > many.worker_bytes
    assert few.store_bytes == 10 * many.store_bytes == pytest.approx(3.2e10)
    assert Estimate(**size, workers=10, threads=8).step_seconds < 0.2 * few.step_seconds
    # With cores for a half at a time, each step takes two turns.
    assert Estimate(**size, workers=10, places=5).step_seconds > 1.9 * few.step_seconds
    assert Estimate(**size, workers=10, outputs=4).answer_bytes == 4 * few.answer_bytes


def test_a_plan_says_it_without_a_budget():
    told = found("plan", *BIG, "--method", "logistic")["cluster"]
    expected = Estimate(1e9, 1e6, 2e10, 100, 400).to_dict()
    assert told == pytest.approx(expected)
    text = " ".join(said("plan", *BIG).split())
    assert "A fit on 100 partitions: about " in text
    assert "a worker needs 662 MB of memory, and 3.2 GB more for its store" in text
    assert "A fit on 100 partitions" in said("plan", *BIG, "--epsilon", 1)
    refused(run_command("plan", "--rows", 100), "give one", code=2)


@pytest.mark.evidence
def test_the_parts_are_as_measured():
    """Within a factor of three on a machine that does other work beside; the page says two."""
    case = [sys.executable, "-m", "evidence.cluster.parts", "0.2"]
    done = subprocess.run(case, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        one = json.loads(line[line.index("{") :])
        assert one["bytes"] < one["expected bytes"] < 3 * one["bytes"]
        assert one["expected seconds"] > one["seconds"] / 3
