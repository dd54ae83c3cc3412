"""Ray clusters of this machine, each for all tests that need it."""

import json
import os
import subprocess
import sys

import pytest

from dplasso.fit import lasso


@pytest.fixture(autouse=True)
def long_rows(monkeypatch):
    """All rows are long, so a LASSO draws; short lists are what it would do otherwise."""
    monkeypatch.setattr(lasso, "_LONGER_ROWS", 1e-3)


def fits(kills):
    """Return what fits on a cluster came to; they run in a process of their own, as users' do."""
    paths = os.pathsep.join(filter(None, ["tests", os.environ.get("PYTHONPATH")]))
    unset = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    strict = "-W", "error", "-W", "ignore:Caution:RuntimeWarning"
    done = subprocess.run(
        [sys.executable, *strict, "-m", "tests.cluster.ray_fits", str(kills)],
        env=unset | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def on_ray():
    """Fits of which few workers are killed."""
    return fits(5)
