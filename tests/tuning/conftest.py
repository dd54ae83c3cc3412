"""Settings shared by the tests of scores and searches."""

import pytest
from tests.tuning.models import NoisyShare


@pytest.fixture(autouse=True)
def nothing_seen():
    """Forget what was seen."""
    NoisyShare.seen.clear()
