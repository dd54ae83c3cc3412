"""Figures 1 to 4 on tiny data, against slow counts and against golden files."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from evidence.cells import run_cells
from evidence.report import csv_text, picture, write_item
from evidence.true_gap import true_gap

from evidence.paper import figures, table2, table4

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(scope="module")
def results(settings, tmp_path_factory):
    return run_cells(figures.cells(settings), tmp_path_factory.mktemp("trajectories"))


def assert_like_golden(item):
    """Compare a CSV text with the one kept: numbers to five digits, all else exactly."""
    golden = (GOLDEN / f"{item.name}.csv").read_text()
    measured, kept = (list(csv.reader(io.StringIO(text))) for text in (csv_text(item), golden))
    assert len(measured) == len(kept)
    for ours, theirs in zip(measured, kept, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            try:
                assert float(one) == pytest.approx(float(other), rel=1e-5, abs=1e-12)
            except ValueError:
                assert one == other


@pytest.mark.parametrize("name", ["figure1", "figure2", "figure3", "figure4"])
def test_golden(name, settings, results):
    assert_like_golden(getattr(figures, name)(settings, results))


@pytest.mark.parametrize("table", [table2, table4])
def test_golden_tables(table, settings, tmp_path):
    assert_like_golden(table.present(settings, run_cells(table.cells(settings), tmp_path)))


def test_gap_by_brute_force(settings):
    X, y = settings.sources[0].load()
    dense = np.zeros(X.shape[1])
    dense[[0, 5]] = 3.0, -2.0
    rows = X.toarray().astype(float)
    probability = 1.0 / (1.0 + np.exp(-(rows @ dense)))
    loss = -np.log(np.where(y, probability, 1.0 - probability)).sum()
    alpha = (probability - y) @ rows
    # The gap is the largest <alpha, w - s> over the ball, at one of its vertices.
    gap = max(alpha @ (dense - side * 7.0 * e) for e in np.eye(X.shape[1]) for side in (-1, 1))
    assert true_gap(X, y, dense, 7.0) == pytest.approx((loss / 80, gap / 80))


def test_pictures_are_the_same_for_the_same_numbers(settings, results, tmp_path):
    for name in ("figure1", "figure3"):
        item = getattr(figures, name)(settings, results)
        assert picture(item, "svg") == picture(item, "svg")
        files = write_item(item, tmp_path)
        assert set(files) == {"csv", "png", "svg", "md"}
        assert files["png"].read_bytes().startswith(b"\x89PNG")
        assert f"![{item.title}]({name}.png)" in files["md"].read_text()
    assert len(list(tmp_path.iterdir())) == 8
