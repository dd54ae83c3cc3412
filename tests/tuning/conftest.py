"""Settings shared by the tests of scores and searches."""

import pytest
from tests.tuning.models import NoisyShare

from cli.conftest import new_ledger


@pytest.fixture(autouse=True)
def nothing_seen():
    """Forget what was seen."""
    NoisyShare.seen.clear()


@pytest.fixture
def ledger(tmp_path):
    """Return a ledger with room for everything here."""
    return str(new_ledger(tmp_path / "l", 100.0, 1e-5))
