"""Figures 1 to 4 on tiny data, against slow counts and against golden files."""

import csv
import io
from pathlib import Path

import pytest
from evidence.cells import run_cells
from evidence.report import csv_text, picture, write_item

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


def test_pictures_are_the_same_for_the_same_numbers(settings, results, tmp_path):
    for name in ("figure1", "figure3"):
        item = getattr(figures, name)(settings, results)
        assert picture(item, "svg") == picture(item, "svg")
        files = write_item(item, tmp_path)
        assert set(files) == {"csv", "png", "svg", "md"}
        assert files["png"].read_bytes().startswith(b"\x89PNG")
        assert f"![{item.title}]({name}.png)" in files["md"].read_text()
    assert len(list(tmp_path.iterdir())) == 8
