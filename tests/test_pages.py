"""README.md and the pages docs/howto-*.md run as printed: Python and commands, top to bottom."""

import contextlib
import gzip
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dplasso
from dplasso.cli.app import app

ROOT = Path(__file__).parent.parent
DOCS, README = ROOT / "docs", ROOT / "README.md"
PAGES = sorted(DOCS.glob("howto-*.md"))
# Repetitions that a page needs for its figures and a test does not.
FEWER = {"draws = range(5)": "draws = range(2)", "in range(200):": "in range(20):"}


def blocks_of(page):
    """Return the kind and the text of every block of code of a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"```(python|console|text)\n(.*?)```", text, re.DOTALL)


def printed_by(code, page, names):
    """Run Python code among some names, and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page), "exec"), names)
    return printed.getvalue()


def command(line):
    """Run a command, and return its name, its arguments and its output."""
    program, *arguments = shlex.split(line)
    assert program == "dplasso"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return arguments, result.stdout


def words(text):
    """Return what is printed without its figures, which differ from draw to draw."""
    text = re.sub(r"[+-]?\d[\d.e-]*", "0", text)
    return re.sub(r"^.*: weight", "a column: weight", text, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, outputs, blocks = {"__name__": "page"}, {}, blocks_of(page)
    assert blocks
    for kind, text in blocks:
        if kind == "python":
            for shown, run in FEWER.items():
                text = text.replace(shown, run)
            printed = printed_by(text, page, names)
            continue
        if kind == "text":
            assert words(printed) == words(text)
            continue
        for line in text.splitlines():
            line, _, kept = line.partition(" > ")
            arguments, output = command(line)
            if kept:
                (tmp_path / kept).write_text(output)
            outputs[arguments[0]] = output
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
        assert len(outputs["predict"].splitlines()) == 6
    if page.stem == "howto-researcher":
        assert names["clear"] > 10
        assert all(min(found) > 0.87 for found in names["auc"].values())
        assert (tmp_path / "auc.png").stat().st_size > 10_000
    if page.stem == "howto-months":
        anew, begun, _ = np.array([*names["found"].values()]).T
        assert begun[-3:].mean() > anew[-3:].mean() + 0.02
        assert "and not checked: nobody is in two of january, february, march;" in outputs["ledger"]
    if page.stem == "howto-scikit-learn":
        assert names["model"][-1].top_features(1).index[0].startswith("age from")


def test_the_readme_prints_what_is_printed_and_its_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = dict(blocks_of(README))
    assert len(blocks_of(README)) == len(blocks) == 3
    assert printed_by(blocks["python"], README, {}) == blocks["text"]
    assert dplasso.load("income.npz").privacy_.is_private
    rows = "".join(f"{i % 2} {1 + i % 2}:1 {3 + i % 7}:1\n" for i in range(3_000))
    Path("train.svm.gz").write_bytes(gzip.compress(rows.encode()))
    for line in blocks["console"].splitlines():
        command(line)
    assert "Differentially private with epsilon = 1" in Path("report.html").read_text()
    # One screen.
    assert len(README.read_text(encoding="utf-8").splitlines()) < 90


def test_the_pages_lead_to_files_that_exist():
    assert len(PAGES) >= 5
    for page in [*PAGES, DOCS / "report.md", README]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(((?!https?:)[^)#]+)\)", text):
            assert (page.parent / link).is_file(), f"{page.name}: {link}"
