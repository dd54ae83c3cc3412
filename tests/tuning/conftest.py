"""Settings shared by the tests of scores and searches."""

import pytest

from cli.conftest import new_ledger
from dplasso import DPLogisticRegression
from dplasso.tuning import estimates


@pytest.fixture
def seen(monkeypatch):
    """Collect which rows each fit and each score of a private model is shown."""
    rows = {"fit": [], "score": []}

    def noting(kind, method):
        def call(self, X, *rest):
            rows[kind].append(X[:, 0].astype(int).tolist())
            return method(self, X, *rest)

        return call

    for name, kind in {"fit": "fit", "predict": "score"}.items():
        real = getattr(DPLogisticRegression, name)
        monkeypatch.setattr(DPLogisticRegression, name, noting(kind, real))
    return rows


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
