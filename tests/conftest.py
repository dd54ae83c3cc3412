"""Settings and data shared by all tests."""

import os

# Before numpy is imported: the threads of small products wait for each other, and other tests run.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Before the package is imported: names the folder of compiled kernels.
import numpy as np
import pytest
from hypothesis import settings

import evidence  # noqa: F401
from dplasso.datasets import load_adult

# The first example of a test may have to wait for the compiler.
settings.register_profile("dplasso", deadline=None, derandomize=True)
settings.load_profile("dplasso")


def pytest_collection_modifyitems(items):
    """Put tests of vertices first: one worker of two compiles their kernels, not both.

    A worker begins with a half of the tests of its own. Halves that both began with these kernels
    had them compiled twice, 20 s of processor time.
    """
    of_vertices = {
        "audit",
        "frank_wolfe",
        "selection",
        "test_lasso.py",
        "test_neighbours.py",
        "test_people.py",
    }
    items.sort(key=lambda item: of_vertices.isdisjoint((item.path.parent.name, item.path.name)))


@pytest.fixture(scope="session")
def adult():
    """The first 2,500 records of UCI Adult: X (csr, 123 binary columns) and labels 0 or 1."""
    data = load_adult("train")
    return data.X[:2500], (data.y[:2500] > 0).astype(np.int64)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk():
    """What is killed in tests is a process, which loses nothing that it has written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
