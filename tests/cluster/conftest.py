"""One Ray cluster of this machine for all tests that need one."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def on_ray():
    """What fits on a cluster came to; they run in a process of their own, as users' do."""
    paths = os.pathsep.join(filter(None, ["tests", os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.ray_fits"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
