"""The formula of docs/cluster.md for time and memory of a fit on partitions."""

import json
import subprocess
import sys

import pytest


@pytest.mark.evidence
def test_the_parts_are_as_measured():
    """Within a factor of three on a machine that does other work beside; the page says two."""
    case = [sys.executable, "-m", "evidence.cluster.parts", "0.2"]
    done = subprocess.run(case, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        one = json.loads(line[line.index("{") :])
        assert one["bytes"] < one["expected bytes"] < 3 * one["bytes"]
        assert one["expected seconds"] > one["seconds"] / 3
