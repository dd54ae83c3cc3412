"""Settings shared by the tests of scores and searches."""

import pytest
from tests.tuning.models import NoisyShare

from cli.conftest import new_ledger
from dplasso.tuning import estimates


@pytest.fixture(autouse=True)
def nothing_seen():
    """Forget what was seen."""
    NoisyShare.seen.clear()


@pytest.fixture
def ledger(tmp_path):
    """Return a ledger with room for everything here."""
    return str(new_ledger(tmp_path / "l", 100.0, 1e-5))


@pytest.fixture
def left(monkeypatch):
    """Collect what is released: exact sums, how far rows move them, the noise's scale, the sums."""
    kept, release = [], estimates.release

    def noting(sums, moved, noise):
        assert noise is not None
        exact = sums.copy()
        noisy = release(sums, moved, noise)
        kept.append((exact, moved, noise.scale, noisy))
        return noisy

    monkeypatch.setattr(estimates, "release", noting)
    return kept
