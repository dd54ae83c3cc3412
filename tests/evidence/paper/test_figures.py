"""Figures 1 to 4 on tiny data, against slow counts and against golden files."""

import csv
import io
from pathlib import Path

import pytest
from evidence.cells import run_cells
from evidence.report import csv_text

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
