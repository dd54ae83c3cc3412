"""README.md and the how-to pages run as printed: Python and commands, top to bottom."""

import contextlib
import gzip
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import dplasso
from cli.conftest import run_command
from dplasso.audit import suite
from dplasso.fit import run as fit_run
from dplasso.runtime import progress

ROOT = Path(__file__).parent.parent
DOCS, README = ROOT / "docs", ROOT / "README.md"
PAGES = sorted([*DOCS.glob("howto-*.md"), *DOCS.glob("tour-*.md")])
PAGES += [
    DOCS / f"{name}.md" for name in ("audit", "cluster", "ledger", "prior", "public-rows", "store")
]
# Repetitions that a page needs for its figures and a test does not.
FEWER = {
    "draws = range(5)": "draws = range(2)",
    "in range(200):": "in range(20):",
    "--runs 400": "--runs 10",
    "runs=200": "runs=100",
    "notes(3_000)": "notes(1_500)",
    "notes(2_000)": "notes(500)",
    "rows = 2_000_000": "rows = 20_000",
}


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


def command(line, keyboard=None, code=0):
    """Run a command; return its name and arguments, what it prints, and all that is on the screen.

    `keyboard`: what is typed.
    """
    program, *arguments = shlex.split(line)
    assert program == "dplasso"
    result = run_command(*arguments, keyboard=keyboard)
    assert result.exit_code == code, f"{line}\n{result.output}"
    return arguments, result.stdout, result.output


def typed(line, folder):
    """Run a line as a shell would: with what is read from a file, and what is kept in one."""
    line, _, kept = line.partition(" > ")
    line, _, answers = line.partition(" < ")
    line, interrupted, _ = line.partition("  # Ctrl-C")
    keyboard = (folder / answers).read_text() if answers else None
    with stopped_half_way() if interrupted else contextlib.nullcontext():
        arguments, printed, screen = command(line, keyboard, 130 if interrupted else 0)
    if kept:
        (folder / kept).write_text(printed)
        screen = screen.replace(printed, "")
    return arguments, printed, screen


@contextlib.contextmanager
def stopped_half_way():
    """Press Ctrl-C when half of a fit's steps are done."""

    def run(solver, *, checkpoint, **options):
        def keep(done):
            checkpoint(done)
            if 2 * done > solver.n_steps:
                raise KeyboardInterrupt

        progress.run_in_chunks(solver, checkpoint=keep, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_run, "run_in_chunks", run)
        yield


def shown(text, printed):
    """Return whether a page shows what was printed; three dots stand for what is left out."""
    pieces = [words(piece) for piece in re.split(r"(?<!\S)\.\.\.(?!\S)", text)]
    pattern = ".*".join(map(re.escape, pieces))
    return re.fullmatch(pattern, words(printed), re.DOTALL) is not None


def words(text):
    """Return words without figures, which differ from draw to draw, frames of tables and breaks."""
    text = re.sub(r"[+-]?\d[\d.,e-]*", "0", re.sub(r"[\u2500-\u257f]", " ", text))
    text = re.sub(r"^.*: weight", "a column: weight", text, flags=re.MULTILINE)
    # What is said where it is slow: on the first run, or beside others.
    text = re.sub(r"^compiling what this needs.*$|^[\w. -]+: 0%.*$", "", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"; compiling 0 of that", "", text).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Audits say something of so few fits, if not much.
    monkeypatch.setattr(suite, "FEWEST_RUNS", 10)
    monkeypatch.setattr(suite, "FEWEST_REPEATS", 10)
    names, outputs, blocks = {"__name__": "page"}, {}, blocks_of(page)
    assert blocks
    for kind, text in blocks:
        for whole, small in FEWER.items():
            text = text.replace(whole, small)
        if kind == "python":
            printed = printed_by(text, page, names)
        elif kind == "text":
            assert shown(text, printed), f"{text}\n--- but it is\n{printed}"
        else:
            printed = ""
            for line in text.splitlines():
                arguments, output, screen = typed(line, tmp_path)
                printed += screen
                outputs[arguments[0]] = output
                if arguments[0] == "report":
                    page_out = tmp_path / arguments[arguments.index("--out") + 1]
                    outputs["page"] = page_out.read_text()
                    assert "Differentially private with epsilon = " in outputs["page"]
    if page.stem == "tour-table":
        assert not json.loads((tmp_path / "schema.json").read_text()).get("note")
        assert "<=income<" in outputs["show"]
        assert "first model" in outputs["page"]
    if page.stem == "tour-texts":
        assert names["accuracy"] > 0.9
    if page.stem == "howto-researcher":
        assert names["clear"] > 10
        assert all(min(found) > 0.87 for found in names["auc"].values())
        assert (tmp_path / "auc.png").stat().st_size > 10_000
    if page.stem == "howto-months":
        anew, begun, _ = np.array([*names["found"].values()]).T
        assert begun[-3:].mean() > anew[-3:].mean() + 0.02
        assert "A person in all of these data sets has spent" in outputs["ledger"]
    if page.stem == "howto-moving":
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
