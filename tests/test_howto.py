"""The pages docs/howto-*.md run as printed: Python and commands, from top to bottom."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dplasso.cli.app import app

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("howto-*.md"))
# Repetitions that a page needs for its figures and a test does not.
FEWER = {"draws = range(5)": "draws = range(2)", "in range(200):": "in range(20):"}


def words(text):
    """Return what is printed without its figures, which differ from draw to draw."""
    text = re.sub(r"[+-]?\d[\d.e-]*", "0", text)
    return re.sub(r"^.*: weight", "a column: weight", text, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    source, outputs = page.read_text(encoding="utf-8"), {}
    blocks = re.findall(r"```(python|console|text)\n(.*?)```", source, re.DOTALL)
    assert blocks
    for kind, text in blocks:
        if kind == "python":
            for shown, run in FEWER.items():
                text = text.replace(shown, run)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, str(page), "exec"), names)
            continue
        if kind == "text":
            assert words(printed.getvalue()) == words(text)
            continue
        for line in text.splitlines():
            line, _, kept = line.partition(" > ")
            program, *arguments = shlex.split(line)
            assert program == "dplasso"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{line}\n{result.output}"
            if kept:
                (tmp_path / kept).write_text(result.stdout)
            outputs[arguments[0]] = result.stdout
            if arguments[0] == "report":
                page_out = tmp_path / arguments[arguments.index("--out") + 1]
                assert "Differentially private with epsilon = " in page_out.read_text()
    if page.stem == "howto-texts":
        assert names["accuracy"] > 0.9
    if page.stem == "howto-hospital":
        assert sum(text.count("dplasso ") for kind, text in blocks if kind == "console") == 6
        draft = json.loads((tmp_path / "draft.json").read_text())
        assert [part["column"] for part in draft["parts"]] == ["age", "ward", "note"]
        assert "70<=age<80" in outputs["show"]
        assert "first model" in (tmp_path / "report.html").read_text()
        assert len(outputs["predict"].splitlines()) == 5
    if page.stem == "howto-researcher":
        assert names["clear"] > 10
        assert all(min(found) > 0.87 for found in names["auc"].values())
        assert (tmp_path / "auc.png").stat().st_size > 10_000
    if page.stem == "howto-scikit-learn":
        assert names["model"][-1].top_features(1).index[0].startswith("age from")


def test_the_pages_lead_to_files_that_exist():
    assert len(PAGES) >= 5
    for page in [*PAGES, DOCS / "report.md"]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(((?!https?:)[^)#]+)\)", text):
            assert (DOCS / link).is_file(), f"{page.name}: {link}"
