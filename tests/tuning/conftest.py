"""Settings shared by the tests of scores and searches."""

from functools import lru_cache

import pytest
from tests.tuning.models import NoisyShare

from dplasso.tuning import candidates


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Forget what was seen, and account the same event only once."""
    NoisyShare.seen.clear()
    monkeypatch.setattr(candidates, "rho_of_event", lru_cache(candidates.rho_of_event))
