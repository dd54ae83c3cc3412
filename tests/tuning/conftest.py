"""Settings shared by the tests of scores and searches."""

import pytest
from tests.tuning.models import NoisyShare

from dplasso.ledger import create_ledger


@pytest.fixture(autouse=True)
def nothing_seen():
    """Forget what was seen."""
    NoisyShare.seen.clear()


@pytest.fixture
def ledger(tmp_path):
    """Return a ledger with room for everything here."""
    create_ledger(tmp_path / "l", 100.0, 1e-5)
    return str(tmp_path / "l")
