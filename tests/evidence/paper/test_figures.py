"""Figures 1 to 4 on tiny data, against slow counts and against golden files."""

import csv
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from evidence.cells import run_cells
from evidence.paper.trajectories import trajectories
from evidence.report import csv_text, picture, write_item
from evidence.true_gap import true_gap, true_gaps

from evidence.paper import figures, table2, table4

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(scope="module")
def results(settings, tmp_path_factory):
    return run_cells(figures.cells(settings), tmp_path_factory.mktemp("trajectories"))


@pytest.fixture(scope="module")
def found(settings, results):
    return {run.method: run for run in trajectories(settings, results)}


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


def test_gap_before_the_first_step_is_that_of_zero_weights(settings):
    X, y = settings.sources[0].load()
    transcript = SimpleNamespace(vertex=np.array([3, 4]), sign=np.array([1, -1], dtype=np.int8))
    gaps = true_gaps(X, y, transcript, 2.0, np.array([1, 2]))
    assert gaps[0] == pytest.approx(true_gap(X, y, np.zeros(X.shape[1]), 2.0)[1])
    # The step size of step 1 is 2/3.
    one = np.zeros(X.shape[1])
    one[3] = 2.0 * 2 / 3
    assert gaps[1] == pytest.approx(true_gap(X, y, one, 2.0)[1])


class TestTrajectories:
    def test_algorithm_1_reports_its_true_gap(self, found):
        run = found["algorithm-1"]
        reported = run.gap[np.isin(run.steps, run.marks)]
        assert reported == pytest.approx(run.marked_gap, rel=1e-5)

    def test_stale_rows_report_another_gap_than_the_true_one(self, found):
        run = found["algorithm-2+3"]
        reported = run.gap[np.isin(run.steps, run.marks)]
        assert np.abs(reported / run.marked_gap - 1).max() > 0.05

    def test_ours_makes_the_choices_of_algorithm_1(self, found):
        assert figures.parting(found, "dplasso") is None
        assert figures.parting(found, "algorithm-2+3") is not None


def test_pictures_are_the_same_for_the_same_numbers(settings, results, tmp_path):
    for name in ("figure1", "figure3"):
        item = getattr(figures, name)(settings, results)
        assert picture(item, "svg") == picture(item, "svg")
        files = write_item(item, tmp_path)
        assert set(files) == {"csv", "png", "svg", "md"}
        assert files["png"].read_bytes().startswith(b"\x89PNG")
        assert f"![{item.title}]({name}.png)" in files["md"].read_text()
    assert len(list(tmp_path.iterdir())) == 8
