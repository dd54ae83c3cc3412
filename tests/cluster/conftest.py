"""Ray clusters of this machine, each for all tests that need it."""

import json
import os
from unittest.mock import patch

import pytest

from dplasso.fit import lasso
from processes import python


@pytest.fixture(autouse=True)
def long_rows(monkeypatch):
    """All rows are long, so a LASSO draws; short lists are what it would do otherwise."""
    monkeypatch.setattr(lasso, "_LONGER_ROWS", 1e-3)


def fits(kills):
    """Return what fits on a cluster came to; they run in a process of their own, as users' do."""
    strict = "-W", "error", "-W", "ignore:Caution:RuntimeWarning"
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        done = python(*strict, "-m", "tests.cluster.ray_fits", kills)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def on_ray():
    """Fits of which few workers are killed."""
    return fits(5)
