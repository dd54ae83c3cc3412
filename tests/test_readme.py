"""What the README shows, runs, and gives what is printed there."""

import contextlib
import gzip
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dplasso
from dplasso.cli.app import app

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return found


def test_the_python_example_prints_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block("python"), str(README), "exec"), {})
    assert printed.getvalue() == block("text")
    assert dplasso.load("income.npz").privacy_.is_private


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2} {1 + i % 2}:1 {3 + i % 7}:1\n" for i in range(3_000))
    Path("train.svm.gz").write_bytes(gzip.compress(rows.encode()))
    for line in block("console").splitlines():
        program, *arguments = shlex.split(line)
        assert program == "dplasso"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    assert "Differentially private with epsilon = 1" in Path("report.html").read_text()


def test_it_is_one_screen():
    assert len(TEXT.splitlines()) < 90


def test_the_documents_it_links_to_exist() -> None:
    links = re.findall(r"\]\(((?!https?:)[^)#]+)\)", TEXT)
    assert links
    for link in links:
        assert (README.parent / link).is_file(), link
