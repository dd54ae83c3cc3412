"""Tables 1, 3 and 4, and the report; uniform coordinates with the true sign."""

import csv
import html
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from evidence.cells import run_cells
from evidence.growth import SERIES, Point, exponents
from evidence.items import Table
from evidence.paper.uniform import uniform_state
from evidence.reference.draws import ALARM, draw
from evidence.report import csv_text, report_html, report_markdown
from evidence.runner import published
from scipy.stats import chisquare

from evidence import runner
from evidence.paper import items as paper
from evidence.paper import table1, table3, table4

SMALL = (
    *(Point("columns", x, x // 4, x, 4) for x in (100, 1000)),
    *(Point("rows", x, x, 100, 4) for x in (100, 1000)),
    *(Point("touched", x * x, 100, 100, x) for x in (2, 8)),
)


@pytest.fixture
def small_growth(monkeypatch):
    monkeypatch.setattr(table1, "POINTS", SMALL)


def test_exponents_are_those_of_the_power_law():
    power = {"algorithm-1": 1.0, "algorithm-2+4": 0.5, "dplasso": 0.0}
    results = [{name: 3.0 * point.x**p for name, p in power.items()} for point in SMALL]
    found = exponents(SMALL, results)
    for name, expected in power.items():
        assert list(found[name]) == list(SERIES)
        assert list(found[name].values()) == pytest.approx([expected] * 3, abs=1e-9)


def test_table1_has_prior_methods_and_measured_ones(small_growth, settings, tmp_path):
    item = table1.present(settings, run_cells(table1.cells(settings), tmp_path))
    text = csv_text(item)
    rows = next(part for part in item.parts if isinstance(part, Table)).rows
    assert len(text.splitlines()) == 1 + 3 * len(SMALL)
    assert ("the paper", "ADMM", "O(T N D M)", "-", "-", "-") in rows
    assert [row[0] for row in rows].count("here") == 1
    assert all(row[6] > 0 for row in item.data_rows)


def test_table3_times_every_method_at_both_epsilons(settings, tmp_path):
    source = replace(settings.sources[0], published="rcv1")
    own = replace(settings, sources=(source,))
    results = run_cells(table3.cells(own), tmp_path)
    item = table3.present(own, results)
    rows = [dict(zip(item.data_head, row, strict=True)) for row in item.data_rows]
    assert [(row["epsilon"], row["method"]) for row in rows] == [
        (epsilon, method) for epsilon in ("1", "0.1") for method in table3.METHODS
    ]
    loops = {(row["epsilon"], row["method"]): row["loop_seconds"] for row in rows}
    for row in rows:
        gain = loops[row["epsilon"], "algorithm-1"] / row["loop_seconds"]
        assert (row["speedup_loop"], row["n_steps"]) == (pytest.approx(gain), 30)
    published = {(row["epsilon"], row["method"]): row["speedup_published"] for row in rows}
    assert published["1", "algorithm-2+4"] == 19.44
    assert published["0.1", "algorithm-2"] == 1.82
    assert published["1", "dplasso"] is None
    # Times are of this machine: they are not taken from another's files.
    assert all(cell.machine for cell in table3.cells(own))


def test_the_sign_alone_carries_the_utility():
    """In the results that are published; the golden table holds the code to its numbers."""
    found = {}
    with (published("paper") / "table4.csv").open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["variant"], []).append(float(row["auc"]))
    assert min(found["paper"] + found["uniform"]) > 88
    assert max(found["signed"] + found["accounted"]) < 53


def test_epsilon_of_the_signed_mechanism_at_the_papers_scale():
    # eps0 = 2 c, c = N eps / (2 lambda sqrt(8 T log(1/delta))); T eps0^2 / 8 is its zCDP.
    c = 16_000 * 0.1 / (2 * 5000 * math.sqrt(8 * 400_000 * math.log(1e6)))
    rho = 400_000 * (2 * c) ** 2 / 8
    crude = rho + 2 * math.sqrt(rho * math.log(1e6))
    found = table4.signed_epsilon(16_000, 400_000)
    assert 0.6 * crude < found <= crude


def test_report_is_one_file_with_everything_in_it(small_growth, settings, tmp_path):
    items, _ = runner.run_items(paper, runner.item_names(paper, "all"), settings, tmp_path)
    page = report_html(paper.TITLE, (paper.ABOUT,), items)
    for tag in ("html", "body", "table", "tr", "td", "p"):
        assert len(re.findall(rf"<{tag}[ >]", page)) == page.count(f"</{tag}>")
    loaded = [one for one in re.findall(r'(?:src|href)="([^"]*)"', page) if one[0] != "#"]
    assert len(loaded) == len(items) == 8
    assert all(one.startswith("data:image/png;base64,") for one in loaded)
    for item in items:
        assert html.escape(item.title) in page
    markdown = report_markdown(paper.TITLE, (paper.ABOUT,), items)
    assert markdown.count("\n## ") == 8
    assert "not differentially private" in markdown
    files = runner.publish(paper, items, settings, tmp_path / "new")["report"]
    assert sorted(path.name for path in files.values()) == ["report.html", "report.md"]


N_COLUMNS, DRAWS = 12, 60_000


# The first column is far ahead: any use of alpha would show.
ALPHA = np.array([2**60, -(2**40), 0, 1, -1, 5, -7, 2**33, -(2**33), 3, 2, 1])


def test_coordinates_are_uniform_whatever_alpha_is_and_signs_are_true():
    vertex, sign = draw(uniform_state(), ALPHA, 1, DRAWS)
    assert chisquare(np.bincount(vertex, minlength=N_COLUMNS)).pvalue > ALARM
    assert np.array_equal(sign, np.where(ALPHA[vertex] >= 0, -1, 1))
    # The very same coordinates on other data.
    again, _ = draw(uniform_state(), -ALPHA[::-1].copy(), 1, DRAWS)
    assert np.array_equal(vertex, again)
