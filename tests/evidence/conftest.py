"""Tiny data for the reproduction's tests."""

from pathlib import Path

import numpy as np
import pytest
from evidence.datasets import find_sources
from evidence.items import Settings


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 80 rows over 40 columns, of which the first three tell the label; values in (0, 1]."""
    path = tmp_path_factory.mktemp("rows") / "tiny.svm"
    rng, lines = np.random.default_rng(3), []
    for i in range(80):
        columns = np.sort(rng.choice(40, size=6, replace=False))
        label = 1 if (columns < 3).any() or i % 7 == 0 else -1
        values = rng.integers(1, 65, size=6) / 64
        entries = " ".join(f"{c + 1}:{v:g}" for c, v in zip(columns, values, strict=True))
        lines.append(f"{label:+d} {entries}\n")
    path.write_text("".join(lines))
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what proves parts of evidence/; what guards the anchors of planted bugs is cheap."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.name != "test_anchors.py":
            item.add_marker("evidence")


@pytest.fixture(scope="session")
def settings(rows: Path) -> Settings:
    """Settings for a few steps on the tiny rows."""
    found = find_sources([str(rows)], twin=False, scale=1.0, seed=0, n_jobs=1)
    return Settings(tuple(found), iterations=30, repeats=1, limit=0.0)
